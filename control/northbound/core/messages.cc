// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/messages.h"

#include <array>

namespace margay::northbound {

std::string_view name_of(NackCode c) {
  switch (c) {
    case NackCode::kMalformed:
      return "MALFORMED";
    case NackCode::kOutOfScope:
      return "OUT_OF_SCOPE";
    case NackCode::kWrongVersion:
      return "WRONG_VERSION";
    case NackCode::kTableFull:
      return "TABLE_FULL";
  }
  return "?";
}

std::string_view name_of(SyncReason r) {
  switch (r) {
    case SyncReason::kMismatch:
      return "MISMATCH";
    case SyncReason::kOperator:
      return "OPERATOR";
  }
  return "?";
}

std::string_view name_of(const Body& body) {
  static constexpr std::array<std::string_view, std::variant_size_v<Body>> kNames{
      "Hello", "Batch", "SnapshotBegin", "SnapshotChunk", "SnapshotEnd", "Keepalive", "Ack", "Nack", "SyncRequest"};
  return kNames[body.index()];
}

size_t size_of(const RowKey& key) { return 16 + key.cs_id.size() + (key.csci_id ? key.csci_id->size() : 0); }
size_t size_of(const Row& row) { return 224 + size_of(row.key); }
size_t size_of(const Withdrawal& withdrawal) { return 48 + size_of(withdrawal.key); }
size_t size_of(const View& view) { return 96 + view.position.cs_id.size(); }

}  // namespace margay::northbound
