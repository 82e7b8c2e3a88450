// SPDX-License-Identifier: Apache-2.0
#pragma once

// The indices of SCIs and instances in the data plane's memory: which are taken, which may be given again, and with
// which generation. Pure; one thread. An index is taken while the site has it or the data plane's table names it.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/shared_table/counters.h"
#include "common/shared_table/snapshot.h"

namespace margay::control {

class IndexPool {
 public:
  // What the data plane has room for, and what its counters say of an instance's index.
  struct Counts {
    shared_table::CountersShape capacity;
    std::function<bool(uint32_t)> in_use = {};          // slots or bindings name it
    std::function<uint16_t(uint32_t)> generation = {};  // the highest that was counted there
  };
  struct Place {
    uint32_t index = 0;
    uint16_t generation = 1;
  };

  // Begins anew for a data plane; remembers the generations that were given before.
  void connect(Counts counts);
  const shared_table::CountersShape& capacity() const { return counts_.capacity; }

  // What the data plane's table names, or does not name any more from this generation on.
  // REQUIRES: every index is within the capacity
  void entered(const shared_table::SciRecord& sci);
  void left(const shared_table::SciRecord& sci, uint64_t generation);
  void acked(uint64_t generation) { acked_ = generation; }  // every worker has passed it

  // What the site has: first forget all, then keep those that stay, then take for the others. Nothing when none is
  // free.
  void forget();
  void keep_sci(uint32_t index) { scis_[index].wanted = true; }
  void keep_instance(uint32_t index) { instances_[index].wanted = true; }
  std::optional<uint32_t> take_sci();
  std::optional<Place> take_instance(uint32_t sci);

 private:
  struct Use {
    bool wanted = false;    // by the site
    bool in_table = false;  // the data plane's
    uint64_t left_at = 0;   // generation that dropped it
  };
  struct Sci : Use {
    bool used = false;
  };
  struct Instance : Use {
    uint16_t generation = 0;  // the highest that was given
    uint32_t sci = 0;         // that had it last
  };

  bool free(const Use& use) const { return !use.wanted && !use.in_table && use.left_at <= acked_; }
  bool counted(uint32_t index) const { return counts_.in_use && counts_.in_use(index); }
  bool sci_counted(uint32_t sci) const;
  uint16_t highest(uint32_t index) const;

  Counts counts_;
  std::vector<Sci> scis_;
  std::vector<Instance> instances_;
  uint64_t acked_ = 0;
  uint32_t fresh_sci_ = 0, fresh_ = 0, freed_ = 0;  // where to look next
};

}  // namespace margay::control
