// SPDX-License-Identifier: Apache-2.0
#pragma once

// From the SCIs of the site file and what their health monitors say to the snapshots that the data plane is told: gives
// each SCI and instance its index and generation, and finds out what changed since the data plane last took something.
// Pure; one thread.
//
// An instance is the same one as long as SCI, SI-ID, address and port are. It keeps its index; a new one gets an index
// that was never used, else one that is free again: no snapshot names it, every worker has passed the one that dropped
// it, and the counters show neither slots nor bindings. An SCI whose mode changes is another SCI to the data plane.
//
// One snapshot is under way at a time; whatever changes meanwhile meets in the next. After a refusal the next one is
// complete, and SCIs that the data plane has not taken as they are now stay as they were in it, or out of it, until
// retry(): a site file that it cannot use does not keep the news of health from it. What was new and refused is placed
// anew, for its index may have been the reason.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/sci_config.h"
#include "common/shared_table/counters.h"
#include "common/shared_table/snapshot.h"
#include "control/sci/events.h"
#include "control/sci/sci.h"
#include "control/table/index_pool.h"

namespace margay::control {

class TablePlan {
 public:
  // The SCIs that the site has from now on; all of them or, with an error that names the one that does not fit, no
  // change. Those that stay keep what is known of their health.
  Result<void> configure(const std::vector<SciConfig>& scis);
  // What an SCI's control plane says. Unknown names are left alone.
  void apply(const std::string& csci_id, const TableChanged& change);

  // A data plane is there. Its indices hold where they name the same instances. The error says what does not fit; then
  // nothing is pending until configure() makes it fit.
  // REQUIRES: what runs is within the capacity.
  Result<void> adopt(const std::optional<shared_table::Snapshot>& running, IndexPool::Counts counts);
  void lost() { attached_ = false; }

  // The data plane is to be told something, and nothing is under way.
  bool pending() const;
  // REQUIRES: pending()
  shared_table::Snapshot next() const;
  void committed(shared_table::Snapshot snapshot);
  // The generation under way, 0: none.
  uint64_t under_way() const { return flying_ ? flying_->generation : 0; }
  // REQUIRES: under_way() != 0
  void taken();
  void refused();
  void retry();
  bool holds_back() const { return held_; }
  void acked(uint64_t generation) { pool_.acked(generation); }

  // Every SCI and instance has its place in the data plane that is there.
  bool placed() const { return attached_ && placed_; }
  // As it is to be; indices count while it is placed.
  const std::map<std::string, shared_table::SciRecord>& scis() const { return wanted_; }
  uint64_t generation() const { return generation_; }

 private:
  using Scis = std::map<std::string, shared_table::SciRecord>;  // by CSCI-ID

  Result<void> place(Scis& scis, IndexPool& pool) const;
  void place_anew();
  void enter(const shared_table::SciRecord& sci);
  void add_change(const std::string& name, shared_table::Snapshot& snapshot) const;
  shared_table::SciRecord held_back(const shared_table::SciRecord& taken) const;

  Scis wanted_;
  std::map<uint32_t, shared_table::SciRecord> taken_;  // what the data plane has, by index
  std::map<std::string, uint32_t> taken_by_name_;
  std::set<std::string> changed_;  // since the last commit
  std::optional<shared_table::Snapshot> flying_;
  IndexPool pool_;
  uint64_t generation_ = 0;  // the last one given
  uint64_t base_ = 0;        // the last one taken; 0: the next one is complete
  bool attached_ = false;    // a data plane is there
  bool placed_ = false;      // every SCI and instance has its place there
  bool held_ = false;
};

// What a running snapshot says of the SCI's instances, where they are the ones of the site file.
std::vector<Sci::Known> known_of(const shared_table::Snapshot& running, const SciConfig& sci, Nanoseconds now);

}  // namespace margay::control
