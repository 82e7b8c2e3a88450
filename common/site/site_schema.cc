// SPDX-License-Identifier: Apache-2.0
// The parts of the site file that other programs read, as tables: which keys there are and what each value looks
// like. Nothing is kept; what the values mean together is for those programs to check.

#include <iterator>
#include <limits>
#include <vector>

#include "common/site/site_sections.h"

namespace margay {
namespace {

enum class Kind : uint8_t {
  kAnything,
  kText,
  kInteger,
  kTenth,  // 0 to 10
  kShare,  // 0 to 1
  kDuration,
  kRate,
  kPercentage,
  kWords,      // one of `words`
  kTextOrMap,  // a text, or free keys with a text each
  kList,       // of `inner`
  kFreeMap,    // free keys, `inner` each
  kMap,        // the keys of `inner`
};

struct Shape {
  std::string_view key;
  Kind kind = Kind::kText;
  std::span<const Shape> inner = {};
  std::span<const std::string_view> words = {};
};

template <size_t N>
constexpr Shape map(std::string_view key, const Shape (&keys)[N]) {
  return {key, Kind::kMap, keys, {}};
}
template <size_t N>
constexpr Shape words(std::string_view key, const std::string_view (&known)[N]) {
  return {key, Kind::kWords, {}, known};
}

constexpr Shape kTexts[] = {{"", Kind::kText}};
constexpr Shape kAnythings[] = {{"", Kind::kAnything}};

// Within an SCI, and health and metrics within an instance too.
constexpr std::string_view kRecovery[] = {"stepwise", "direct"};
constexpr std::string_view kMethods[] = {"weighted-mean", "median", "p95", "dynamic"};
constexpr Shape kMetrics[] = {{"prometheus", Kind::kText}, {"interval", Kind::kDuration}, {"names", Kind::kTextOrMap}};
constexpr Shape kProbe[] = {{"http", Kind::kText},
                            {"interval", Kind::kDuration},
                            {"timeout", Kind::kDuration},
                            {"fall", Kind::kInteger},
                            {"rise", Kind::kInteger}};
constexpr Shape kOverload[] = {{"above", Kind::kPercentage}, {"for", Kind::kDuration}};
constexpr Shape kPerformance[] = {
    {"response_time", Kind::kDuration}, {"error_rate", Kind::kPercentage}, map("cpu", kOverload),
    {"interval", Kind::kDuration},      {"fall", Kind::kInteger},          {"rise", Kind::kInteger}};
constexpr Shape kHealth[] = {words("recovery", kRecovery),     {"confirm_interval", Kind::kDuration},
                             map("liveness", kProbe),          map("readiness", kProbe),
                             map("performance", kPerformance), {"batch", Kind::kDuration}};
constexpr Shape kComputingTime[] = {
    words("method", kMethods), {"window", Kind::kDuration}, {"alpha", Kind::kShare}, {"per", Kind::kDuration}};
constexpr Shape kBucket[] = {{"rate", Kind::kRate}, {"burst", Kind::kInteger}};
constexpr Shape kReport[] = {{"interval", Kind::kDuration},
                             {"gas_change", Kind::kPercentage},
                             {"gas_absolute", Kind::kInteger},
                             {"computing_time_change", Kind::kPercentage},
                             {"rate", Kind::kRate},
                             {"burst", Kind::kInteger},
                             map("critical", kBucket)};
constexpr Shape kReportsTo[] = {
    {"address", Kind::kText}, {"identity", Kind::kText}, {"certificate", Kind::kText}, {"key", Kind::kText}};
constexpr Shape kSciParts[] = {
    {"safety_margin", Kind::kShare},       {"price", Kind::kInteger}, {"reputation", Kind::kTenth},
    {"security_level", Kind::kTenth},      map("metrics", kMetrics),  map("health", kHealth),
    map("computing_time", kComputingTime), map("report", kReport),    map("reports_to", kReportsTo)};
constexpr Shape kInstanceParts[] = {map("metrics", kMetrics), map("health", kHealth)};

constexpr std::string_view kRoles[] = {"sci", "c-sma", "both"};
constexpr Shape kHttp[] = {{"listen", Kind::kText}};
constexpr Shape kPulledBy[] = {{"grpc", Kind::kText}, {"http", Kind::kText}, {"identity", Kind::kText}};
constexpr Shape kControl[] = {words("role", kRoles),
                              {"cli", Kind::kText},
                              map("http", kHttp),
                              map("pulled_by", kPulledBy),
                              {"reports", Kind::kText}};

constexpr std::string_view kAnomalous[] = {"quarantine", "flag"};
constexpr std::string_view kConsistency[] = {"site", "cs-id"};
constexpr std::string_view kAtLimit[] = {"evict", "refuse"};
constexpr std::string_view kStale[] = {"stand", "decay"};
constexpr std::string_view kAdvertise[] = {"per-sci", "per-site", "both"};
constexpr std::string_view kAggregates[] = {"gas-weighted-mean", "min", "max", "mean", "p95"};
constexpr std::string_view kDays[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
constexpr Shape kDay[] = {words("", kDays)};
constexpr Shape kAccept[] = {{"csci_id", Kind::kText}, {"cs_id", Kind::kText}, {"gas_ceiling", Kind::kInteger}};
constexpr Shape kAccepts[] = {map("", kAccept)};
constexpr Shape kNumbers[] = {{"min", Kind::kInteger}, {"max", Kind::kInteger}};
constexpr Shape kTimes[] = {{"min", Kind::kDuration}, {"max", Kind::kDuration}};
constexpr Shape kRanges[] = {map("gas", kNumbers), map("computing_time", kTimes), map("price", kNumbers),
                             map("reputation", kNumbers), map("security_level", kNumbers)};
constexpr Shape kGasAnomaly[] = {{"change", Kind::kPercentage}, {"within", Kind::kDuration}, {"floor", Kind::kInteger}};
constexpr Shape kTimeAnomaly[] = {
    {"change", Kind::kPercentage}, {"within", Kind::kDuration}, {"floor", Kind::kDuration}};
constexpr Shape kFlapping[] = {{"transitions", Kind::kInteger}, {"within", Kind::kDuration}};
constexpr Shape kSkew[] = {{"alarm", Kind::kDuration}, {"refuse", Kind::kDuration}};
constexpr Shape kValidation[] = {map("ranges", kRanges),
                                 map("gas_anomaly", kGasAnomaly),
                                 map("computing_time_anomaly", kTimeAnomaly),
                                 map("flapping", kFlapping),
                                 words("anomalous", kAnomalous),
                                 map("clock_skew", kSkew),
                                 words("consistency", kConsistency)};
constexpr Shape kTtl[] = {{"gas", Kind::kDuration}, {"computing_time", Kind::kDuration}, {"optional", Kind::kDuration}};
constexpr Shape kCache[] = {{"max_entries", Kind::kInteger},
                            words("at_limit", kAtLimit),
                            {"quota_per_identity", Kind::kPercentage},
                            map("ttl", kTtl),
                            {"grace", Kind::kDuration},
                            words("stale", kStale)};
constexpr Shape kSelfDoubt[] = {{"share", Kind::kPercentage}, {"hold", Kind::kDuration}};
constexpr Shape kWindow[] = {
    {"days", Kind::kList, kDay}, {"from", Kind::kText}, {"to", Kind::kText}, {"timezone", Kind::kText}};
constexpr Shape kWindows[] = {map("", kWindow)};
constexpr Shape kTimeBounds[] = {{"min", Kind::kDuration}, {"max", Kind::kDuration}, words("aggregate", kAggregates)};
constexpr Shape kAverage[] = {{"alpha", Kind::kShare}, {"per", Kind::kDuration}};
constexpr Shape kSmoothing[] = {map("gas", kAverage)};
constexpr Shape kTransform[] = {
    {"safety_margin", Kind::kShare}, map("computing_time", kTimeBounds), map("smoothing", kSmoothing)};
constexpr Shape kBackoff[] = {{"initial", Kind::kDuration}, {"max", Kind::kDuration}};
constexpr Shape kUpdates[] = {{"gas_change", Kind::kPercentage},
                              {"gas_absolute", Kind::kInteger},
                              {"computing_time_change", Kind::kPercentage},
                              {"heartbeat", Kind::kDuration},
                              {"minimum_interval", Kind::kDuration},
                              {"rate", Kind::kRate},
                              {"burst", Kind::kInteger},
                              map("critical", kBucket),
                              map("backoff", kBackoff),
                              words("advertise", kAdvertise),
                              {"valid_for", Kind::kDuration}};
constexpr Shape kCps[] = {
    {"protocol", Kind::kText}, {"address", Kind::kText}, {"identity", Kind::kText}, {"cs_ids", Kind::kList, kTexts}};
constexpr Shape kCpss[] = {map("", kCps)};
constexpr Shape kPull[] = {{"csci_id", Kind::kText},
                           {"grpc", Kind::kText},
                           {"http", Kind::kText},
                           {"every", Kind::kDuration},
                           {"timeout", Kind::kDuration}};
constexpr Shape kPulls[] = {map("", kPull)};
constexpr Shape kCSma[] = {{"identity", Kind::kText},
                           {"listen", Kind::kText},
                           {"accept", Kind::kList, kAccepts},
                           {"pull", Kind::kList, kPulls},
                           map("validation", kValidation),
                           map("cache", kCache),
                           map("self_doubt", kSelfDoubt),
                           {"policies", Kind::kList, kAnythings},
                           {"maintenance_windows", Kind::kFreeMap, kWindows},
                           map("transform", kTransform),
                           map("updates", kUpdates),
                           {"c_ps", Kind::kList, kCpss}};

constexpr Shape kPeer[] = {
    {"identity", Kind::kText}, {"keys", Kind::kFreeMap, kTexts}, {"cs_ids", Kind::kList, kTexts}};
constexpr Shape kPeers[] = {map("", kPeer)};
constexpr Shape kCpsServer[] = {{"listen", Kind::kText},         {"cli", Kind::kText},
                                {"c_smas", Kind::kList, kPeers}, {"window", Kind::kDuration},
                                {"max_rows", Kind::kInteger},    {"state", Kind::kText}};

constexpr Shape kSigningKey[] = {{"id", Kind::kText}, {"file", Kind::kText}};
constexpr Shape kSecurity[] = {{"ca", Kind::kText},
                               {"certificate", Kind::kText},
                               {"key", Kind::kText},
                               {"crl", Kind::kText},
                               map("signing_key", kSigningKey)};

constexpr Shape kRootParts[] = {{"state_directory", Kind::kText},
                                map("control", kControl),
                                map("c_sma", kCSma),
                                map("cps", kCpsServer),
                                map("security", kSecurity)};

std::vector<std::string_view> keys_of(std::span<const Shape> shapes) {
  std::vector<std::string_view> keys;
  for (const Shape& shape : shapes) keys.push_back(shape.key);
  return keys;
}

void check(const Field& field, const Shape& shape);

void check_collection(const Field& field, const Shape& shape) {
  if (shape.kind == Kind::kList ? !is_list(field) : !is_map(field)) return;
  if (shape.kind != Kind::kMap) {
    for (size_t i = 0; i < field.size(); ++i) check(field[i], shape.inner.front());
    return;
  }
  refuse_unknown_keys(field, keys_of(shape.inner));
  for (const Shape& inner : shape.inner) check(field[inner.key], inner);
}

// Depth is bounded by the tables.
void check(const Field& field, const Shape& shape) {
  constexpr size_t kTextBytesMax = 4095;
  constexpr uint64_t kForever = std::numeric_limits<uint64_t>::max();
  std::string text;
  uint64_t integer = 0;
  double number = 0;
  switch (shape.kind) {
    case Kind::kAnything:
      return;
    case Kind::kText:
      read_text(field, kTextBytesMax, text);
      return;
    case Kind::kInteger:
      read_integer(field, 0, std::numeric_limits<uint32_t>::max(), integer);
      return;
    case Kind::kTenth:
      read_integer(field, 0, 10, integer);
      return;
    case Kind::kShare:
      read_number(field, 0, 1, number);
      return;
    case Kind::kDuration:
      read_duration(field, 0, kForever, integer);
      return;
    case Kind::kRate:
      read_rate(field, integer);
      return;
    case Kind::kPercentage:
      read_percentage(field, 0, 1000, number);
      return;
    case Kind::kWords:
      read_word(field, shape.words);
      return;
    case Kind::kTextOrMap:
      if (field.present() && field.node()->kind == YamlNode::Kind::kMap) {
        check_collection(field, {shape.key, Kind::kFreeMap, kTexts, {}});
      } else {
        read_text(field, kTextBytesMax, text);
      }
      return;
    case Kind::kList:
    case Kind::kFreeMap:
    case Kind::kMap:
      check_collection(field, shape);
      return;
  }
}

void check_parts(const Field& field, std::span<const Shape> parts) {
  for (const Shape& part : parts) check(field[part.key], part);
}

}  // namespace

std::span<const std::string_view> other_keys_of_sci() {
  static const auto keys = keys_of(kSciParts);
  return keys;
}

std::span<const std::string_view> other_keys_of_instance() {
  static const auto keys = keys_of(kInstanceParts);
  return keys;
}

void check_other_programs(const Field& root) {
  check_parts(root, kRootParts);
  const Field scis = root["scis"];
  for (size_t i = 0; i < scis.size(); ++i) {
    check_parts(scis[i], kSciParts);
    const Field instances = scis[i]["instances"];
    for (size_t j = 0; j < instances.size(); ++j) check_parts(instances[j], kInstanceParts);
  }
}

}  // namespace margay
