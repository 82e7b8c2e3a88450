// SPDX-License-Identifier: Apache-2.0
#include "control/agent/pull_plan.h"

#include <algorithm>
#include <functional>

namespace margay::control {

void PullPlan::configure(const std::vector<PullTarget>& targets, Nanoseconds now) {
  std::map<std::string, Pull> before = std::exchange(pulls_, {});
  due_.clear();
  under_way_ = 0;
  for (const PullTarget& target : targets) {
    const auto known = before.find(target.csci_id);
    if (known != before.end() && known->second.target == target) {
      Pull& pull = pulls_.try_emplace(target.csci_id, std::move(known->second)).first->second;
      under_way_ += pull.under_way;
      if (!pull.under_way) set_due(target.csci_id, pull, pull.due);
      continue;
    }
    const uint64_t seed = seed_ ^ std::hash<std::string>{}(target.csci_id);
    const Nanoseconds longest = std::clamp(target.every, kFirstWait, kLongestWait);
    Pull& pull = pulls_.try_emplace(target.csci_id, Pull{.target = target, .backoff = {kFirstWait, longest, seed}})
                     .first->second;
    if (target.every > 0) set_due(target.csci_id, pull, now + seed % kSecond);
  }
}

bool PullPlan::want(const std::string& csci_id) {
  const auto found = pulls_.find(csci_id);
  if (found == pulls_.end()) return false;
  found->second.wanted = true;
  if (!found->second.under_way) set_due(csci_id, found->second, 0);
  return true;
}

std::vector<std::string> PullPlan::begin(Nanoseconds now) {
  std::vector<std::string> begun;
  while (under_way_ < kAtOnceMax && !due_.empty() && due_.begin()->first <= now) {
    begun.push_back(due_.begin()->second);
    due_.erase(due_.begin());
    Pull& pull = pulls_.at(begun.back());
    pull.under_way = true;
    pull.asked_at = now;
    ++under_way_;
  }
  return begun;
}

std::optional<PullPlan::Finished> PullPlan::answered(const std::string& csci_id, Nanoseconds now) {
  const auto found = pulls_.find(csci_id);
  if (found == pulls_.end() || !found->second.under_way) return std::nullopt;
  Pull& pull = found->second;
  ++pull.answered;
  ++totals_.answered;
  pull.backoff.reset();
  const Nanoseconds every = pull.target.every;
  return finish(pull, "", every > 0 ? std::max(pull.asked_at + every, now) : kNever);
}

std::optional<PullPlan::Finished> PullPlan::failed(const std::string& csci_id, const std::string& why,
                                                   Nanoseconds now) {
  const auto found = pulls_.find(csci_id);
  if (found == pulls_.end() || !found->second.under_way) return std::nullopt;
  Pull& pull = found->second;
  ++pull.failed;
  ++totals_.failed;
  // Where there is no interval, it is the core that wants it again.
  return finish(pull, why, pull.target.every > 0 ? now + pull.backoff.next() : kNever);
}

PullPlan::Finished PullPlan::finish(Pull& pull, const std::string& fault, Nanoseconds due) {
  --under_way_;
  pull.under_way = false;
  const bool news = std::exchange(pull.fault, fault) != fault;
  set_due(pull.target.csci_id, pull, due);
  return Finished{.wanted = std::exchange(pull.wanted, false), .news = news};
}

void PullPlan::set_due(const std::string& csci_id, Pull& pull, Nanoseconds due) {
  due_.erase({pull.due, csci_id});
  pull.due = due;
  if (due != kNever) due_.emplace(due, csci_id);
}

}  // namespace margay::control
