// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Metric Cache's storage: a lock-free hash table by CSCI-ID (CSMA-63), and one by CS-ID whose elements lead to the
// SCIs of that service (CSMA-64). Entries never change, they are replaced; what was replaced is freed when no reader
// can see it any more. Readers never hold up the writer.
//
// One writer at a time. Readers: any thread; a visitor may not block, nor call the table.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "control/c_sma/cache_entry.h"

namespace margay::c_sma {

class EntryTable {
 public:
  class Slot;  // of one SCI, until it is removed
  using Visitor = std::function<void(const CacheEntry&)>;

  // Quick for about so many entries; holds any number.
  explicit EntryTable(size_t expected);
  // REQUIRES: no reader is left
  ~EntryTable();
  EntryTable(const EntryTable&) = delete;
  EntryTable& operator=(const EntryTable&) = delete;

  // The writer's. REQUIRES: no entry with this CSCI-ID is here
  Slot* add(CacheEntry entry);
  // REQUIRES: the same CSCI-ID and CS-ID
  void replace(Slot* slot, CacheEntry entry);
  void remove(Slot* slot);
  // Until it is replaced.
  static const CacheEntry& entry(const Slot* slot);

  // Readers'.
  std::optional<CacheEntry> find(std::string_view csci_id) const;
  void for_each_of(std::string_view cs_id, const Visitor& visit) const;
  void for_each(const Visitor& visit) const;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace margay::c_sma
