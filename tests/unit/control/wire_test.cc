// SPDX-License-Identifier: Apache-2.0
// Events, configurations and reports as messages and JSON, and back.
#include "control/record/wire.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "margay/v1/sci_events.pb.h"
#include "tests/support/seed.h"
#include "tests/unit/control/random_values.h"
#include "tests/unit/control/record_json.h"

namespace margay::control {
namespace {

using margay::test::any;
using margay::test::maybe;
using margay::test::name;
using margay::test::number;
using margay::test::Random;
using margay::test::share;
using margay::test::through_json;
using margay::test::time_from;

// ---- random values; each field takes more than one

ProbeConfig probe(Random& r) {
  return {.http = name(r),
          .interval = time_from(r, 1),
          .timeout = time_from(r, 1),
          .fall = 1 + r.below(9),
          .rise = 1 + r.below(9)};
}

PerformanceConfig performance(Random& r) {
  return {.response_time = maybe(r, time_from(r, 0)),
          .error_rate = maybe(r, share(r)),
          .cpu = maybe(r, CpuRule{share(r), time_from(r, 0)}),
          .interval = time_from(r, 1),
          .fall = 1 + r.below(9),
          .rise = 1 + r.below(9)};
}

SciSpec spec(Random& r) {
  SciSpec s{.csci_id = name(r), .cs_id = name(r)};
  s.health = {.recovery = any(r, Recovery::kDirect),
              .confirm_interval = time_from(r, 1),
              .liveness = maybe(r, probe(r)),
              .readiness = maybe(r, probe(r)),
              .performance = maybe(r, performance(r)),
              .batch = time_from(r, 0)};
  s.metrics = {.prometheus = name(r),
               .interval = time_from(r, 1),
               .names = {{name(r), name(r), name(r), name(r), name(r), 0.001, true}, {"a", "b"}}};
  s.computing_time = {.method = any(r, ComputingTimeMethod::kDynamic),
                      .window = time_from(r, 1),
                      .alpha = share(r, 1),
                      .period = time_from(r, 1)};
  s.report = {.interval = time_from(r, 1),
              .gas_change = share(r),
              .gas_absolute = number(r),
              .computing_time_change = share(r),
              .rate = {1 + r.below(1'000'000), 1 + r.below(9)},
              .critical = {1 + r.below(1'000'000), 1 + r.below(9)}};
  s.safety_margin = share(r, 1);
  s.degradation_factor = share(r, 1);
  s.drain_deadline = time_from(r, 0);
  s.price = maybe(r, number(r));
  s.reputation = maybe(r, number(r));
  s.security_level = maybe(r, number(r));
  s.tells_load = r.one_in(2);
  for (uint32_t i = r.below(4); i > 0; --i) {
    s.instances.push_back({.id = "si-" + std::to_string(i),
                           .address = name(r),
                           .port = static_cast<uint16_t>(number(r)),
                           .max_sessions = number(r),
                           .weight = number(r),
                           .barred = r.one_in(2)});
  }
  return s;
}

Histogram histogram(Random& r) {
  Histogram h;
  for (uint32_t i = r.below(5); i > 0; --i) h.add(time_from(r, 0), r.below(100));
  return h;
}

LedgerSample ledger(Random& r) {
  LedgerSample sample;
  for (uint32_t i = r.below(4); i > 0; --i) {
    const LedgerCounts counts{.active = number(r),
                              .provisional = number(r),
                              .max_sessions = maybe(r, number(r)),
                              .admin = maybe(r, any(r, Admin::kDisabled)),
                              .weight = maybe(r, number(r))};
    sample.instances.push_back({name(r), counts, maybe(r, histogram(r))});
  }
  sample.stood_still = r.below(2) == 0;
  return sample;
}

Event event(Random& r) {
  const Sample sample{any(r, Metric::kCustom), any(r, SampleKind::kCounter), r.below(1000) / 8.0};
  switch (r.below(std::variant_size_v<Event>)) {
    case 0:
      return CheckResult{
          name(r),    any(r, CheckKind::kPerformance), r.next(), any(r, Outcome::kError), time_from(r, 0), name(r),
          r.one_in(2)};
    case 1:
      return ScrapeResult{name(r), r.next(), r.one_in(2), {sample, sample}};
    case 2:
      return ledger(r);
    case 3:
      return DataPlaneLost{name(r)};
    case 4:
      return DataPlaneBack{};
    case 5:
      return OperatorDrain{maybe(r, name(r)), r.one_in(2)};
    case 6:
      return SecurityNotice{name(r)};
    case 7:
      return ConfigChanged{spec(r)};
    case 8:
      return Pull{};
    case 9:
      return Stop{};
    default:
      return Tick{};
  }
}

// ---- there and back

TEST(Wire, AnEventComesBackFromItsLine) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  Random random(seed);
  for (int i = 0; i < 3000; ++i) {
    const Event told = event(random);
    const Time at{random.next() % (1'000'000 * kSecond), random.below(1u << 31) * int64_t{1000} + random.below(1000)};
    v1::Record record;
    to_wire(told, at, record);
    const v1::Record read = through_json(record);
    Event heard;
    const auto result = event_of(read, heard);
    ASSERT_TRUE(result) << result.error().message << "\n" << json_line(record);
    ASSERT_EQ(heard, told) << json_line(record);
    const auto time = time_of(read);
    ASSERT_TRUE(time);
    ASSERT_EQ(time->monotonic, at.monotonic);
    ASSERT_EQ(time->unix_ms, at.unix_ms);
  }
}

TEST(Wire, ABeginningComesBackFromItsLine) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  Random r(seed);
  for (int i = 0; i < 1000; ++i) {
    const Beginning told{.config = spec(r),
                         .seed = r.next(),
                         .epoch = r.next(),
                         .known = {{.id = "a",
                                    .health = {any(r, HealthState::kUnknown), time_from(r, 0), time_from(r, 0)},
                                    .drain_deadline = maybe(r, time_from(r, 0))}}};
    v1::Record record;
    to_wire(told, *record.mutable_start());
    const auto heard = beginning_of(through_json(record).start(), nullptr);
    ASSERT_TRUE(heard) << heard.error().message << "\n" << json_line(record);
    ASSERT_EQ(heard->config, told.config) << json_line(record);
    ASSERT_EQ(heard->seed, told.seed);
    ASSERT_EQ(heard->epoch, told.epoch);
    const Sci::Known &k = heard->known.at(0), &t = told.known[0];
    ASSERT_EQ(k.id, t.id);
    ASSERT_EQ(k.drain_deadline, t.drain_deadline);
    ASSERT_EQ(k.health.state, t.health.state);
    ASSERT_EQ(k.health.age, t.health.age);
    ASSERT_EQ(k.health.serves_age, t.health.serves_age);
  }
}

TEST(Wire, AnEmptyConfigurationIsAllDefaults) {
  v1::SciConfig config;
  config.set_csci_id("c");
  const auto spec = config_of(config);
  ASSERT_TRUE(spec);
  EXPECT_EQ(*spec, (SciSpec{.csci_id = "c", .cs_id = ""}));
}

// ---- what is refused, by its field

std::string fault_of(const std::string& json) {
  v1::Record record;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &record);
  if (!status.ok()) return status.ToString();
  if (record.has_start()) {
    const auto beginning = beginning_of(record.start(), nullptr);
    return beginning ? "" : beginning.error().message;
  }
  const auto time = time_of(record);
  if (!time) return time.error().message;
  Event out;
  const auto result = event_of(record, out);
  return result ? "" : result.error().message;
}

TEST(Wire, RefusesByTheField) {
  const std::pair<const char*, const char*> kRows[] = {
      {R"({"tick":{}})", "at: expected a time such as 12.5s"},
      {R"({"at":"-1s","tick":{}})", "at: expected a time of 0s to 1000000000s"},
      {R"({"at":"1000000001s","tick":{}})", "at: expected a time of 0s to 1000000000s"},
      {R"({"at":"1s"})", "what: expected an event of an SCI"},
      {R"({"at":"1s","transition":{}})", "what: expected an event of an SCI"},
      {R"({"at":"1s","check_result":{"si_id":"a"}})", "kind: expected one of its words"},
      {R"({"at":"1s","check_result":{"kind":7,"outcome":1}})", "kind: expected one of its words"},
      {R"({"at":"1s","config_changed":{}})",
       "config_changed: expected a good one, but config: csci_id: expected a name"},
      {R"({"start":{}})", "start has no config, and no site file says one for this CSCI-ID"},
      {R"({"start":{"config":{"csci_id":"c","health":{"liveness":{"interval":"0s"}}}}})",
       "config: interval of a probe: expected a time of more than 0s to 1000000000s"},
      {R"({"start":{"config":{"csci_id":"c","health":{"liveness":{"fall":0}}}}})",
       "config: fall: expected 1 to 4294967295"},
      {R"({"start":{"config":{"csci_id":"c","report":{"rate":{"burst":0}}}}})", "config: burst: expected 1 to 1000000"},
      {R"({"start":{"config":{"csci_id":"c","safety_margin":1.5}}})", "config: safety_margin: expected 0 to 1"},
      {R"({"start":{"config":{"csci_id":"c","safety_margin":"NaN"}}})", "config: safety_margin: expected 0 to 1"},
      {R"({"start":{"config":{"csci_id":"c","instances":[{"si_id":"a","port":65536}]}}})",
       "config: port: expected 0 to 65535"},
      {R"({"start":{"config":{"csci_id":"c","instances":[{"si_id":"a"},{"si_id":"a"}]}}})",
       "config: si_id: expected each once, but a is twice"},
  };
  for (const auto& [json, fault] : kRows) EXPECT_EQ(fault_of(json), fault) << json;
}

// ---- reports

// The C-SMA document's example row: 188.3.67.3:67, ARS, 400 slots, 5 ms, HEALTHY; two instances of it.
Report example() {
  Report report{.csci_id = "188.3.67.3:67",
                .cs_id = "ARS",
                .timestamp_ms = 1'700'000'000'250,
                .epoch = 1'700'000'000'000,
                .sequence = 12,
                .full = true,
                .trigger = Trigger::kHealth,
                .reasons = {Trigger::kPeriodic, Trigger::kHealth},
                .reporting_interval = 60 * kSecond,
                .ledger_age = 20 * kMillisecond,
                .state = {},
                .security_events = {}};
  report.state.gas = Gas{400, 390, 10, 3, 0};
  report.state.computing_time = {.value = 5, .minimum = 4, .maximum = 7, .minimum_tokens = 0, .maximum_tokens = 900};
  report.state.health = {.healthy = 1, .degraded = 1, .unhealthy = 0, .unknown = 0};
  report.state.price = 0;
  report.state.instances = {{"si-1", HealthState::kHealthy, Admin::kEnabled, 400, 10},
                            {"si-2", HealthState::kDegraded, Admin::kEnabled, 200, 190}};
  return report;
}

TEST(Wire, ReportOfTheDocumentAsOneLine_SCI112_SCI113_SCI114_SCI115_SCI116_SCI117_SCI118_SCI119_SCI120_D42) {
  EXPECT_EQ(
      json_line(example()),
      R"({"csci_id":"188.3.67.3:67","cs_id":"ARS","timestamp":"2023-11-14T22:13:20.250Z","epoch":"1700000000000",)"
      R"("sequence":"12","kind":"REPORT_KIND_FULL","trigger":"TRIGGER_HEALTH",)"
      R"("reasons":["TRIGGER_PERIODIC","TRIGGER_HEALTH"],"reporting_interval":"60s","gas":400,)"
      R"("gas_breakdown":{"healthy_free":"390","degraded_free":"10","provisional":"3","over_limit":"0"},)"
      R"("computing_time_milliseconds":5,"computing_time_minimum":{"milliseconds":4,"input_tokens":0},)"
      R"("computing_time_maximum":{"milliseconds":7,"input_tokens":900},)"
      R"("health_summary":{"healthy":1,"degraded":1,"unhealthy":0,"unknown":0},"price":0,"admin":"ADMIN_ENABLED",)"
      R"("ledger_age":"0.020s","instances":[{"si_id":"si-1","health":"HEALTH_STATE_HEALTHY","admin":"ADMIN_ENABLED",)"
      R"("limit":400,"active_sessions":10},{"si_id":"si-2","health":"HEALTH_STATE_DEGRADED","admin":"ADMIN_ENABLED",)"
      R"("limit":200,"active_sessions":190}]})");
}

TEST(Wire, AReportComesBackAsItWas_CSMA55) {
  const auto back = report_of_json(json_line(example()));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(json_line(*back), json_line(example()));
  EXPECT_EQ(back->state.health, example().state.health);
  EXPECT_EQ(back->reasons, example().reasons);
}

// Proto3: numbers of a newer version arrive as they are; design: an unknown health is UNHEALTHY.
TEST(Wire, WhatAReportMustHaveAndWhatIsTakenFor) {
  v1::Report good;
  to_wire(example(), good);
  const auto fault = [&good](auto&& change) {
    v1::Report changed = good;
    change(changed);
    const auto report = report_of(changed);
    return report ? std::string() : report.error().message;
  };
  EXPECT_EQ(fault([](v1::Report&) {}), "");
  EXPECT_EQ(fault([](v1::Report& r) { r.clear_timestamp(); }), "timestamp: expected when the metrics were made");
  EXPECT_EQ(fault([](v1::Report& r) { r.clear_kind(); }), "kind: expected FULL or DELTA");
  EXPECT_EQ(fault([](v1::Report& r) { r.clear_trigger(); }), "trigger: expected one of its words");
  EXPECT_EQ(fault([](v1::Report& r) { r.set_trigger(static_cast<v1::Trigger>(99)); }),
            "trigger: expected one of its words");
  EXPECT_EQ(fault([](v1::Report& r) { r.clear_health_summary(); }),
            "health_summary: expected how many instances are in which state");
  EXPECT_EQ(fault([](v1::Report& r) { r.mutable_reporting_interval()->set_seconds(-1); }),
            "reporting_interval: expected a time of 0s to 1000000000s");
  v1::Report odd = good;
  odd.mutable_instances(0)->set_health(static_cast<v1::HealthState>(99));
  odd.mutable_instances(1)->clear_health();
  const auto report = report_of(odd);
  ASSERT_TRUE(report);
  for (const InstanceDetail& detail : report->state.instances) EXPECT_EQ(detail.health, HealthState::kUnhealthy);
}

TEST(Wire, WhatIsNotKnownIsAbsentAndWhatIsZeroIsThere_D42) {
  Report report{.csci_id = "c", .cs_id = "s", .reasons = {}, .ledger_age = {}, .state = {}, .security_events = {}};
  v1::Report out;
  to_wire(report, out);
  EXPECT_FALSE(out.has_gas() || out.has_gas_breakdown() || out.has_computing_time_milliseconds());
  EXPECT_FALSE(out.has_computing_time_minimum() || out.has_computing_time_maximum() || out.has_ledger_age());
  EXPECT_FALSE(out.has_price() || out.has_reputation() || out.has_security_level());
  report.state.gas = Gas{};
  report.state.reputation = 0;
  report.state.security_level = 0;
  report.state.computing_time.maximum = 7;
  v1::Report zero;
  to_wire(report, zero);
  EXPECT_TRUE(zero.has_gas() && zero.gas() == 0 && zero.has_gas_breakdown());
  EXPECT_TRUE(zero.has_computing_time_maximum() && !zero.computing_time_maximum().has_input_tokens());
  EXPECT_TRUE(zero.has_reputation() && zero.has_security_level() && !zero.has_price());
}

TEST(Wire, DeltaSecurityEventsAndALostDataPlane_D21) {
  Report report{.csci_id = "c",
                .cs_id = "s",
                .full = false,
                .trigger = Trigger::kSecurity,
                .reasons = {},
                .ledger_age = {},
                .state = {},
                .security_events = {{"flood", 1'700'000'000'000}},
                .security_events_dropped = 4};
  report.state.data_plane_lost = true;
  v1::Report out;
  to_wire(report, out);
  EXPECT_EQ(out.kind(), v1::REPORT_KIND_DELTA);
  EXPECT_EQ(out.trigger(), v1::TRIGGER_SECURITY);
  EXPECT_TRUE(out.data_plane_lost());
  ASSERT_EQ(out.security_events_size(), 1);
  EXPECT_EQ(out.security_events(0).what(), "flood");
  EXPECT_EQ(out.security_events(0).time().seconds(), 1'700'000'000);
  EXPECT_EQ(out.security_events_dropped(), 4u);
}

TEST(Wire, NoTextAndNoClockMakesABadMessage) {
  Report report = example();
  report.csci_id = "a\xff\xc3z";
  report.timestamp_ms = -1;
  EXPECT_NE(json_line(report).find("\"1969-12-31T23:59:59.999Z\""), std::string::npos) << json_line(report);
  EXPECT_EQ(json_line(report).find("{\"csci_id\":\"a\xef\xbf\xbd\xef\xbf\xbdz\""), 0u) << json_line(report);
  report.timestamp_ms = std::numeric_limits<int64_t>::max();
  EXPECT_NE(json_line(report).find("\"9999-12-31T23:59:59Z\""), std::string::npos) << json_line(report);
  report.timestamp_ms = std::numeric_limits<int64_t>::min();
  EXPECT_NE(json_line(report).find("\"0001-01-01T00:00:00Z\""), std::string::npos) << json_line(report);
}

}  // namespace
}  // namespace margay::control
