// SPDX-License-Identifier: Apache-2.0
#pragma once

// OpenSSL's objects with owners, and the few questions that we ask of them. For control/security alone.

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace margay::security {

template <auto kFree>
struct Freer {
  template <class T>
  void operator()(T* p) const {
    kFree(p);
  }
};
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, Freer<X509_CRL_free>>;

// The first error of this thread's queue, which is empty then: "no start line".
std::string take_openssl_error();

// At most 4 MiB. Errors: FILE: what.
Result<std::string> read_file(const std::string& path);

BioPtr memory_bio(std::string_view text);
int64_t unix_seconds(const ASN1_TIME* time);
std::string format_name(const X509_NAME* name);  // RFC 2253, one line, at most 256 bytes
std::string format_serial(const X509* certificate);
std::string fingerprint(const X509* certificate);
std::vector<std::string> uri_names(const X509* certificate);  // each SAN URI

// All of that kind in a PEM text, one to `max`; what else stands there is passed over. Errors without the file's name.
Result<std::vector<X509Ptr>> read_certificates(std::string_view pem, size_t max);
Result<std::vector<CrlPtr>> read_crls(std::string_view pem, size_t max);
Result<KeyPtr> read_private_key(std::string_view pem);
Result<KeyPtr> read_public_key(std::string_view pem);

}  // namespace margay::security
