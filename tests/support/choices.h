// SPDX-License-Identifier: Apache-2.0
#pragma once

// Choices of an instance without packets: the site of small_site.h with a Selector a worker, and flows that hold slots
// until they are let go. Test code only, one thread.

#include <map>
#include <string>
#include <vector>

#include "dataplane/core/live_site.h"
#include "dataplane/core/selector.h"
#include "tests/support/seed.h"
#include "tests/support/small_site.h"

namespace margay::test {

inline dp::FlowKey random_flow(Random& random) {
  dp::FlowKey flow;
  flow.client = IpAddress::v4(static_cast<uint32_t>(random.next()));
  flow.client_port = static_cast<uint16_t>(random.below(65536));
  flow.protocol = Protocol::kTcp;
  return flow;
}

// Pearson's statistic of counts against the shares that they ought to have.
inline double chi_square(const std::vector<unsigned>& counts, const std::vector<double>& shares) {
  double flows = 0, all = 0, sum = 0;
  for (const unsigned n : counts) flows += n;
  for (const double s : shares) all += s;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = flows * shares[i] / all;
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

class Choices : public SmallSite {
 public:
  explicit Choices(const dp::SiteConfig& config, dp::WorkerIndex workers = 1, uint64_t seed = 1)
      : SmallSite(config, 16, workers), random_(seed), arena_(size_t{4} << 20) {
    for (dp::WorkerIndex w = 0; w < workers; ++w) {
      selectors_.emplace_back(arena_, shared, w, workers, shared.instances_max);
    }
  }

  // Who is offered the flow first. Nothing is taken.
  dp::InstanceIndex first(const dp::FlowKey& flow, dp::WorkerIndex w = 0, HealthState wanted = HealthState::kHealthy) {
    dp::Selector& selector = selectors_[w];
    if (!selector.begin(*table, 0, wanted, dp::to_tick(now), flow)) return dp::kNoIndex;
    const dp::InstanceIndex i = selector.next();
    selector.chosen(i);
    return i;
  }
  // Who takes the flow and a slot for it; kNoIndex: nobody has one.
  dp::InstanceIndex admit(const dp::FlowKey& flow, dp::WorkerIndex w = 0) {
    dp::Selector& selector = selectors_[w];
    if (!selector.begin(*table, 0, HealthState::kHealthy, dp::to_tick(now), flow)) return dp::kNoIndex;
    for (auto i = selector.next(); i != dp::kNoIndex; i = selector.next()) {
      if (!shared.slots.take(i, table->instances[i].generation, w)) continue;
      selector.chosen(i);
      shared.counters(w, i).active.add();
      return i;
    }
    return dp::kNoIndex;
  }
  // Random flows, to the workers by turns; by instance, who took how many.
  std::vector<unsigned> admit_many(unsigned flows) {
    std::vector<unsigned> taken(table->instances.size());
    for (unsigned n = 0; n < flows; ++n) {
      const auto i = admit(random_flow(random_), static_cast<dp::WorkerIndex>(n % selectors_.size()));
      if (i != dp::kNoIndex) ++taken[i];
    }
    return taken;
  }
  // What worker w saw of an instance just now.
  void saw(dp::WorkerIndex w, dp::InstanceIndex i, uint32_t milliseconds) {
    shared.serve(w, i, table->instances[i].generation);
    shared.add_response(w, i, milliseconds * 1000, dp::to_tick(now));
  }
  void saw_everywhere(dp::InstanceIndex i, uint32_t milliseconds) {
    for (size_t w = 0; w < selectors_.size(); ++w) saw(static_cast<dp::WorkerIndex>(w), i, milliseconds);
  }
  // The instance reported this load now, with so many sessions; it counts for 10 s.
  void reported(dp::InstanceIndex i, double load, uint32_t active = 0) {
    dp::Instance& instance = table->instances.edit(i);
    instance.load = static_cast<float>(load);
    instance.load_active = active;
    instance.load_lifetime = dp::ticks_of(10 * kSecond);
    instance.load_until = dp::to_tick(now) + instance.load_lifetime;
  }
  std::vector<unsigned> actives() const {
    std::vector<unsigned> counts;
    for (dp::InstanceIndex i = 0; i < table->instances.size(); ++i) counts.push_back(static_cast<unsigned>(active(i)));
    return counts;
  }
  const std::string& name(dp::InstanceIndex i) const { return table->instances[i].si_id; }

 private:
  Random random_;
  dp::TestArena arena_;
  std::vector<dp::Selector> selectors_;
};

inline constexpr dp::Balance kBalances[] = {
    dp::Balance::kRoundRobin,    dp::Balance::kLeastConnections, dp::Balance::kWeightedResponseTime,
    dp::Balance::kResourceAware, dp::Balance::kSlotBased,        dp::Balance::kConsistentHash};

}  // namespace margay::test
