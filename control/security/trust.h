// SPDX-License-Identifier: Apache-2.0
#pragma once

// Our own check of certificates (CSMA-131, 132, 135..137, 186): chain to a CA of ours, time, revocation, fitness for
// the side of the connection, and the CATS name. TLS proves besides that the peer holds the certificate's key.
//
// A Trust is made from files once and never changes, so that any thread may use it; what changes is which one is used
// (credentials.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "control/security/peer.h"

namespace margay::security {

// Why a certificate is refused.
enum class Refusal : uint8_t {
  kNoCertificate,
  kMalformed,  // cannot be read
  kUnknownCa,  // no chain to a CA of ours
  kNotYetValid,
  kExpired,
  kRevoked,
  kUnfit,           // weak, or not for this side of a connection, or the chain breaks a rule of its own
  kCrlMissing,      // revocation is checked, and the CA of the certificate has no list
  kCrlNotYetValid,  // by more than kClockLeeway
  kCrlExpired,
  kNoName,     // no CATS name
  kBadName,    // a CATS name that cannot be read
  kWrongName,  // of somebody else than expected
};
inline constexpr size_t kRefusals = 13;
std::string_view name_of(Refusal r);  // "unknown_ca"

// PEM files. Without `crl` nothing is ever revoked.
struct Files {
  std::string ca;           // one or more CAs
  std::string certificate;  // ours, then its intermediates
  std::string key;          // of the certificate
  std::string crl = {};     // one or more lists: of each CA in the chains
  bool operator==(const Files&) const = default;
};

enum class Side : uint8_t { kClient, kServer };  // what a peer is

class Trust {
 public:
  static constexpr int64_t kClockLeeway = 60;  // seconds that a list of revoked certificates may lie in the future

  // Judged good: `peer`. Refused: `refusal`, and a detail that names the certificate's subject; one line.
  struct Verdict {
    std::optional<Refusal> refusal = {};
    std::string detail = {};
    Peer peer = {};
  };

  // Errors: FILE: what. The key must be the certificate's.
  static Result<std::shared_ptr<const Trust>> load(const Files& files);
  ~Trust();
  Trust(const Trust&) = delete;
  Trust& operator=(const Trust&) = delete;

  // Of a certificate and what came with it, in PEM.
  Verdict judge(std::string_view certificate, std::string_view intermediates, Side side,
                const Expected& expected) const;
  // Of a peer whose connection lives: all of that once more, but for lists that ran out since, which is an alarm and
  // the end of new connections alone.
  std::optional<Refusal> still_good(const Peer& peer, Side side, const Expected& expected) const;

  const std::string& certificate_pem() const { return certificate_pem_; }  // ours, with its intermediates
  const std::string& key_pem() const { return key_pem_; }
  const std::string& ca_pem() const { return ca_pem_; }
  const std::vector<Name>& names() const { return names_; }  // ours
  int64_t not_after() const { return not_after_; }           // of our certificate, Unix seconds
  std::optional<int64_t> crl_next_update() const {
    return crl_next_update_;
  }  // the earliest of all lists, Unix seconds
  // One line each: what runs out within `ahead` seconds of `now`, or has.
  std::vector<std::string> alarms(int64_t now, int64_t ahead) const;

 private:
  struct Store;
  Trust();
  Verdict check(std::string_view certificate, std::string_view intermediates, Side side, const Expected& expected,
                bool live) const;

  std::unique_ptr<Store> store_;
  std::string certificate_pem_, key_pem_, ca_pem_;
  std::vector<Name> names_;
  int64_t not_after_ = 0;
  std::optional<int64_t> crl_next_update_;
};

}  // namespace margay::security
