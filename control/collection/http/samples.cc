// SPDX-License-Identifier: Apache-2.0
#include "control/collection/http/samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <string_view>
#include <utility>

namespace margay::control {
namespace {

constexpr double kCountMax = 1ull << 53;  // above it a double does not see single ones

// Of shares, times and sizes of one thing the mean says something, the sum does not.
bool is_averaged(Metric m) {
  static constexpr std::array kAveraged = {Metric::kCpu,       Metric::kMemory,       Metric::kGpu,
                                           Metric::kGpuMemory, Metric::kResponseTime, Metric::kInputTokens};
  return std::find(kAveraged.begin(), kAveraged.end(), m) != kAveraged.end();
}

std::optional<Metric> metric_named(std::string_view name) {
  for (size_t m = 0; m < kMetrics; ++m) {
    if (name_of(static_cast<Metric>(m)) == name) return static_cast<Metric>(m);
  }
  return std::nullopt;
}

bool is_counter(const Series& series) {
  const auto ends = [&series](std::string_view suffix) { return series.name.ends_with(suffix); };
  switch (series.type) {
    case SeriesType::kCounter:
      return true;
    case SeriesType::kGauge:
      return false;
    case SeriesType::kHistogram:
    case SeriesType::kSummary:
    case SeriesType::kUntyped:
      return ends("_total") || ends("_sum") || ends("_count") || ends("_bucket");
  }
  return false;
}

// "5xx" stands for each status of that class, too.
bool label_is(const std::string& value, std::string_view wanted) {
  if (value == wanted) return true;
  const bool a_class = wanted.size() == 3 && wanted.substr(1) == "xx";
  return a_class && value.size() == 3 && value.front() == wanted.front() &&
         std::all_of(value.begin() + 1, value.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<const Series*> matching(std::span<const Series> all, std::string_view name, std::string_view label,
                                    std::string_view is) {
  std::vector<const Series*> found;
  for (const Series& series : all) {
    if (series.name != name || !std::isfinite(series.value)) continue;
    const std::string* value = label.empty() ? nullptr : series.label(label);
    if (label.empty() || (value != nullptr && label_is(*value, is))) found.push_back(&series);
  }
  return found;
}

double sum_of(const std::vector<const Series*>& matches) {
  double sum = 0;
  for (const Series* series : matches) sum += series->value;
  return sum;
}

std::string labels_of(const Series& series) {
  std::string all;
  for (const auto& [key, value] : series.labels) all += key + '\0' + value + '\0';
  return all;
}

}  // namespace

std::optional<MetricsConfig::Name> read_series(std::string_view metric, const std::string& text) {
  static const std::regex kForm(R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([a-zA-Z_][a-zA-Z0-9_]*)="([^"\\]*)"\})?)re");
  std::smatch parts;
  if (!std::regex_match(text, parts, kForm)) return std::nullopt;
  return MetricsConfig::Name{
      .metric = std::string(metric), .series = parts.str(1), .label = parts.str(2), .is = parts.str(3)};
}

SampleMaker::SampleMaker(const std::vector<MetricsConfig::Name>& names) {
  for (const MetricsConfig::Name& name : names) {
    if (const auto metric = metric_named(name.metric)) sources_.push_back({*metric, name, {}, {}});
  }
}

std::optional<double> SampleMaker::Counter::grow(const Matches& matches) {
  if (last.size() > kSeriesMax) *this = {};  // label sets that come and go
  double growth = 0;
  for (const Series* series : matches) {
    double& before = last[labels_of(*series)];
    growth += series->value >= before ? series->value - before : series->value;
    before = series->value;
  }
  return std::exchange(begun, true) ? std::optional(growth) : std::nullopt;
}

double SampleMaker::Source::finish(double measured) const {
  const double scaled = measured * name.scale;
  return name.complement ? std::max(1 - scaled, 0.0) : scaled;
}

std::optional<double> SampleMaker::Source::ratio(const Matches& values, const Matches& divisors) {
  if (values.empty() || divisors.empty()) return std::nullopt;
  std::optional<double> top = sum_of(values), bottom = sum_of(divisors);
  if (is_counter(*values.front())) {
    top = value.grow(values);
    bottom = divisor.grow(divisors);
  }
  if (!top || !bottom || *bottom <= 0) return std::nullopt;
  return *top / *bottom;
}

std::optional<Sample> SampleMaker::Source::measure(std::span<const Series> series) {
  const auto gauge = [this](std::optional<double> measured) -> std::optional<Sample> {
    if (!measured) return std::nullopt;
    return Sample{metric, SampleKind::kGauge, finish(*measured)};
  };
  const Matches sums = matching(series, name.series + "_sum", name.label, name.is);
  const Matches counts = matching(series, name.series + "_count", name.label, name.is);
  if (!sums.empty() && !counts.empty()) return gauge(ratio(sums, counts));

  const Matches values = matching(series, name.series, name.label, name.is);
  if (values.empty()) return std::nullopt;
  if (!name.per.empty()) return gauge(ratio(values, matching(series, name.per, {}, {})));
  const double share = is_averaged(metric) ? 1 / static_cast<double>(values.size()) : 1;
  if (!is_counter(*values.front())) return gauge(sum_of(values) * share);
  const double growth = value.grow(values).value_or(0) * share;
  total = total + growth > kCountMax ? growth : total + growth;  // else begun anew
  return Sample{metric, SampleKind::kCounter, total * name.scale};
}

std::vector<Sample> SampleMaker::make(std::span<const Series> series) {
  struct Made {
    Sample sample;
    uint32_t sources = 0;
  };
  std::array<Made, kMetrics> made{};
  for (Source& source : sources_) {
    const auto sample = source.measure(series);
    if (!sample) continue;
    Made& m = made[static_cast<size_t>(source.metric)];
    if (m.sources > 0 && m.sample.kind != sample->kind) continue;  // the first one says what it is
    m.sample = {sample->metric, sample->kind, m.sample.value + sample->value};
    ++m.sources;
  }
  std::vector<Sample> samples;
  for (Made& m : made) {
    if (m.sources == 0) continue;
    if (is_averaged(m.sample.metric)) m.sample.value /= m.sources;
    samples.push_back(m.sample);
  }
  return samples;
}

std::vector<Sample> SampleMakers::make(const SciSpec& sci, const std::string& si_id, std::span<const Series> series) {
  OfSci& known = scis_[sci.csci_id];
  if (known.names != sci.metrics.names) known = {sci.metrics.names, {}};
  const auto in_site = [&sci](const std::string& id) {
    return std::any_of(sci.instances.begin(), sci.instances.end(), [&id](const auto& i) { return i.id == id; });
  };
  if (known.makers.size() > sci.instances.size()) {
    std::erase_if(known.makers, [&in_site](const auto& maker) { return !in_site(maker.first); });
  }
  return known.makers.try_emplace(si_id, known.names).first->second.make(series);
}

}  // namespace margay::control
