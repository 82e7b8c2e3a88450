// SPDX-License-Identifier: Apache-2.0
// Configurations, events and states of a C-SMA as lines and back; a recorded run replayed; lines that are wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "control/record/recorder.h"
#include "control/record/replay.h"
#include "margay/v1/sci_events.pb.h"
#include "tests/support/seed.h"
#include "tests/unit/control/c_sma/c_sma_rig.h"
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
using namespace c_sma;
using c_sma::test::kUnix;
using c_sma::test::Said;
using c_sma::test::sci;

Nanoseconds span(Random& r) { return time_from(r, 1); }

CSmaConfig any_config(Random& r) {
  CSmaConfig c{.identity = name(r), .accept = {{"a " + name(r), name(r), maybe(r, number(r))}, {"b", "ARS"}}};
  for (Range& range : c.validation.ranges) range = {r.below(100), 100 + r.below(1000)};
  c.validation.gas_anomaly = {share(r, 4), span(r), number(r)};
  c.validation.computing_time_anomaly = {share(r, 4), span(r), span(r)};
  c.validation.flapping = {number(r), span(r)};
  c.validation.anomalous = any(r, Anomalous::kFlag);
  c.validation.skew_alarm = span(r);
  c.validation.skew_refuse = span(r);
  c.validation.consistency = any(r, Consistency::kCsId);
  c.cache = {.max_entries = 1 + r.below(1000),
             .at_limit = any(r, AtLimit::kRefuse),
             .quota_per_identity = share(r, 1),
             .quota_per_cs_id = share(r, 1),
             .ttl_gas = maybe(r, span(r)),
             .ttl_computing_time = maybe(r, span(r)),
             .ttl_optional = maybe(r, span(r)),
             .grace = span(r),
             .stale = any(r, Stale::kDecay)};
  c.self_doubt = {share(r, 1), span(r)};
  c.transform = {.safety_margin = share(r, 1),
                 .computing_time_min_ms = r.below(10),
                 .computing_time_max_ms = 10 + r.below(10),
                 .computing_time = any(r, Aggregate::kP95),
                 .gas_smoothing = maybe(r, Smoothing{share(r, 1), span(r)})};
  c.updates = {.gas_change = share(r, 4),
               .gas_absolute = number(r),
               .computing_time_change = share(r, 4),
               .heartbeat = span(r),
               .minimum_interval = span(r),
               .rate = {1 + r.below(1'000'000), 1 + r.below(9)},
               .critical = {1 + r.below(1'000'000), 1 + r.below(9)},
               .backoff_initial = 1 + r.below(1000),
               .backoff_max = 1001 + r.below(1000),
               .advertise = any(r, Advertise::kBoth),
               .valid_for = span(r)};
  return c;
}

SavedState any_state(Random& r) {
  return {.saved_ms = kUnix + r.below(1000),
          .orders = {{"a", {r.next(), r.next()}}},
          .entries = {{.csci_id = "b",
                       .cs_id = "ARS",
                       .identity = name(r),
                       .metrics = {maybe(r, number(r)), maybe(r, number(r)), {}, number(r), {}, maybe(r, 3u), 4u},
                       .health = {r.below(3), r.below(3), 5, r.below(3)},
                       .admin = any(r, Admin::kDisabled),
                       .reporting_interval = span(r),
                       .age = span(r)}}};
}

c_sma::Event any_event(Random& r) {
  switch (r.below(11)) {
    case 0: {
      Report report =
          c_sma::test::report_of("a", "ARS", r.next(), {.gas = number(r), .price = maybe(r, number(r))}, kUnix + 1);
      report.reasons = {Trigger::kHealth, Trigger::kAdmin};
      report.trigger = Trigger::kAdmin;
      report.state.instances = {{"si", HealthState::kUnknown, Admin::kDraining, 3, 4}};
      report.security_events = {{"flood", kUnix}};
      const Peer peer{.identity = name(r), .names = {{"a", "ARS"}, {"b", name(r)}}, .co_located = r.one_in(2)};
      return ReportReceived{report, std::make_shared<Peer>(peer), r.next(), r.one_in(2)};
    }
    case 1:
      return ReportUnreadable{name(r), name(r), name(r), r.next()};
    case 2:
      return StreamClosed{r.next()};
    case 3:
      return PullFailed{name(r), name(r)};
    case 4:
      return Revoked{name(r)};
    case 5:
      return c_sma::ConfigChanged{any_config(r)};
    case 6:
      return QuarantineRelease{name(r), name(r)};
    case 7:
      return QuarantineDrop{name(r), name(r)};
    case 8:
      return EpochReset{name(r), name(r)};
    case 9:
      return LoopLate{span(r)};
    default:
      return c_sma::Tick{};
  }
}

TEST(CSmaRecord, AnEventComesBackFromItsLine) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  Random random(seed);
  for (int i = 0; i < 2000; ++i) {
    const c_sma::Event told = any_event(random);
    v1::Record record, again;
    to_wire(told, {7, kUnix}, record);
    c_sma::Event heard;
    const auto read = event_of(through_json(record), heard);
    ASSERT_TRUE(read) << read.error().message << "\n" << json_line(record);
    ASSERT_EQ(heard.index(), told.index());
    to_wire(heard, {7, kUnix}, again);
    ASSERT_EQ(json_line(again), json_line(record));
  }
}

TEST(CSmaRecord, ABeginningComesBackFromItsLine) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  Random random(seed);
  for (int i = 0; i < 1000; ++i) {
    const CSmaBeginning told{any_config(random), any_state(random), 1 + random.next() / 2};
    v1::Record record;
    to_wire(told, *record.mutable_c_sma_start());
    const auto heard = beginning_of(through_json(record).c_sma_start(), nullptr);
    ASSERT_TRUE(heard) << heard.error().message << "\n" << json_line(record);
    ASSERT_EQ(heard->config, told.config) << json_line(record);
    ASSERT_EQ(heard->saved, told.saved) << json_line(record);
    ASSERT_EQ(heard->epoch, told.epoch);
  }
  const auto config = config_of(v1::CSmaConfig{});
  ASSERT_TRUE(config);
  EXPECT_EQ(*config, CSmaConfig{}) << "an empty one is not all defaults";
}

class CSmaReplay : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& path : {in, out}) std::remove(path.c_str());
  }
  void given(const std::string& text) { std::ofstream(in, std::ios::trunc) << text; }
  std::string fault(ReplaySite site = {}) {
    const auto done = replay_file(in, out, std::move(site));
    return done ? "" : done.error().message;
  }
  static std::string read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::string in = testing::TempDir() + "margay_c_sma_in_" + std::to_string(getpid());
  std::string out = testing::TempDir() + "margay_c_sma_out_" + std::to_string(getpid());
};

// A running C-SMA: reports of all sorts, on streams and without, silences, ticks that come late, a clock that is set,
// configurations, operators, and restarts. Keeps the lines of its actions aside.
class Run {
 public:
  Run(const std::string& path, uint64_t seed) : r_(seed) { EXPECT_TRUE(recorder_.open(path)); }

  void begin(uint64_t epoch) {
    epoch_ = epoch;
    config_ = c_sma::test::config_of(6);
    const SavedState saved = core_ ? core_->save(now_) : SavedState{};
    recorder_.begin_c_sma({config_, saved, epoch}, now_);
    core_ = std::make_unique<CSma>(config_, saved, now_);
  }
  void go_on() {
    const std::string csci_id = sci(r_.below(6));
    if (r_.one_in(3)) {
      report(csci_id);
    } else if (r_.one_in(20)) {
      tell(QuarantineRelease{csci_id, "op"});
    } else if (r_.one_in(40)) {
      config_.updates.gas_absolute = r_.below(100);
      tell(c_sma::ConfigChanged{config_});
    } else if (r_.one_in(20)) {
      tell(PullFailed{csci_id, "no stream"});
    } else {
      const Nanoseconds due = std::max(now_.monotonic, core_->next_due()) + r_.below(20 * kSecond);
      now_.monotonic = r_.one_in(4) ? due : now_.monotonic + r_.below(kSecond);
      tell(c_sma::Tick{});
    }
    now_.unix_ms += r_.one_in(200) ? -3'600'000 : r_.below(1000);
  }
  void report_all() {  // so that there is something to restore
    for (uint32_t i = 0; i < 6; ++i) tell(ReportReceived{next(sci(i), {}, now_.unix_ms), own_, 0, false});
  }
  const std::string& actions() const { return actions_; }

 private:
  Report next(const std::string& csci_id, Said said, int64_t unix_ms) {
    said.epoch = epoch_;
    return c_sma::test::report_of(csci_id, "ARS", ++sequences_[csci_id], said, unix_ms);
  }
  void report(const std::string& csci_id) {
    Said said{.gas = r_.below(500), .computing_time = 1 + r_.below(40)};
    if (r_.one_in(4)) said.health = {r_.below(2), r_.below(2), r_.below(2), 0};
    if (r_.one_in(30)) said.trigger = Trigger::kStop;
    const Report report = next(csci_id, said, now_.unix_ms + r_.below(9000));
    tell(ReportReceived{report, r_.one_in(8) ? peer_ : own_, r_.one_in(8) ? r_.below(4) : 0, r_.one_in(4)});
  }
  void tell(const c_sma::Event& event) {
    recorder_.event(config_.identity, event, now_);
    for (const c_sma::Action& action : core_->handle(event, now_)) {
      recorder_.action(config_.identity, action, now_);
      v1::Record record;
      record.set_c_sma(config_.identity);
      to_wire(action, now_, record);
      actions_ += json_line(record) + '\n';
    }
  }

  Random r_;
  Recorder recorder_;
  CSmaConfig config_;
  std::unique_ptr<CSma> core_;
  uint64_t epoch_ = 0;
  Time now_{c_sma::test::kBegin, kUnix};
  std::map<std::string, uint64_t> sequences_;
  std::string actions_;
  const std::shared_ptr<const Peer> peer_ =
      std::make_shared<const Peer>(Peer{.identity = "peer", .names = {{sci(0), "ARS"}, {sci(1), "ARS"}}});
  const std::shared_ptr<const Peer> own_ =
      std::make_shared<const Peer>(Peer{.identity = "this process", .names = {}, .co_located = true});
};

std::string record_a_c_sma(const std::string& path, uint64_t seed) {
  Run run(path, seed);
  for (uint64_t epoch = 3; epoch < 5; ++epoch) {
    run.begin(epoch);
    for (int i = 0; i < 800; ++i) run.go_on();
    run.report_all();
  }
  return run.actions();
}

TEST_F(CSmaReplay, ARecordingComesOutAsItWas) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  const std::string actions = record_a_c_sma(in, seed);
  EXPECT_EQ(fault(), "");
  ASSERT_GT(std::count(actions.begin(), actions.end(), '\n'), 1000);
  EXPECT_TRUE(read(out) == actions) << "the actions differ";
  for (const char* word :
       {"QUARANTINED", "REFUSED", "pull_wanted", "withdrawals", "close_stream", "STALE", R"("restored":true)"}) {
    EXPECT_NE(actions.find(word), std::string::npos) << "the run has no " << word;
  }
}

// Wherever it is cut off, there is one line about it, or nothing is missing but the rest.
TEST_F(CSmaReplay, ARecordingThatIsCutOff) {
  record_a_c_sma(in, 1);
  const std::string whole = read(in).substr(0, 12'000);
  for (size_t bytes = 1; bytes < whole.size(); bytes += 61) {
    given(whole.substr(0, bytes));
    const std::string said = fault();
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    if (whole[bytes - 1] == '\n' || whole[bytes] == '\n') continue;  // whole lines
    EXPECT_EQ(said.find(in + ":"), 0u) << bytes << " bytes: " << said;
  }
}

const std::string kBegun =
    R"({"c_sma":"x","at":"10s","c_sma_start":{"config":{"accept":[{"csci_id":"a","cs_id":"A"}]}}})"
    "\n";
std::string line(const std::string& what) { return R"({"c_sma":"x","at":"11s",)" + what + "}\n"; }

TEST_F(CSmaReplay, AWrongLineIsOneErrorWithItsNumber) {
  const auto start = [](const std::string& config) {
    return R"({"c_sma":"x","at":"1s","c_sma_start":{"config":)" + config + "}}\n";
  };
  const std::string c_ps = kBegun + line(R"("c_ps":{"identity":"p","cs_ids":["A"]})");
  const std::pair<std::string, std::string> kRows[] = {
      {line(R"("tick":{})"), ":1: `x` has no start before this"},
      {R"({"c_sma":"x","at":"1s","c_sma_start":{}})", ":1: c_sma_start has no config, and no site file says one"},
      {R"({"c_sma":"x","csci_id":"a","at":"1s","tick":{}})", ":1: expected csci_id or c_sma, not both"},
      {start(R"({"identity":"y"})"), ":1: start of `x` with the config of `y`"},
      {start(R"({"accept":[{"csci_id":"a"}]})"), ":1: config: accept: expected ids of 1 to 255 bytes"},
      {start(R"({"cache":{"max_entries":0}})"), ":1: config: max_entries: expected 1 to 10000000"},
      {start(R"({"updates":{"heartbeat":"0s"}})"), ":1: config: heartbeat: expected a time of more than 0s to"},
      {start(R"({"updates":{"backoff_max":"0.5s"}})"), ":1: config: backoff_initial: expected not above backoff_max"},
      {start(R"({"cache":{"stale":"STALE_ROTTEN"}})"), ":1: "},
      {kBegun + line(R"("check_result":{})"), ":2: what: expected an event of a C-SMA"},
      {kBegun + line(R"("start":{})"), ":2: what: expected an event of a C-SMA"},
      {kBegun + line(R"("loop_late":{"by":"-1s"})"), ":2: by: expected a time of 0s to"},
      {kBegun + line(R"("report_received":{"report":{"csci_id":"a","kind":7}})"),
       ":2: report: expected a good one, but kind: expected FULL or DELTA"},
      {kBegun + line(R"("c_ps":{})"), ":2: c_ps.identity: expected a name"},
      {kBegun + line(R"("c_ps_says":{"identity":"p"})"), ":2: c_ps_says.identity: expected one that a c_ps has named"},
      {c_ps + line(R"("c_ps_says":{"identity":"p","message":{"sync_request":{}}})"),
       ":3: c_ps_says: p: has no session"},
      {c_ps + R"({"c_sma":"x","at":"20s","c_ps_says":{"identity":"p","message":{}}})",
       ":3: c_ps_says: p: body: expected one that is known"},
      {R"({"csci_id":"c","at":"1s","start":{"config":{"csci_id":"c"}}})"
       "\n"
       R"({"csci_id":"c","at":"1s","loop_late":{}})",
       ":2: what: expected an event of an SCI"},
  };
  for (const auto& [text, expected] : kRows) {
    given(text);
    const std::string said = fault();
    EXPECT_EQ(said.find(in + expected), 0u) << "expected " << expected << "\ngot      " << said << "\nof " << text;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

TEST_F(CSmaReplay, AStartWithoutAConfigTakesTheSitesOwn) {
  given(R"({"c_sma":"c-sma","at":"1s","c_sma_start":{}})"
        "\n"
        R"({"c_sma":"c-sma","at":"2s","report_received":{"report":{"csci_id":"188.3.67.3:67","gas":400}}})"
        "\n");
  EXPECT_EQ(fault({.c_sma = c_sma::test::example_config()}), "");
  EXPECT_NE(read(out).find(R"("commit":{"cs_id":"ARS","cause":"DISCOVERY","critical":true,)"), std::string::npos)
      << read(out);
}

}  // namespace
}  // namespace margay::control
