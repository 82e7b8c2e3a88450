// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts messages of the C-SMA into their envelope: nonce, payload, signature. Nonces come out of blocks that are in a
// file of the state directory before they are used, so that none comes twice (CSMA-144, 146). One thread.

#include <optional>
#include <string>

#include "common/result.h"
#include "control/northbound/core/messages.h"
#include "control/northbound/core/nonce.h"
#include "control/security/config.h"
#include "control/security/signing.h"
#include "margay/v1/envelope.pb.h"

namespace margay::control {

class Sealer {
 public:
  // Without a key messages go out unsigned. Errors: the key's file; the nonces' file.
  static Result<std::unique_ptr<Sealer>> open(const std::optional<security::SigningKeyFile>& key,
                                              const std::string& state_directory, int64_t unix_ms);

  // Absent: the next block of nonces cannot be written down; the log has it.
  std::optional<v1::Signed> seal(northbound::Message message, Nanoseconds now);

 private:
  Sealer(std::string path, uint64_t reserved) : path_(std::move(path)), nonces_(reserved) {}

  std::string path_, key_id_;
  std::optional<security::Signer> signer_;
  northbound::NonceSource nonces_;
  bool told_ = false;
};

}  // namespace margay::control
