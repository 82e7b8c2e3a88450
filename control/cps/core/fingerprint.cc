// SPDX-License-Identifier: Apache-2.0
#include "control/cps/core/receiver_session.h"

namespace margay::cps {

std::string ReceiverSession::fingerprint() const {
  std::string out;
  const auto put = [&out](uint64_t number) { out += std::to_string(number) + ' '; };
  put(verifier_.last_sequence());
  put(greeted_ ? 1 : 0);
  put(established() ? 1 : 0);
  put(broken_ ? 1 : 0);
  put(sequence_);
  put(acked_);
  put(persisted_);
  put(nack_sequence_);
  put(nacks_.size());
  for (const std::string& cs_id : wanted_) out += "wanted " + cs_id + ' ';
  for (const std::string& cs_id : awaited_) out += "awaited " + cs_id + ' ';
  if (!staged_) return out;
  out += "staged ";
  put(staged_->begin.id);
  put(staged_->begin.version.commit);
  for (const auto& [key, row] : staged_->rows) {
    out += key.cs_id + '/' + key.csci_id.value_or("") + ' ';
    put(row.version.commit);
  }
  for (const auto& [cs_id, version] : staged_->deltas) {
    out += cs_id + ' ';
    put(version.commit);
  }
  return out;
}

}  // namespace margay::cps
