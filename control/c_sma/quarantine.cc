// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/quarantine.h"

#include <algorithm>

namespace margay::c_sma {

void Quarantine::put(const control::Report& report, const Judgement& judgement, const std::string& identity,
                     Nanoseconds now) {
  if (items_.size() >= kMax && !items_.contains(report.csci_id)) {
    items_.erase(std::min_element(items_.begin(), items_.end(),
                                  [](const auto& a, const auto& b) { return a.second.since < b.second.since; }));
  }
  Item& item = items_[report.csci_id];
  if (item.times == 0) item.since = now;
  item.report = report;
  item.judgement = judgement;
  item.identity = identity;
  item.at = now;
  ++item.times;
}

const Quarantine::Item* Quarantine::find(const std::string& csci_id) const {
  const auto found = items_.find(csci_id);
  return found == items_.end() ? nullptr : &found->second;
}

std::vector<const Quarantine::Item*> Quarantine::list() const {
  std::vector<const Item*> all;
  all.reserve(items_.size());
  for (const auto& [csci_id, item] : items_) all.push_back(&item);
  std::sort(all.begin(), all.end(), [](const Item* a, const Item* b) { return a->report.csci_id < b->report.csci_id; });
  return all;
}

}  // namespace margay::c_sma
