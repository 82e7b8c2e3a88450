// SPDX-License-Identifier: Apache-2.0
#pragma once

// One TLS connection that somebody else's code makes (the HTTP server, libcurl): TLS 1.3 alone, with our certificate,
// and with the peer judged by a Trust instead of OpenSSL's own rules. No session is resumed, so each connection is
// judged.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/result.h"
#include "control/security/trust.h"

namespace margay::security {

// One thread at a time. Neither copied nor moved: OpenSSL keeps its address.
class Handshake {
 public:
  // `side`: what the peer is.
  Handshake(std::shared_ptr<const Trust> trust, Side side, Expected expected)
      : trust_(std::move(trust)), side_(side), expected_(std::move(expected)) {}
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // `context`: an SSL_CTX of this connection alone, which this must outlive. Errors: one line of OpenSSL's.
  Result<void> set_up(void* context);
  // Who came. A client without a certificate gets through the handshake, and is refused here. Before the peer has shown
  // a certificate this says the same of it.
  const Trust::Verdict& peer() const { return verdict_; }
  // For OpenSSL. PEM of the peer's certificate, and of what came with it.
  bool judge(std::string_view certificate, std::string_view intermediates);

 private:
  const std::shared_ptr<const Trust> trust_;
  const Side side_;
  const Expected expected_;
  Trust::Verdict verdict_{.refusal = Refusal::kNoCertificate, .detail = "the peer showed none"};
};

}  // namespace margay::security
