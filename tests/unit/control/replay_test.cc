// SPDX-License-Identifier: Apache-2.0
// Replay itself: a recording comes out as it was, and what is wrong with a stream is said by its line.
#include "control/record/replay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "control/record/recorder.h"
#include "margay/v1/sci_events.pb.h"
#include "tests/support/file_text.h"
#include "tests/support/seed.h"
#include "tests/unit/control/sci_rig.h"

namespace margay::control {
namespace {

using margay::test::Random;

std::string line_of(const std::string& csci_id, const Action& action, Time at) {
  v1::Record record;
  record.set_csci_id(csci_id);
  to_wire(action, at, record);
  return json_line(record) + '\n';
}

class ReplayFile : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& path : {in, out}) std::remove(path.c_str());
  }
  void given(const std::string& text) { std::ofstream(in) << text; }
  std::string fault(ReplaySite site = {}) {
    const auto done = replay_file(in, out, std::move(site));
    return done ? "" : done.error().message;
  }
  std::string in = testing::TempDir() + "margay_replay_in_" + std::to_string(getpid());
  std::string out = testing::TempDir() + "margay_replay_out_" + std::to_string(getpid());
};

// A running SCI with answers that come late, in any order and not at all, ticks that come late, and a wall clock that
// is set: all of it goes through the recorder, and the actions are kept aside.
std::string record_a_run(const std::string& path, uint64_t seed) {
  Random random(seed);
  SciSpec config = test::two_instances();
  config.health.readiness = ProbeConfig{.http = "http://{address}:{port}/ready", .interval = 3 * kSecond};
  config.health.performance = PerformanceConfig{.response_time = 50 * kMillisecond, .interval = 5 * kSecond};
  config.metrics.prometheus = "http://{address}/metrics";
  Time now{test::kBegin, 1'700'000'000'000};
  const Beginning beginning{.config = config,
                            .seed = seed,
                            .epoch = 9,
                            .known = {{.id = "si-1", .health = {HealthState::kDegraded, kSecond, kSecond}}}};
  Recorder recorder;
  EXPECT_TRUE(recorder.open(path));
  recorder.begin(beginning, now);
  Sci sci(config, beginning.seed, beginning.epoch, beginning.known, now.monotonic);
  std::string actions;
  std::vector<Event> answers;
  for (int i = 0; i < 2000; ++i) {
    Event event = Tick{};
    if (!answers.empty() && !random.one_in(4)) {
      const uint32_t which = random.below(answers.size());
      event = answers[which];
      answers.erase(answers.begin() + which);
    } else if (random.one_in(5)) {
      event = LedgerSample{{{"si-1", {.active = random.below(200)}, {}}, {"si-2", {.active = random.below(200)}, {}}}};
    } else if (random.one_in(40)) {
      event = OperatorDrain{"si-2", random.one_in(2)};
    } else {
      now.monotonic = std::max(now.monotonic, sci.next_due()) + random.below(300 * kMillisecond);
    }
    now.unix_ms += random.one_in(50) ? -3'600'000 : random.below(1000);
    recorder.event(config.csci_id, event, now);
    for (const Action& action : sci.handle(event, now)) {
      recorder.action(config.csci_id, action, now);
      actions += line_of(config.csci_id, action, now);
      if (const auto* p = std::get_if<ProbeRequest>(&action)) {
        answers.emplace_back(CheckResult{p->id, p->kind, p->serial, random.one_in(3) ? Outcome::kFail : Outcome::kPass,
                                         random.below(100 * kMillisecond), "so"});
      } else if (const auto* s = std::get_if<ScrapeRequest>(&action)) {
        answers.emplace_back(ScrapeResult{s->id,
                                          s->serial,
                                          !random.one_in(4),
                                          {{Metric::kRequests, SampleKind::kCounter, random.below(1000) / 8.0}}});
      }
    }
  }
  return actions;
}

TEST_F(ReplayFile, ARecordingComesOutAsItWas) {
  const uint64_t seed = margay::test::test_seed();
  SCOPED_TRACE(margay::test::seed_text(seed));
  const std::string actions = record_a_run(in, seed);
  EXPECT_EQ(fault(), "");
  ASSERT_GT(std::count(actions.begin(), actions.end(), '\n'), 500);
  EXPECT_TRUE(margay::test::file_text(out) == actions) << "the actions differ";
  const std::string first = margay::test::file_text(out);
  EXPECT_EQ(fault(), "");
  EXPECT_TRUE(margay::test::file_text(out) == first) << "the same recording came out in two ways";
}

const std::string kStart = R"({"csci_id":"c","at":"10s","start":{"config":{"csci_id":"c"},"seed":"1","epoch":"2"}})"
                           "\n";
std::string tick(const std::string& at, const std::string& csci_id = "c") {
  return R"({"csci_id":")" + csci_id + R"(","at":")" + at +
         R"(","tick":{}})"
         "\n";
}

TEST_F(ReplayFile, AWrongLineIsOneErrorWithItsNumber) {
  const std::pair<std::string, std::string> kRows[] = {
      {kStart + "no json\n", ":2: "},
      {kStart + "\n", ":2: "},
      {kStart + R"({"csci_id":"c","at":"11s","tock":{}})", ":2: "},
      {kStart + R"({"csci_id":"c","at":"11s","check_result":{"outcome":"OUTCOME_GREAT"}})", ":2: "},
      {kStart + tick("12s") + tick("11.5s"), ":3: time goes back, from 12s to 11.500s"},
      {kStart + tick("12s", "d"), ":2: `d` has no start before this"},
      {kStart + R"({"csci_id":"c","tick":{}})", ":2: at: expected a time such as 12.5s"},
      {tick("12s"), ":1: `c` has no start before this"},
      {R"({"csci_id":"c","at":"1s","start":{}})",
       ":1: start has no config, and no site file says one for this CSCI-ID"},
      {R"({"csci_id":"c","at":"1s","start":{"config":{"csci_id":"d"}}})", ":1: start of `c` with the config of `d`"},
  };
  for (const auto& [text, expected] : kRows) {
    given(text);
    const std::string said = fault();
    EXPECT_EQ(said.find(in + expected), 0u) << text << "\n" << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    EXPECT_GT(said.size(), (in + expected).size() - 1) << said;
  }
}

TEST_F(ReplayFile, FilesThatAreNotThereOrAreTheSame) {
  EXPECT_EQ(fault(), in + ": No such file or directory");
  given(kStart);
  out = in;
  EXPECT_EQ(fault(), in + ": is the input");
  EXPECT_EQ(margay::test::file_text(in), kStart);
  out = in + "/x";
  EXPECT_EQ(fault(), out + ": Not a directory");
}

TEST_F(ReplayFile, AStartWithoutAConfigTakesTheSitesOwn) {
  given(R"({"csci_id":"192.0.2.10:80","at":"1s","start":{}})"
        "\n" +
        tick("2s", "192.0.2.10:80"));
  EXPECT_EQ(fault({.scis = {test::two_instances()}}), "");
  EXPECT_NE(margay::test::file_text(out).find(R"("si_id":"si-2")"), std::string::npos);
}

// After the machine was started anew: its clock begins again, and nothing of before goes on.
TEST_F(ReplayFile, ANewStartMayGoBack) {
  given(kStart + tick("20s") +
        R"({"csci_id":"c","at":"5s","start":{"config":{"csci_id":"c"},"epoch":"3"}})"
        "\n" +
        tick("6s"));
  EXPECT_EQ(fault(), "");
  EXPECT_NE(margay::test::file_text(out).find(
                R"("at":"6s","wall":"1970-01-01T00:00:06Z","report":{"csci_id":"c","timestamp":)"
                R"("1970-01-01T00:00:06Z","epoch":"3","sequence":"1")"),
            std::string::npos)
      << margay::test::file_text(out);
}

}  // namespace
}  // namespace margay::control
