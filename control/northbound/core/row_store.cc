// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/row_store.h"

#include "common/check.h"

namespace margay::northbound {

RowStore::RowStore(uint64_t epoch, size_t tombstones_max) : newest_{epoch, 0}, tombstones_max_(tombstones_max) {
  MARGAY_CHECK(epoch > 0 && tombstones_max > 0);
}

const RowStore::Part& RowStore::part(std::string_view cs_id) const {
  static const Part kEmpty;
  const auto found = parts_.find(cs_id);
  return found == parts_.end() ? kEmpty : found->second;
}

RowVersion RowStore::commit(Change change, bool critical) {
  ++newest_.commit;
  Part& part = parts_[change.cs_id];
  for (Row& row : change.rows) {
    MARGAY_CHECK(row.key.cs_id == change.cs_id);
    row.version = newest_;
    const CsciId id = row.key.csci_id;
    put(part, id, Entry{std::make_shared<const Row>(std::move(row)), {}, newest_.commit});
  }
  for (const Withdrawal& w : change.withdrawals) {
    MARGAY_CHECK(w.key.cs_id == change.cs_id);
    put(part, w.key.csci_id, Entry{nullptr, w.reason, newest_.commit});
  }
  part.newest = newest_.commit;
  if (critical) part.newest_critical = newest_.commit;
  forget_tombstones(part);
  return newest_;
}

void RowStore::put(Part& part, const CsciId& id, Entry entry) {
  const auto [place, is_new] = part.entries.try_emplace(id);
  Entry& old = place->second;
  if (!is_new) {
    part.log.erase({old.commit, id});
    part.tombstones.erase({old.commit, id});
  }
  if (old.row != nullptr) {
    part.digest -= digest_of(old.row->key, old.row->version);
    --part.rows;
  }
  part.log.insert({entry.commit, id});
  if (entry.row != nullptr) {
    part.digest += digest_of(entry.row->key, entry.row->version);
    ++part.rows;
  } else {
    part.tombstones.insert({entry.commit, id});
  }
  old = std::move(entry);
}

void RowStore::forget_tombstones(Part& part) {
  while (part.tombstones.size() > tombstones_max_) {
    const auto oldest = *part.tombstones.begin();
    part.tombstones.erase(part.tombstones.begin());
    part.log.erase(oldest);
    part.entries.erase(oldest.second);
    part.low_water = oldest.first;
  }
}

}  // namespace margay::northbound
