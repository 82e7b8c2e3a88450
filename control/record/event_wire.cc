// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "control/record/wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {
namespace {

static_assert(enum_to_wire<v1::CheckKind>(CheckKind::kPerformance) == v1::CHECK_KIND_PERFORMANCE);
static_assert(enum_to_wire<v1::Outcome>(Outcome::kError) == v1::OUTCOME_ERROR);
static_assert(enum_to_wire<v1::Metric>(Metric::kCustom) == v1::METRIC_CUSTOM);
static_assert(enum_to_wire<v1::SampleKind>(SampleKind::kCounter) == v1::SAMPLE_KIND_COUNTER);

// ---- the beginning

void put(const Sci::Known& known, v1::KnownInstance& out) {
  const auto& [id, health, drain_deadline] = known;
  out.set_si_id(utf8(id));
  out.set_health(enum_to_wire<v1::HealthState>(health.state));
  control::put(health.age, *out.mutable_age());
  control::put(health.serves_age, *out.mutable_serves_age());
  put_if(drain_deadline, [&](Nanoseconds v) { control::put(v, *out.mutable_drain_deadline()); });
}

Sci::Known take(WireReader& reader, const v1::KnownInstance& in) {
  Sci::Known known{.id = in.si_id(), .health = {}};
  known.health.state = reader.enumerated("health", in.health(), HealthState::kUnknown);
  known.health.age = reader.duration("age", in.age());
  known.health.serves_age = reader.duration("serves_age", in.serves_age());
  if (in.has_drain_deadline()) known.drain_deadline = reader.duration("drain_deadline", in.drain_deadline());
  return known;
}

// ---- events into messages

void put(const Sample& sample, v1::Sample& out) {
  const auto& [metric, kind, value] = sample;
  out.set_metric(enum_to_wire<v1::Metric>(metric));
  out.set_kind(enum_to_wire<v1::SampleKind>(kind));
  out.set_value(value);
}

void put(const Histogram& histogram, v1::Histogram& out) {
  for (size_t b = 0; b < Histogram::kBuckets; ++b) {
    if (histogram.counts[b] == 0) continue;
    v1::HistogramBucket& bucket = *out.add_buckets();
    control::put(Histogram::floor_of(b), *bucket.mutable_time());
    bucket.set_count(histogram.counts[b]);
  }
  control::put(histogram.sum, *out.mutable_sum());
}

void put(const LedgerSample::Entry& entry, v1::LedgerEntry& out) {
  const auto& [id, counts, responses] = entry;
  const auto& [active, provisional, max_sessions, admin, weight] = counts;
  out.set_si_id(utf8(id));
  out.set_active(active);
  out.set_provisional(provisional);
  put_if(max_sessions, [&](uint32_t v) { out.set_max_sessions(v); });
  put_if(admin, [&](Admin v) { out.set_admin(enum_to_wire<v1::Admin>(v)); });
  put_if(weight, [&](uint32_t v) { out.set_weight(v); });
  put_if(responses, [&](const Histogram& v) { put(v, *out.mutable_responses()); });
}

void put(const CheckResult& e, v1::Record& record) {
  const auto& [id, kind, serial, outcome, latency, detail, silent] = e;
  v1::CheckResult& out = *record.mutable_check_result();
  out.set_si_id(utf8(id));
  out.set_kind(enum_to_wire<v1::CheckKind>(kind));
  out.set_serial(serial);
  out.set_outcome(enum_to_wire<v1::Outcome>(outcome));
  control::put(latency, *out.mutable_latency());
  out.set_detail(utf8(detail));
  out.set_silent(silent);
}

void put(const ScrapeResult& e, v1::Record& record) {
  const auto& [id, serial, ok, samples] = e;
  v1::ScrapeResult& out = *record.mutable_scrape_result();
  out.set_si_id(utf8(id));
  out.set_serial(serial);
  out.set_ok(ok);
  for (const Sample& sample : samples) put(sample, *out.add_samples());
}

void put(const LedgerSample& e, v1::Record& record) {
  v1::LedgerSample& out = *record.mutable_ledger_sample();
  for (const LedgerSample::Entry& entry : e.instances) put(entry, *out.add_instances());
  out.set_stood_still(e.stood_still);
}

void put(const DataPlaneLost& e, v1::Record& record) { record.mutable_data_plane_lost()->set_why(utf8(e.why)); }
void put(const DataPlaneBack&, v1::Record& record) { record.mutable_data_plane_back(); }

void put(const OperatorDrain& e, v1::Record& record) {
  const auto& [id, on] = e;
  v1::OperatorDrain& out = *record.mutable_operator_drain();
  put_if(id, [&](const std::string& v) { out.set_si_id(utf8(v)); });
  out.set_on(on);
}

void put(const SecurityNotice& e, v1::Record& record) { record.mutable_security_notice()->set_what(utf8(e.what)); }
void put(const ConfigChanged& e, v1::Record& record) {
  to_wire(e.config, *record.mutable_config_changed()->mutable_config());
}
void put(const Pull&, v1::Record& record) { record.mutable_pull(); }
void put(const Stop&, v1::Record& record) { record.mutable_stop(); }
void put(const Tick&, v1::Record& record) { record.mutable_tick(); }

// ---- events out of messages

Histogram take(WireReader& reader, const v1::Histogram& in) {
  Histogram histogram;
  for (const v1::HistogramBucket& bucket : in.buckets()) {
    histogram.add(reader.duration("time of responses", bucket.time()), bucket.count());
  }
  if (in.has_sum()) histogram.sum = reader.duration("sum of responses", in.sum());
  return histogram;
}

LedgerSample::Entry take(WireReader& reader, const v1::LedgerEntry& in) {
  LedgerSample::Entry entry{.id = in.si_id(), .counts = {.active = in.active(), .provisional = in.provisional()}};
  if (in.has_max_sessions()) entry.counts.max_sessions = in.max_sessions();
  if (in.has_weight()) entry.counts.weight = in.weight();
  if (in.admin() != v1::ADMIN_UNSPECIFIED) {
    entry.counts.admin = reader.enumerated("admin", in.admin(), Admin::kDisabled);
  }
  if (in.has_responses()) entry.responses = take(reader, in.responses());
  return entry;
}

CheckResult take(WireReader& reader, const v1::CheckResult& in) {
  return {.id = in.si_id(),
          .kind = reader.enumerated("kind", in.kind(), CheckKind::kPerformance),
          .serial = in.serial(),
          .outcome = reader.enumerated("outcome", in.outcome(), Outcome::kError),
          .latency = reader.duration("latency", in.latency()),
          .detail = in.detail(),
          .silent = in.silent()};
}

ScrapeResult take(WireReader& reader, const v1::ScrapeResult& in) {
  ScrapeResult result{.id = in.si_id(), .serial = in.serial(), .ok = in.ok(), .samples = {}};
  for (const v1::Sample& sample : in.samples()) result.samples.push_back(take_sample(reader, sample));
  return result;
}

LedgerSample take(WireReader& reader, const v1::LedgerSample& in) {
  LedgerSample sample{.instances = {}, .stood_still = in.stood_still()};
  for (const v1::LedgerEntry& entry : in.instances()) sample.instances.push_back(take(reader, entry));
  return sample;
}

OperatorDrain take(const v1::OperatorDrain& in) {
  return {.id = in.has_si_id() ? std::optional(in.si_id()) : std::nullopt, .on = in.on()};
}

ConfigChanged take(WireReader& reader, const v1::ConfigChanged& in) {
  auto config = config_of(in.config());
  if (config) return {std::move(*config)};
  reader.fail("config_changed", "a good one, but " + config.error().message);
  return {};
}

void take(WireReader& reader, const v1::Record& record, Event& out) {
  switch (static_cast<int>(record.what_case())) {
    case v1::Record::kCheckResult:
      out.emplace<CheckResult>(take(reader, record.check_result()));
      break;
    case v1::Record::kScrapeResult:
      out.emplace<ScrapeResult>(take(reader, record.scrape_result()));
      break;
    case v1::Record::kLedgerSample:
      out.emplace<LedgerSample>(take(reader, record.ledger_sample()));
      break;
    case v1::Record::kDataPlaneLost:
      out.emplace<DataPlaneLost>().why = record.data_plane_lost().why();
      break;
    case v1::Record::kDataPlaneBack:
      out.emplace<DataPlaneBack>();
      break;
    case v1::Record::kOperatorDrain:
      out.emplace<OperatorDrain>(take(record.operator_drain()));
      break;
    case v1::Record::kSecurityNotice:
      out.emplace<SecurityNotice>().what = record.security_notice().what();
      break;
    case v1::Record::kConfigChanged:
      out.emplace<ConfigChanged>(take(reader, record.config_changed()));
      break;
    case v1::Record::kPull:
      out.emplace<Pull>();
      break;
    case v1::Record::kStop:
      out.emplace<Stop>();
      break;
    case v1::Record::kTick:
      out.emplace<Tick>();
      break;
    default:
      reader.fail("what", "an event of an SCI");
  }
}

}  // namespace

Sample take_sample(WireReader& reader, const v1::Sample& in) {
  return {.metric = reader.enumerated("metric", in.metric(), Metric::kCustom),
          .kind = reader.enumerated("kind of a sample", in.kind(), SampleKind::kCounter),
          .value = in.value()};
}

void put_time(Time at, v1::Record& record) {
  put(at.monotonic, *record.mutable_at());
  put_unix_ms(at.unix_ms, *record.mutable_wall());
}

void to_wire(const Beginning& beginning, v1::Start& out) {
  const auto& [config, seed, epoch, known] = beginning;
  to_wire(config, *out.mutable_config());
  out.set_seed(seed);
  out.set_epoch(epoch);
  for (const Sci::Known& k : known) put(k, *out.add_known());
}

Result<Beginning> beginning_of(const v1::Start& start, const SciSpec* otherwise) {
  if (!start.has_config() && otherwise == nullptr) {
    return Error{"start has no config, and no site file says one for this CSCI-ID"};
  }
  Result<SciSpec> config = start.has_config() ? config_of(start.config()) : *otherwise;
  if (!config) return config.error();
  WireReader reader;
  Beginning beginning{.config = std::move(*config), .seed = start.seed(), .epoch = start.epoch()};
  for (const v1::KnownInstance& known : start.known()) beginning.known.push_back(take(reader, known));
  if (!reader.fault().empty()) return Error{"known: " + reader.fault()};
  return beginning;
}

void to_wire(const Event& event, Time at, v1::Record& out) {
  put_time(at, out);
  std::visit([&out](const auto& e) { put(e, out); }, event);
}

Result<Time> time_of(const v1::Record& record) {
  WireReader reader;
  if (!record.has_at()) reader.fail("at", "a time such as 12.5s");
  const Time time{reader.duration("at", record.at()), unix_ms_of(record.wall())};
  if (!reader.fault().empty()) return Error{reader.fault()};
  return time;
}

Result<void> event_of(const v1::Record& record, Event& out) {
  WireReader reader;
  take(reader, record, out);
  if (!reader.fault().empty()) return Error{reader.fault()};
  return {};
}

}  // namespace margay::control
