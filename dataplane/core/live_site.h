// SPDX-License-Identifier: Apache-2.0
#pragma once

// The site as it is now, and how it changes: by snapshots of the control plane, and by what an operator sets over them.
// The running data plane and replay change it here, so that one rule serves both. No clock, lock or RCU: those are its
// owner's. One thread at a time.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "common/result.h"
#include "dataplane/core/shared_state.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

// What an operator has set over what the site says, until it is cleared.
struct Override : shared_table::OperatorSetting {
  Tick drain_deadline = 0;

  bool empty() const { return !admin && !max_sessions && !weight; }
};

class LiveSite {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // A time of CLOCK_MONOTONIC that is to come, on a worker's clock.
    virtual Tick tick_at(Nanoseconds monotonic) const = 0;
    // The version of a table that every worker uses, or of an earlier one.
    virtual uint64_t passed() const = 0;
    // Workers use `next` from here on; `before` may go once all of them do. Ledgers are as `next` wants them.
    virtual void publish(const SiteTable& next, std::shared_ptr<const SiteTable> before) = 0;
  };

  // REQUIRES: config, shared state and owner outlive it.
  LiveSite(const SiteConfig& config, SharedState& shared, std::unique_ptr<SiteTable> first, Owner& owner)
      : config_(config), shared_(shared), owner_(owner), current_(std::move(first)) {}

  const std::shared_ptr<const SiteTable>& table() const { return current_; }
  std::optional<Override> override_of(InstanceIndex i) const;
  const std::map<InstanceIndex, Override>& overrides() const { return overrides_; }

  // Each publishes a table of the next version, unless it is refused.
  void change(const std::function<void(SiteTable&)>& edit);
  // Does nothing to an instance that went.
  void set(InstanceIndex i, const std::function<void(Override&)>& edit);
  // All of it or nothing; the error says what is wrong with it.
  Result<void> apply(const shared_table::Snapshot& snapshot);

 private:
  void publish(std::unique_ptr<SiteTable> next);
  void settle(SiteTable& next, InstanceIndex i) const;
  void charge(const SiteTable& next, InstanceIndex i);
  bool in_use(InstanceIndex i) const;

  const SiteConfig& config_;
  SharedState& shared_;
  Owner& owner_;
  std::shared_ptr<const SiteTable> current_;
  std::map<InstanceIndex, Override> overrides_;
  std::map<InstanceIndex, uint64_t> left_;  // of instances that went: the first table without
};

}  // namespace margay::dp
