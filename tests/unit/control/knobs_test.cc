// SPDX-License-Identifier: Apache-2.0
// Each knob of Part C that belongs to the SCI's control plane, turned in the site file: what is measured with its
// default, and with another value (SCI-24, 36, 50, 51, 52, 65, 67, 100, 102, 103, 105, 109).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "control/site_reader.h"
#include "tests/support/site_text.h"
#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using test::SciRig;

// One SCI with every check; what it leaves out has its default.
const std::string kSite = margay::test::with_sci(R"(metrics: {prometheus: "http://{address}:9100/metrics"}
    health:
      liveness: {}
      readiness: {http: "http://{address}:{port}/ready"}
      performance: {response_time: 500ms}
    report: {critical: {}}
    computing_time: {})");

SciSpec spec_of_file(const std::string& text) {
  const auto site =
      parse_site(margay::test::replaced(text, "dataplane:\n", "dataplane:\n  control: /x\n"), "site.yaml");
  if (site) return site->scis[0];
  ADD_FAILURE() << site.error().message << "\n" << text;
  return {};
}

// Number of something in ten minutes, per instance, to the next multiple of five: jitter and phase move it by one.
uint64_t rounded(size_t n) { return (n / 2 + 2) / 5 * 5; }
uint64_t probes(SciRig& r, CheckKind kind) {
  r.settle();
  r.run_for(600 * kSecond);
  return rounded(r.count(kind));
}
uint64_t liveness(SciRig& r) { return probes(r, CheckKind::kLiveness); }
uint64_t readiness(SciRig& r) { return probes(r, CheckKind::kReadiness); }
uint64_t scrapes(SciRig& r) {
  r.settle();
  r.run_for(600 * kSecond);
  return rounded(r.scrapes.size());
}
template <CheckKind kind>
uint64_t probe_timeout_ms(SciRig& r) {
  r.settle();
  r.run_for(60 * kSecond);
  const auto probe =
      std::find_if(r.probes.begin(), r.probes.end(), [](const auto& p) { return p.second.kind == kind; });
  return (probe->second.deadline - probe->first) / kMillisecond;
}
// Liveness probes from the first failure to the verdict, that one included.
uint64_t failures_to_unhealthy(SciRig& r) {
  r.settle();
  r.behaviours["si-1"].liveness = Outcome::kFail;
  while (r.transitions.empty()) r.run_for(100 * kMillisecond);
  return r.transitions[0].second.change.cause.count;
}
uint64_t ms_between_failed_probes(SciRig& r) {
  r.settle();
  r.behaviours["si-1"].liveness = Outcome::kFail;
  r.run_for(20 * kSecond);
  std::vector<Nanoseconds> at;
  for (const auto& [t, p] : r.probes) {
    if (p.id == "si-1" && p.kind == CheckKind::kLiveness) at.push_back(t);
  }
  return (at.back() - at[at.size() - 2]) / kMillisecond;
}
uint64_t passes_to_healthy(SciRig& r) {
  failures_to_unhealthy(r);
  r.behaviours["si-1"].liveness = Outcome::kPass;
  r.forget();
  while (r.state_of("si-1") != HealthState::kHealthy) r.run_for(100 * kMillisecond);
  return static_cast<uint64_t>(std::count_if(r.probes.begin(), r.probes.end(), [](const auto& p) {
    return p.second.id == "si-1" && p.second.kind == CheckKind::kLiveness;
  }));
}
// With si-1 made unhealthy and back: the states on the way up.
uint64_t steps_up(SciRig& r) {
  passes_to_healthy(r);
  return r.transitions.size();
}
// Seconds until DEGRADED; 0: never.
uint64_t seconds_of_cpu(SciRig& r, double cpu) {
  r.settle();
  r.behaviours["si-1"].samples = {{Metric::kCpu, SampleKind::kGauge, cpu}};
  const Nanoseconds begin = r.now;
  r.run_for(300 * kSecond);
  return r.transitions.empty() ? 0 : (r.transitions[0].first - begin) / kSecond;
}
uint64_t degraded_by_cpu_85(SciRig& r) { return seconds_of_cpu(r, 0.85) > 0 ? 1 : 0; }
uint64_t cpu_verdict_within_100s(SciRig& r) { return seconds_of_cpu(r, 0.99) < 100 ? 1 : 0; }
uint64_t slow_300ms(SciRig& r) {
  r.settle();
  r.behaviours["si-1"].latency = 300 * kMillisecond;
  r.run_for(120 * kSecond);
  return r.transitions.size();
}
uint64_t slow_checks_to_degraded(SciRig& r) {
  r.settle();
  r.behaviours["si-1"].latency = kSecond;
  r.run_for(120 * kSecond);
  return r.transitions.at(0).second.change.cause.count;
}
uint64_t fast_checks_to_healthy(SciRig& r) {
  slow_checks_to_degraded(r);
  r.behaviours["si-1"].latency = kMillisecond;
  r.run_for(120 * kSecond);
  return r.transitions.at(1).second.change.cause.count;
}
uint64_t errors_10_percent(SciRig& r) {
  r.settle();
  r.behaviours["si-1"].samples = {{Metric::kRequests, SampleKind::kGauge, 100},
                                  {Metric::kErrors, SampleKind::kGauge, 10}};
  r.run_for(120 * kSecond);
  return r.transitions.size();
}
uint64_t gas(SciRig& r) {
  r.settle();
  return r.sci.state().gas->value;
}
uint64_t gas_degraded(SciRig& r) {
  r.settle();
  r.behaviours["si-1"].latency = kSecond;
  r.run_for(120 * kSecond);
  return r.sci.state().gas->value;
}
uint64_t report_interval_s(SciRig& r) {
  r.settle();
  r.run_for(200 * kSecond);
  return (r.reports[1].first - r.reports[0].first) / kSecond;
}
// How many slots must be taken of 400 until a report goes.
uint64_t slots_to_report(SciRig& r) {
  r.settle();
  for (uint32_t active = 1; active <= 200; ++active) {
    r.ledger({{"si-1", active}});
    if (!r.reports.empty()) return active;
  }
  return 0;
}
// How far a Computing Time of 100 ms must rise, in ms.
uint64_t ms_to_report(SciRig& r) {
  const auto answer = [&r](Nanoseconds t) {
    r.behaviours["si-1"].samples = {{Metric::kResponseTime, SampleKind::kGauge, static_cast<double>(t) / kSecond}};
    r.run_for(7 * kSecond);
    r.ledger({});
  };
  r.settle();
  answer(100 * kMillisecond);
  r.run_for(55 * kSecond);
  answer(100 * kMillisecond);
  for (uint64_t rise = 1; rise <= 60; ++rise) {
    r.forget();
    answer((100 + rise) * kMillisecond);
    if (r.first_with(Trigger::kThreshold) != nullptr) return rise;
    if (r.first_with(Trigger::kPeriodic) != nullptr) {  // took the base with it: once more
      answer(100 * kMillisecond);
      r.handle(Pull{});
      --rise;
    }
  }
  return 0;
}
uint64_t pulls_at_once(SciRig& r) {
  r.settle();
  r.run_for(30 * kSecond);
  r.forget();
  for (int i = 0; i < 60; ++i) r.handle(Pull{});
  return r.reports.size();
}
uint64_t pulls_in_ten_seconds_more(SciRig& r) {
  pulls_at_once(r);
  r.forget();
  for (int i = 0; i < 100; ++i) {
    r.run_for(kSecond / 10);
    r.handle(Pull{});
  }
  return r.reports.size();
}
uint64_t notices_at_once(SciRig& r) {
  r.settle();
  r.run_for(30 * kSecond);
  r.forget();
  for (int i = 0; i < 60; ++i) r.handle(SecurityNotice{"x"});
  return r.reports.size();
}
uint64_t notices_in_a_second_more(SciRig& r) {
  notices_at_once(r);
  r.forget();
  for (int i = 0; i < 100; ++i) {
    r.run_for(kSecond / 100);
    r.handle(SecurityNotice{"x"});
  }
  return r.reports.size();
}
uint64_t ms_from_change_to_report(SciRig& r) {
  failures_to_unhealthy(r);
  while (r.reports.empty()) r.run_for(kMillisecond);
  return (r.reports[0].first - r.transitions[0].first) / kMillisecond;
}
uint64_t computing_time(SciRig& r) {
  r.settle();
  r.responses["si-1"].add(10 * kMillisecond, 96);
  r.responses["si-1"].add(kSecond, 4);
  r.ledger({{"si-1", 1}});
  return *r.sci.state().computing_time.value < 20 ? 0 : *r.sci.state().computing_time.value / 10 * 10;
}

struct Knob {
  const char* name;
  const char *at, *key;  // what comes behind which place of the file
  uint64_t (*measure)(SciRig&);
  uint64_t before, after;
};

constexpr const char *kSci = "cs_id: ARS", *kScrapes = "metrics: {", *kHealth = "health:", *kLiveness = "liveness: {",
                     *kReadiness = "readiness: {", *kPerformance = "performance: {", *kReport = "report: {",
                     *kCritical = "critical: {", *kComputingTime = "computing_time: {";

const Knob kKnobs[] = {
    {"sampling interval", kScrapes, "interval: 10s, ", scrapes, 120, 60},
    {"liveness interval", kLiveness, "interval: 10s", liveness, 120, 60},
    {"readiness interval", kReadiness, "interval: 10s, ", readiness, 20, 60},
    {"probe timeout", kLiveness, "timeout: 3s", probe_timeout_ms<CheckKind::kLiveness>, 1000, 3000},
    {"probe timeout", kReadiness, "timeout: 3s, ", probe_timeout_ms<CheckKind::kReadiness>, 1000, 3000},
    {"fall", kLiveness, "fall: 5", failures_to_unhealthy, 3, 5},
    {"rise", kLiveness, "rise: 4", passes_to_healthy, 4, 8},  // two steps
    {"recovery", kHealth, "\n      recovery: direct", steps_up, 2, 1},
    {"confirm interval", kHealth, "\n      confirm_interval: 2s", ms_between_failed_probes, 1000, 2000},
    {"performance: CPU above", kPerformance, "cpu: {above: 80%}, ", degraded_by_cpu_85, 0, 1},
    {"performance: CPU for", kPerformance, "cpu: {for: 120s}, ", cpu_verdict_within_100s, 1, 0},
    {"performance: interval", kPerformance, "interval: 250s, ", cpu_verdict_within_100s, 1, 0},
    {"performance: response time", "response_time: ", "200ms} #", slow_300ms, 0, 1},
    {"performance: error rate", kPerformance, "error_rate: 5%, ", errors_10_percent, 0, 1},
    {"performance: fall", kPerformance, "fall: 1, ", slow_checks_to_degraded, 3, 1},
    {"performance: rise", kPerformance, "rise: 5, ", fast_checks_to_healthy, 2, 5},
    {"safety margin", kSci, "\n    safety_margin: 0.8", gas, 400, 320},
    {"degradation factor", kSci, "\n    degradation_factor: 0.25", gas_degraded, 300, 250},
    {"report interval", kReport, "interval: 45s, ", report_interval_s, 60, 45},
    {"GAS change", kReport, "gas_change: 5%, ", slots_to_report, 41, 21},
    {"GAS absolute", kReport, "gas_absolute: 10, ", slots_to_report, 41, 11},
    {"Computing Time change", kReport, "computing_time_change: 40%, ", ms_to_report, 21, 41},
    {"burst", kReport, "burst: 9, ", pulls_at_once, 5, 9},
    {"rate", kReport, "rate: 2/s, ", pulls_in_ten_seconds_more, 10, 20},
    {"critical burst", kCritical, "burst: 30", notices_at_once, 20, 30},
    {"critical rate", kCritical, "rate: 5/s", notices_in_a_second_more, 10, 5},
    {"batch", kHealth, "\n      batch: 40ms", ms_from_change_to_report, 100, 40},
    // (96 * 10 + 4 * 1000) / 100 = 49.6, and the median is below 20
    {"Computing Time method", kComputingTime, "method: median", computing_time, 50, 0},
};

TEST(Knobs, EachMovesWhatItIsFor_SCI52_SCI105) {
  for (const Knob& knob : kKnobs) {
    SCOPED_TRACE(knob.name);
    SciRig as_before(spec_of_file(kSite));
    EXPECT_EQ(knob.measure(as_before), knob.before) << "with the default";
    SciRig after(spec_of_file(margay::test::replaced(kSite, knob.at, std::string(knob.at) + knob.key)));
    EXPECT_EQ(knob.measure(after), knob.after) << "turned";
  }
}

}  // namespace
}  // namespace margay::control
