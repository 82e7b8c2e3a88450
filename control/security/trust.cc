// SPDX-License-Identifier: Apache-2.0
#include "control/security/trust.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "control/security/openssl.h"

namespace margay::security {
namespace {

constexpr size_t kCasMax = 64, kChainMax = 8, kCrlsMax = 64;
constexpr int kDepthMax = 4;       // intermediates between a certificate and a CA
constexpr int kSecurityLevel = 2;  // of OpenSSL: at least 112 bits, no SHA-1

using StorePtr = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;
using CheckPtr = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;
// Holds certificates that others own.
struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using StackPtr = std::unique_ptr<STACK_OF(X509), FreeStack>;

Refusal refusal_of(int error) {
  switch (error) {
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Refusal::kNotYetValid;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Refusal::kExpired;
    case X509_V_ERR_CERT_REVOKED:
      return Refusal::kRevoked;
    case X509_V_ERR_CRL_NOT_YET_VALID:
      return Refusal::kCrlNotYetValid;
    case X509_V_ERR_CRL_HAS_EXPIRED:
      return Refusal::kCrlExpired;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
    case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
    case X509_V_ERR_DIFFERENT_CRL_SCOPE:
    case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
      return Refusal::kCrlMissing;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_CHAIN_TOO_LONG:
    case X509_V_ERR_CERT_UNTRUSTED:
    case X509_V_ERR_CERT_REJECTED:
      return Refusal::kUnknownCa;
    default:
      return Refusal::kUnfit;
  }
}

// Lists that are a little early are taken; those that ran out too, where the connection lives already.
int judge_error(int ok, X509_STORE_CTX* check, bool live) {
  if (ok != 0) return ok;
  const int error = X509_STORE_CTX_get_error(check);
  if (error == X509_V_ERR_CRL_HAS_EXPIRED && live) return 1;
  if (error != X509_V_ERR_CRL_NOT_YET_VALID) return 0;
  const X509_CRL* const crl = X509_STORE_CTX_get0_current_crl(check);
  return crl != nullptr && unix_seconds(X509_CRL_get0_lastUpdate(crl)) <= time(nullptr) + Trust::kClockLeeway ? 1 : 0;
}
int judge_new(int ok, X509_STORE_CTX* check) { return judge_error(ok, check, false); }
int judge_live(int ok, X509_STORE_CTX* check) { return judge_error(ok, check, true); }

// The CATS names of a certificate, or why it has none that count.
std::optional<Refusal> read_names(const X509* certificate, std::vector<Name>& names, std::string& bad) {
  for (const std::string& uri : uri_names(certificate)) {
    if (!is_cats(uri)) continue;
    const auto name = Name::parse(uri);
    if (!name) {
      bad = name.error().message;
      return Refusal::kBadName;
    }
    names.push_back(*name);
  }
  return names.empty() ? std::optional(Refusal::kNoName) : std::nullopt;
}

std::string runs_out(const std::string& what, int64_t at, int64_t now) {
  if (at <= now) return what + " has run out";
  const int64_t left = at - now;
  return what + " runs out in " +
         (left < 7200 ? std::to_string(left / 60) + " min" : std::to_string(left / 3600) + " h");
}

}  // namespace

std::string_view name_of(Refusal r) {
  switch (r) {
    case Refusal::kNoCertificate:
      return "no_certificate";
    case Refusal::kMalformed:
      return "malformed_certificate";
    case Refusal::kUnknownCa:
      return "unknown_ca";
    case Refusal::kNotYetValid:
      return "certificate_not_yet_valid";
    case Refusal::kExpired:
      return "certificate_expired";
    case Refusal::kRevoked:
      return "certificate_revoked";
    case Refusal::kUnfit:
      return "unfit_certificate";
    case Refusal::kCrlMissing:
      return "crl_missing";
    case Refusal::kCrlNotYetValid:
      return "crl_not_yet_valid";
    case Refusal::kCrlExpired:
      return "crl_expired";
    case Refusal::kNoName:
      return "no_cats_name";
    case Refusal::kBadName:
      return "bad_cats_name";
    case Refusal::kWrongName:
      return "wrong_name";
  }
  return "?";
}

struct Trust::Store {
  struct End {
    std::string what;
    int64_t at = 0;  // Unix seconds
  };
  StorePtr store{X509_STORE_new()};
  std::vector<End> ends;  // of CAs and lists

  Result<void> add_cas(std::string_view pem) {
    const auto cas = read_certificates(pem, kCasMax);
    if (!cas) return cas.error();
    for (const X509Ptr& ca : *cas) {
      if (X509_check_ca(ca.get()) == 0) {
        return Error{"expected CA certificates, not " + format_name(X509_get_subject_name(ca.get()))};
      }
      if (X509_STORE_add_cert(store.get(), ca.get()) != 1) return Error{take_openssl_error()};
      ends.push_back(
          {"CA " + format_name(X509_get_subject_name(ca.get())), unix_seconds(X509_get0_notAfter(ca.get()))});
    }
    return {};
  }

  // Returns the earliest end of a list.
  Result<std::optional<int64_t>> add_crls(std::string_view pem) {
    const auto crls = read_crls(pem, kCrlsMax);
    if (!crls) return crls.error();
    std::optional<int64_t> earliest;
    for (const CrlPtr& crl : *crls) {
      if (X509_STORE_add_crl(store.get(), crl.get()) != 1) return Error{take_openssl_error()};
      const ASN1_TIME* const next = X509_CRL_get0_nextUpdate(crl.get());
      if (next == nullptr) continue;
      ends.push_back({"revocation list of " + format_name(X509_CRL_get_issuer(crl.get())), unix_seconds(next)});
      earliest = std::min(earliest.value_or(ends.back().at), ends.back().at);
    }
    X509_STORE_set_flags(store.get(), X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return earliest;
  }
};

Trust::Trust() : store_(std::make_unique<Store>()) {
  X509_VERIFY_PARAM* const how = X509_STORE_get0_param(store_->store.get());
  X509_VERIFY_PARAM_set_depth(how, kDepthMax);
  X509_VERIFY_PARAM_set_auth_level(how, kSecurityLevel);
}
Trust::~Trust() = default;

Result<std::shared_ptr<const Trust>> Trust::load(const Files& files) {
  const std::shared_ptr<Trust> trust(new Trust);
  const std::pair<const std::string*, std::string*> texts[] = {
      {&files.ca, &trust->ca_pem_}, {&files.certificate, &trust->certificate_pem_}, {&files.key, &trust->key_pem_}};
  for (const auto& [file, text] : texts) {
    auto read = read_file(*file);
    if (!read) return read.error();
    *text = std::move(*read);
  }
  if (const auto added = trust->store_->add_cas(trust->ca_pem_); !added) return in(files.ca, added.error());
  const auto chain = read_certificates(trust->certificate_pem_, kChainMax);
  if (!chain) return in(files.certificate, chain.error());
  const auto key = read_private_key(trust->key_pem_);
  if (!key) return in(files.key, key.error());
  X509* const own = chain->front().get();
  if (X509_check_private_key(own, key->get()) != 1) {
    ERR_clear_error();
    return Error{files.key + ": expected the key of " + files.certificate};
  }
  std::string bad;
  if (read_names(own, trust->names_, bad) == Refusal::kBadName) return Error{files.certificate + ": " + bad};
  trust->not_after_ = unix_seconds(X509_get0_notAfter(own));
  if (files.crl.empty()) return std::shared_ptr<const Trust>(trust);

  const auto lists = read_file(files.crl);
  if (!lists) return lists.error();
  const auto earliest = trust->store_->add_crls(*lists);
  if (!earliest) return in(files.crl, earliest.error());
  trust->crl_next_update_ = *earliest;
  return std::shared_ptr<const Trust>(trust);
}

Trust::Verdict Trust::check(std::string_view certificate, std::string_view intermediates, Side side,
                            const Expected& expected, bool live) const {
  Verdict verdict;
  const auto refuse = [&](Refusal why, const std::string& detail) {
    verdict.refusal = why;
    verdict.detail = detail;
    return std::move(verdict);
  };
  if (certificate.empty()) return refuse(Refusal::kNoCertificate, "the peer showed none");
  const auto leaf = read_certificates(certificate, 1);
  if (!leaf) return refuse(Refusal::kMalformed, leaf.error().message);
  std::vector<X509Ptr> others;
  if (!intermediates.empty()) {
    auto read = read_certificates(intermediates, kChainMax);
    if (!read) return refuse(Refusal::kMalformed, read.error().message);
    others = std::move(*read);
  }
  const StackPtr untrusted(sk_X509_new_null());
  for (const X509Ptr& other : others) sk_X509_push(untrusted.get(), other.get());

  X509* const own = leaf->front().get();
  Peer& peer = verdict.peer;
  peer.serial = format_serial(own);
  peer.issuer = format_name(X509_get_issuer_name(own));
  peer.subject = format_name(X509_get_subject_name(own));
  const std::string who = peer.subject + " serial " + peer.serial;
  const CheckPtr check(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(check.get(), store_->store.get(), own, untrusted.get()) != 1) {
    return refuse(Refusal::kMalformed, who + ": " + take_openssl_error());
  }
  X509_STORE_CTX_set_purpose(check.get(), side == Side::kClient ? X509_PURPOSE_SSL_CLIENT : X509_PURPOSE_SSL_SERVER);
  X509_STORE_CTX_set_verify_cb(check.get(), live ? judge_live : judge_new);
  if (X509_verify_cert(check.get()) != 1) {
    ERR_clear_error();
    const int error = X509_STORE_CTX_get_error(check.get());
    return refuse(refusal_of(error), who + ": " + X509_verify_cert_error_string(error));
  }
  std::string bad;
  if (const auto refusal = read_names(own, peer.names, bad)) {
    return refuse(*refusal, who + ": " + (bad.empty() ? "expected a SAN URI cats:..." : bad));
  }
  if (!expected.meets(peer.names)) {
    return refuse(Refusal::kWrongName, who + ": is " + peer.names.front().uri() + ", expected " + expected.format());
  }
  peer.fingerprint = fingerprint(own);
  peer.not_after = unix_seconds(X509_get0_notAfter(own));
  peer.certificate = certificate;
  peer.intermediates = intermediates;
  return verdict;
}

Trust::Verdict Trust::judge(std::string_view certificate, std::string_view intermediates, Side side,
                            const Expected& expected) const {
  return check(certificate, intermediates, side, expected, false);
}

std::optional<Refusal> Trust::still_good(const Peer& peer, Side side, const Expected& expected) const {
  return check(peer.certificate, peer.intermediates, side, expected, true).refusal;
}

std::vector<std::string> Trust::alarms(int64_t now, int64_t ahead) const {
  std::vector<std::string> lines;
  if (not_after_ - ahead <= now) lines.push_back(runs_out("our certificate", not_after_, now));
  for (const Store::End& end : store_->ends) {
    if (end.at - ahead <= now) lines.push_back(runs_out(end.what, end.at, now));
  }
  return lines;
}

}  // namespace margay::security
