// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reports that wait for a second one or for an operator (CSMA-48): the newest of each SCI, bounded; when full, the one
// that has waited longest gives way. Pure; one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/units.h"
#include "control/c_sma/judgement.h"
#include "control/sci/report.h"

namespace margay::c_sma {

class Quarantine {
 public:
  static constexpr size_t kMax = 1000;

  struct Item {
    control::Report report;
    Judgement judgement;
    std::string identity;
    Nanoseconds since = 0;  // the first of those without a break
    Nanoseconds at = 0;     // this one
    uint32_t times = 0;     // without a break
  };

  void put(const control::Report& report, const Judgement& judgement, const std::string& identity, Nanoseconds now);
  // nullptr: none waits
  const Item* find(const std::string& csci_id) const;
  void drop(const std::string& csci_id) { items_.erase(csci_id); }
  std::vector<const Item*> list() const;  // by CSCI-ID
  size_t size() const { return items_.size(); }

 private:
  std::unordered_map<std::string, Item> items_;
};

}  // namespace margay::c_sma
