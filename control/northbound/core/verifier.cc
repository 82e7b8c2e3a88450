// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/core/verifier.h"

namespace margay::northbound {

std::optional<Fault> Verifier::judge(const Header& header, std::string_view key_id, int64_t unix_ms,
                                     NonceWindows& nonces) {
  // What belongs to another session must not end this one, so place and nonce come before the time.
  if (const auto fault = judge_place(header)) return fault;
  NonceWindow& window = nonces[{header.sender, std::string(key_id)}];
  switch (window.judge(header.nonce)) {
    case NonceWindow::Verdict::kRepeated:
      return Fault::kNonceRepeated;
    case NonceWindow::Verdict::kTooOld:
      return Fault::kNonceTooOld;
    case NonceWindow::Verdict::kNew:
      break;
  }
  if (header.sent_unix_ms < unix_ms - expected_.window_ms) return Fault::kTooOld;
  if (header.sent_unix_ms > unix_ms + expected_.window_ms) return Fault::kTooNew;
  window.use(header.nonce);
  last_sequence_ = header.sequence;
  return std::nullopt;
}

std::optional<Fault> Verifier::judge_place(const Header& header) const {
  if (header.direction != expected_.direction) return Fault::kWrongDirection;
  if (header.sender != expected_.sender) return Fault::kWrongSender;
  if (header.receiver != expected_.receiver) return Fault::kWrongReceiver;
  const bool unbound = expected_.first_is_unbound && header.sequence == 1 && header.challenge.empty();
  if (!unbound && header.challenge != expected_.challenge) return Fault::kWrongChallenge;
  if (header.sequence <= last_sequence_) return Fault::kRepeated;
  if (header.sequence != last_sequence_ + 1) return Fault::kGap;
  return std::nullopt;
}

}  // namespace margay::northbound
