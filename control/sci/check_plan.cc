// SPDX-License-Identifier: Apache-2.0
#include "control/sci/check_plan.h"

#include <algorithm>

#include "common/check.h"

namespace margay::control {
namespace {

// The finisher of SplitMix64.
uint64_t mix(uint64_t v) {
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9;
  v = (v ^ v >> 27) * 0x94d049bb133111eb;
  return v ^ v >> 31;
}
uint64_t mix(uint64_t seed, uint64_t a, uint64_t b) { return mix(mix(seed ^ a) + 0x9e3779b97f4a7c15 * (b + 1)); }

}  // namespace

// The next point of the key's grid after `now`, jitter included.
Nanoseconds CheckPlan::grid_after(Key key, Nanoseconds interval, Nanoseconds now) const {
  const Nanoseconds phase = mix(seed_, key.instance, static_cast<uint64_t>(key.work)) % interval;
  const Nanoseconds cycle = (now + interval - phase) / interval;
  const Nanoseconds point = cycle * interval + phase;
  return point + mix(seed_ + 1, key.instance, cycle) % std::max<Nanoseconds>(interval / 10, 1);
}

void CheckPlan::wait_until(Key key, Item& item, Nanoseconds due) {
  waiting_.erase({item.due, key});
  item.due = due;
  waiting_.emplace(due, key);
}

void CheckPlan::set(Key key, const WorkPlan& plan, bool confirm, Nanoseconds now) {
  const auto [it, fresh] = items_.try_emplace(key);
  Item& item = it->second;
  if (!fresh && item.plan == plan) return;
  item.plan = plan;
  if (item.serial != 0) return;
  wait_until(key, item, grid_after(key, confirm ? plan.confirm : plan.interval, now));
}

void CheckPlan::remove(Key key) {
  const auto found = items_.find(key);
  if (found == items_.end()) return;
  const Item& item = found->second;
  (item.serial == 0 ? waiting_ : flying_).erase({item.due, key});
  items_.erase(found);
}

std::vector<CheckPlan::Due> CheckPlan::take(Nanoseconds now, size_t max) {
  std::vector<Due> taken;
  while (taken.size() < max && !waiting_.empty() && waiting_.begin()->first <= now) {
    const Key key = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    Item& item = items_.at(key);
    item.started = now;
    item.deadline = now + item.plan.timeout;
    item.due = item.deadline + kGrace;
    item.serial = ++serial_;
    flying_.emplace(item.due, key);
    taken.push_back({key, item.serial, item.deadline});
  }
  return taken;
}

bool CheckPlan::in_flight(Key key, uint64_t serial) const {
  const auto found = items_.find(key);
  return found != items_.end() && serial != 0 && found->second.serial == serial;
}

void CheckPlan::finish(Key key, bool confirm, Nanoseconds now) {
  Item& item = items_.at(key);
  MARGAY_CHECK(item.serial != 0);
  item.serial = 0;
  flying_.erase({item.due, key});
  const WorkPlan& plan = item.plan;
  wait_until(key, item, confirm ? std::max(now, item.started + plan.confirm) : grid_after(key, plan.interval, now));
}

void CheckPlan::hasten(Key key, Nanoseconds now) {
  const auto found = items_.find(key);
  if (found == items_.end() || found->second.serial != 0) return;
  Item& item = found->second;
  if (item.due <= now + item.plan.confirm) return;
  wait_until(key, item, std::min(item.due, grid_after(key, item.plan.confirm, now)));
}

std::vector<CheckPlan::Due> CheckPlan::overdue(Nanoseconds now) const {
  std::vector<Due> late;
  for (auto it = flying_.begin(); it != flying_.end() && it->first <= now; ++it) {
    const Item& item = items_.at(it->second);
    late.push_back({it->second, item.serial, item.deadline});
  }
  return late;
}

Nanoseconds CheckPlan::next_due() const {
  const Nanoseconds work = waiting_.empty() ? kNever : waiting_.begin()->first;
  const Nanoseconds late = flying_.empty() ? kNever : flying_.begin()->first;
  return std::min(work, late);
}

}  // namespace margay::control
