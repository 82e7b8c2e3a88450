// SPDX-License-Identifier: Apache-2.0
#include "bench/sci_certificates.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "common/check.h"
#include "control/security/random.h"

namespace margay::bench {
namespace {

using security::BioPtr;
using security::X509Ptr;

template <class Write>
std::string to_pem(Write write) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  MARGAY_CHECK(write(bio.get()) == 1);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

}  // namespace

Result<SciCertificates> SciCertificates::open(const std::string& folder) {
  SciCertificates made;
  auto ca = security::read_file(folder + "/ca.pem");
  if (!ca) return ca.error();
  made.ca_pem_ = std::move(*ca);
  auto certificates = security::read_certificates(made.ca_pem_, 1);
  if (!certificates) return in(folder + "/ca.pem", certificates.error());
  made.ca_ = std::move(certificates->front());
  const auto key = security::read_file(folder + "/ca.key");
  if (!key) return key.error();
  auto ca_key = security::read_private_key(*key);
  if (!ca_key) return in(folder + "/ca.key", ca_key.error());
  made.ca_key_ = std::move(*ca_key);
  made.key_.reset(EVP_EC_gen("P-256"));
  made.key_pem_ = to_pem(
      [&](BIO* out) { return PEM_write_bio_PrivateKey(out, made.key_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  return made;
}

std::string SciCertificates::issue(const std::vector<security::Name>& names) const {
  const X509Ptr made(X509_new());
  X509* const certificate = made.get();
  X509_set_version(certificate, X509_VERSION_3);
  uint64_t serial;
  std::memcpy(&serial, security::random_bytes(sizeof serial).data(), sizeof serial);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24 * 60 * 60);
  X509_set_pubkey(certificate, key_.get());
  X509_set_issuer_name(certificate, X509_get_subject_name(ca_.get()));
  const auto* const common_name = reinterpret_cast<const unsigned char*>(names.front().identity.c_str());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, common_name, -1, -1, 0);

  std::string uris;
  for (const security::Name& name : names) uris += (uris.empty() ? "URI:" : ",URI:") + name.uri();
  X509V3_CTX context;
  X509V3_set_ctx(&context, ca_.get(), certificate, nullptr, nullptr, 0);
  for (const auto& [what, value] :
       {std::pair{NID_basic_constraints, "critical,CA:FALSE"}, std::pair{NID_key_usage, "critical,digitalSignature"},
        std::pair{NID_ext_key_usage, "clientAuth"}, std::pair{NID_subject_alt_name, uris.c_str()},
        std::pair{NID_authority_key_identifier, "keyid"}}) {
    const std::unique_ptr<X509_EXTENSION, security::Freer<X509_EXTENSION_free>> extension(
        X509V3_EXT_conf_nid(nullptr, &context, what, value));
    MARGAY_CHECK(extension && X509_add_ext(certificate, extension.get(), -1) == 1);
  }
  MARGAY_CHECK(X509_sign(certificate, ca_key_.get(), EVP_sha256()) > 0);
  return to_pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

}  // namespace margay::bench
