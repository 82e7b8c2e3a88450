// SPDX-License-Identifier: Apache-2.0
#pragma once

// The site's metrics of one CS-ID out of those of its SCIs (CSMA-64, 167; D-17, D-37). Kept up to date by what each SCI
// adds: a change costs the logarithm of their number. Pure; one thread.
//
// GAS is the sum, exact in 64 bits, and stays at the field's greatest value where it would pass it. Computing Time and
// Price are means weighted by GAS, rounded up; plain means where all weights are 0. Reputation and Security Level are
// the lowest. Only SCIs that serve count in all but GAS; where none does, GAS is 0 and the rest is absent.

#include <cstdint>
#include <map>
#include <optional>

#include "common/health.h"
#include "common/units.h"
#include "control/c_sma/config.h"
#include "control/northbound/core/row.h"

namespace margay::c_sma {

// What one SCI adds.
struct Contribution {
  northbound::Metrics metrics = {};
  HealthSummary health = {};
  Admin admin = Admin::kEnabled;
  bool restored = false;
  Nanoseconds measured_at = 0;
  bool operator==(const Contribution&) const = default;

  bool serves() const { return margay::serves(health.sci_health()) && admin == Admin::kEnabled; }
};

class SiteAggregate {
 public:
  void add(const Contribution& c) { count(c, true); }
  // REQUIRES: it was added
  void remove(const Contribution& c) { count(c, false); }

  northbound::Metrics metrics(Aggregate computing_time) const;
  HealthSummary health() const;
  uint32_t scis() const { return scis_; }
  uint32_t healthy_scis() const { return healthy_; }
  bool restored() const { return restored_ > 0; }
  // The oldest measurement. REQUIRES: scis() > 0
  Nanoseconds measured_at() const { return measured_at_.begin()->first; }

 private:
  __extension__ typedef unsigned __int128 Wide;  // a sum of products of two 32-bit numbers
  template <class T>
  using Counted = std::map<T, uint32_t>;
  struct Weighted {
    Wide weighted = 0;
    uint64_t weights = 0, sum = 0, count = 0;
    void take(uint32_t value, uint32_t weight, bool in);
    std::optional<uint32_t> mean() const;
    std::optional<uint32_t> plain_mean() const;
  };

  void count(const Contribution& c, bool in);
  std::optional<uint32_t> computing_time(Aggregate method) const;

  uint64_t gas_ = 0;
  uint32_t scis_ = 0, healthy_ = 0, serving_ = 0, with_gas_ = 0, restored_ = 0;
  uint64_t instances_[kHealthStates] = {};
  Weighted computing_time_, price_;
  Counted<uint32_t> times_, fastest_, slowest_, reputations_, security_levels_;
  Counted<Nanoseconds> measured_at_;
};

}  // namespace margay::c_sma
