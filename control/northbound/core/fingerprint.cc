// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/sender_session.h"

namespace margay::northbound {

std::string SenderSession::fingerprint() const {
  std::string out;
  const auto put = [&out](uint64_t number) { out += std::to_string(number) + ' '; };
  put(static_cast<uint64_t>(state_));
  put(greeted_ ? 1 : 0);
  put(answered_ ? 1 : 0);
  put(sequence_);
  put(verifier_ ? verifier_->last_sequence() : 0);
  out += "unacked ";
  for (const Unacked& message : unacked_) put(message.sequence);
  for (const auto& [cs_id, part] : parts_) {
    out += cs_id + ' ';
    put(part.sent);
    put(part.in_step ? 1 : 0);
    put(part.under_way ? 1 : 0);
    put(part.too_large ? 1 : 0);
    put(changed_.contains(cs_id) ? 1 : 0);
    put(want_snapshot_.contains(cs_id) ? 1 : 0);
  }
  if (snapshot_) {
    out += "snapshot ";
    put(snapshot_->begin.id);
    put(snapshot_->begin.version.commit);
    put(snapshot_->next);
    put(snapshot_->rows.size());
  }
  for (const auto& [key, refused] : refused_) {
    out += "refused " + key.cs_id + '/' + key.csci_id.value_or("") + ' ';
    put(refused.version.epoch);
    put(refused.version.commit);
  }
  if (keepalive_from_) out += "keepalive " + *keepalive_from_;
  return out;
}

}  // namespace margay::northbound
