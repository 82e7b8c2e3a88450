// SPDX-License-Identifier: Apache-2.0
#include "control/security/handshake.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "control/security/openssl.h"

namespace margay::security {
namespace {

constexpr size_t kSentMax = 8;  // certificates that a peer may send beside its own

std::string pem_of(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return "";
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

// In OpenSSL's place, of whose own check nothing runs.
int judge_peer(X509_STORE_CTX* check, void* handshake) {
  X509* const own = X509_STORE_CTX_get0_cert(check);
  const STACK_OF(X509)* const others = X509_STORE_CTX_get0_untrusted(check);
  std::string certificate = own != nullptr ? pem_of(own) : "", intermediates;
  const int count = others != nullptr ? sk_X509_num(others) : 0;
  bool good = count <= static_cast<int>(kSentMax) + 1;  // with its own
  for (int i = 0; good && i < count; ++i) {
    if (sk_X509_value(others, i) != own) intermediates += pem_of(sk_X509_value(others, i));
  }
  good = static_cast<Handshake*>(handshake)->judge(good ? certificate : "-", intermediates);
  X509_STORE_CTX_set_error(check, good ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
  return good ? 1 : 0;
}

}  // namespace

bool Handshake::judge(std::string_view certificate, std::string_view intermediates) {
  verdict_ = trust_->judge(certificate, intermediates, side_, expected_);
  return !verdict_.refusal;
}

Result<void> Handshake::set_up(void* context) {
  auto* const ssl = static_cast<SSL_CTX*>(context);
  const auto chain = read_certificates(trust_->certificate_pem(), kSentMax);
  if (!chain) return chain.error();
  const auto key = read_private_key(trust_->key_pem());
  if (!key) return key.error();
  bool good = SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
              SSL_CTX_use_certificate(ssl, chain->front().get()) == 1 && SSL_CTX_use_PrivateKey(ssl, key->get()) == 1;
  for (size_t i = 1; good && i < chain->size(); ++i) good = SSL_CTX_add1_chain_cert(ssl, (*chain)[i].get()) == 1;
  if (!good) return Error{take_openssl_error()};
  SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(ssl, 0);
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(ssl, &judge_peer, this);
  return {};
}

}  // namespace margay::security
