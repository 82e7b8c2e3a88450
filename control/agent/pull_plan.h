// SPDX-License-Identifier: Apache-2.0
#pragma once

// When each SCI that is to be asked is asked (CSMA-29, 31, 69): at its interval, at once where the C-SMA's core wants
// it, and after a failure by a backoff with jitter of its own, at most its interval. Bounded: kAtOnceMax questions are
// under way at a time, one an SCI; what the core wants goes first. Pure; one thread.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/c_sma_spec.h"
#include "control/northbound/core/backoff.h"

namespace margay::control {

class PullPlan {
 public:
  static constexpr size_t kAtOnceMax = 64;
  static constexpr Nanoseconds kFirstWait = kSecond, kLongestWait = 60 * kSecond;  // CSMA-170's

  struct Pull {
    PullTarget target;
    uint64_t answered = 0, failed = 0;
    std::string fault = {};    // of the last one; empty: answered, or none yet
    Nanoseconds asked_at = 0;  // the last one
    bool under_way = false;
    bool wanted = false;  // by the core
    Nanoseconds due = kNever;
    northbound::Backoff backoff;
  };
  struct Finished {
    bool wanted = false;  // by the core, which waits for the outcome
    bool news = false;    // another fault than before, or the first answer after one
  };

  explicit PullPlan(uint64_t seed) : seed_(seed) {}

  // Those that stay as they are keep all that is known of them. New ones begin within their first second.
  void configure(const std::vector<PullTarget>& targets, Nanoseconds now);
  // The core wants a report of it, now. False: it is not asked this way.
  bool want(const std::string& csci_id);
  // Who is to be asked now; each is under way from here on.
  std::vector<std::string> begin(Nanoseconds now);
  // What became of one that is under way. Nothing, of one that is not: the site file says no more of it, or something
  // else.
  std::optional<Finished> answered(const std::string& csci_id, Nanoseconds now);
  std::optional<Finished> failed(const std::string& csci_id, const std::string& why, Nanoseconds now);

  Nanoseconds next_due() const { return due_.empty() || under_way_ >= kAtOnceMax ? kNever : due_.begin()->first; }
  const std::map<std::string, Pull>& pulls() const { return pulls_; }  // by CSCI-ID
  struct Totals {
    uint64_t answered = 0, failed = 0;
  };
  const Totals& totals() const { return totals_; }  // of all that there ever were

 private:
  Finished finish(Pull& pull, const std::string& fault, Nanoseconds due);
  void set_due(const std::string& csci_id, Pull& pull, Nanoseconds due);

  uint64_t seed_;
  std::map<std::string, Pull> pulls_;
  std::set<std::pair<Nanoseconds, std::string>> due_;  // of those that are not under way
  size_t under_way_ = 0;
  Totals totals_;
};

}  // namespace margay::control
