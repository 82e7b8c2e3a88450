// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many changes a second, each a snapshot of its own: instances of all SCIs but the first flip their health at random,
// now and then an endpoint moves, and of the first SCI, which has the traffic, one instance after the other is
// UNHEALTHY for a while. Tells when each of those verdicts was committed, acked and taken back, by the wall clock as
// captures have it.

#include <time.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/monotonic.h"
#include "common/shared_table/writer.h"
#include "tests/support/seed.h"

namespace margay::test {

class TableStorm {
 public:
  // `site` is what runs, and is kept so. REQUIRES: two SCIs, both with instances
  TableStorm(shared_table::Writer& writer, shared_table::Snapshot& site) : writer_(writer), site_(site) {}

  nlohmann::json run(double seconds, uint32_t rate) {
    const auto began = Clock::now();
    const auto changes = static_cast<uint64_t>(seconds * rate);
    const uint64_t dwell = rate / 5;  // changes: the time that an instance is down, and as long all are up
    for (uint64_t n = 0; n < changes && !gone_; ++n) {
      std::this_thread::sleep_until(began + std::chrono::nanoseconds(n * kSecond / rate));
      if (n % (2 * dwell) == 0) {
        bring_down(n / (2 * dwell) % site_.scis[0].instances.size());
      } else if (n % (2 * dwell) == dwell) {
        bring_up();
      } else {
        change_another(n);
      }
      hear();
    }
    const double took = std::chrono::duration<double>(Clock::now() - began).count();
    bring_up();
    for (int i = 0; i < 10'000 && !gone_ && acked_ < site_.generation; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      hear();
    }
    return {{"changes", changes},
            {"seconds", took},
            {"refused", refused_},
            {"gone", gone_},
            {"acked", acked_ == site_.generation},
            {"verdicts", verdicts_}};
  }

 private:
  using Clock = std::chrono::steady_clock;

  static double wall_clock() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  void set(shared_table::SciRecord& sci, size_t i, HealthState state) const {
    shared_table::InstanceRecord& record = sci.instances[i];
    record.health = state;
    record.health_since = monotonic_now();
    record.limit = limit_of(state, record.config.max_sessions, Share(sci.policy.degradation_factor));
  }

  void bring_down(size_t i) {
    shared_table::SciRecord& sci = site_.scis[0];
    down_ = i;
    set(sci, i, HealthState::kUnhealthy);
    verdicts_.push_back({{"id", sci.instances[i].config.id}, {"committed", wall_clock()}});
    commit(sci);
    down_in_ = site_.generation;
  }
  void bring_up() {
    if (down_in_ == 0) return;
    set(site_.scis[0], down_, HealthState::kHealthy);
    verdicts_.back()["ended"] = wall_clock();
    down_in_ = 0;
    commit(site_.scis[0]);
  }
  void change_another(uint64_t n) {
    shared_table::SciRecord& sci = site_.scis[1 + random_.below(site_.scis.size() - 1)];
    if (n % 100 == 50) {
      sci.policy.endpoints[0].port = static_cast<uint16_t>(10'000 + random_.below(10'000));
    } else {
      set(sci, random_.below(sci.instances.size()), static_cast<HealthState>(random_.below(kHealthStates)));
    }
    commit(sci);
  }

  void commit(const shared_table::SciRecord& sci) {
    shared_table::Snapshot change;
    change.base = site_.generation;
    change.generation = ++site_.generation;
    change.scis = {sci};
    while (!gone_ && !writer_.commit(change)) hear();
  }
  void hear() {
    const auto news = writer_.news();
    refused_ += news.refused.size();
    gone_ = gone_ || news.gone;
    if (!news.acked) return;
    acked_ = *news.acked;
    if (down_in_ > 0 && acked_ >= down_in_ && !verdicts_.back().contains("acked")) {
      verdicts_.back()["acked"] = wall_clock();
    }
  }

  shared_table::Writer& writer_;
  shared_table::Snapshot& site_;
  Random random_{test_seed()};
  nlohmann::json verdicts_ = nlohmann::json::array();
  size_t down_ = 0;       // an instance of the first SCI,
  uint64_t down_in_ = 0;  // since this generation, 0: none
  uint64_t acked_ = 0, refused_ = 0;
  bool gone_ = false;
};

}  // namespace margay::test
