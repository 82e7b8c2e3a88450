// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which work on which instance is due when: the checks and the scrape. Pure; one thread; O(log n) a step.
//
// Each piece of work has a grid of its own, its phase spread over the interval by a hash of the seed, so that hundreds
// of instances are never probed in one instant, nor in step after a common event; up to a tenth of the interval of
// jitter comes on top of each grid point, so that a probe does not keep step with something periodic either. From a
// failure to its end work comes at the confirm interval instead. Two pieces of one kind are never in flight for one
// instance, and one that hangs delays nothing but itself.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/units.h"

namespace margay::control {

enum class Work : uint8_t { kLiveness, kReadiness, kPerformance, kScrape };

struct WorkPlan {
  Nanoseconds interval = 0;  // > 0
  Nanoseconds confirm = 0;   // > 0, at most the interval
  Nanoseconds timeout = 0;
  bool operator==(const WorkPlan&) const = default;
};

class CheckPlan {
 public:
  struct Key {
    uint32_t instance = 0;  // never used again
    Work work{};
    auto operator<=>(const Key&) const = default;
  };
  struct Due {
    Key key;
    uint64_t serial = 0;       // to be given back; a late answer to an older one is no answer
    Nanoseconds deadline = 0;  // the instance has to have answered
  };

  // What the prober may be late with the news of a time-out before that counts as a fault of its own.
  static constexpr Nanoseconds kGrace = kSecond;

  explicit CheckPlan(uint64_t seed) : seed_(seed) {}

  // Adds work, or changes its plan: what is in flight stays so, and the same plan again changes nothing. The first
  // comes within one interval and its jitter, the confirm interval if `confirm`.
  void set(Key key, const WorkPlan& plan, bool confirm, Nanoseconds now);
  void remove(Key key);

  // At most `max` pieces that are due; they are in flight then. More may be left: next_due() says so.
  std::vector<Due> take(Nanoseconds now, size_t max);
  bool in_flight(Key key, uint64_t serial) const;
  // When it began. REQUIRES: in flight
  Nanoseconds started(Key key) const { return items_.at(key).started; }
  // Back to waiting. REQUIRES: in flight
  void finish(Key key, bool confirm, Nanoseconds now);
  // What waits for longer comes within the confirm interval and its jitter.
  void hasten(Key key, Nanoseconds now);
  // Those in flight whose prober is past its grace. Each is to be finished by the caller.
  std::vector<Due> overdue(Nanoseconds now) const;

  // When take() or overdue() have something to say; kNever: never.
  Nanoseconds next_due() const;
  size_t size() const { return items_.size(); }

 private:
  struct Item {
    WorkPlan plan;
    Nanoseconds due = 0;  // waiting: when; in flight: the end of grace
    Nanoseconds started = 0, deadline = 0;
    uint64_t serial = 0;  // 0: waiting
  };
  using Queue = std::set<std::pair<Nanoseconds, Key>>;

  Nanoseconds grid_after(Key key, Nanoseconds interval, Nanoseconds now) const;
  void wait_until(Key key, Item& item, Nanoseconds due);

  uint64_t seed_;
  uint64_t serial_ = 0;
  std::map<Key, Item> items_;
  Queue waiting_, flying_;  // by due time, by the end of grace
};

}  // namespace margay::control
