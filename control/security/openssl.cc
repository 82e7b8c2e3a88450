// SPDX-License-Identifier: Apache-2.0
#include "control/security/openssl.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/fd.h"

namespace margay::security {
namespace {

constexpr size_t kFileMax = size_t{4} << 20;
constexpr size_t kNameMax = 256;

std::string hex(const unsigned char* bytes, size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < size; ++i) out += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  return out;
}

// A key that asks for a passphrase is one we cannot read: nobody is there to type it.
int no_passphrase(char*, int, int, void*) { return -1; }

template <class Pointer, class Read>
Result<std::vector<Pointer>> read_all(std::string_view pem, size_t max, const char* what, Read read) {
  const BioPtr bio = memory_bio(pem);
  std::vector<Pointer> all;
  ERR_clear_error();
  while (Pointer next{read(bio.get())}) {
    if (all.size() == max) return Error{"more than " + std::to_string(max) + " of: " + what};
    all.push_back(std::move(next));
  }
  // The end of the text is an error of its own kind, and the only one that is none.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string why = take_openssl_error();
  if (!at_end) return Error{"cannot read: " + std::string(what) + ": " + why};
  if (all.empty()) return Error{"expected PEM of: " + std::string(what)};
  return all;
}

}  // namespace

std::string take_openssl_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown error";
}

Result<std::string> read_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return Error{path + ": " + std::strerror(errno)};
  if (!S_ISREG(status.st_mode)) return Error{path + ": expected a file"};
  std::string text;
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{path + ": " + std::strerror(errno)};
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<size_t>(got));
    if (text.size() > kFileMax) return Error{path + ": expected at most 4 MiB"};
  }
}

BioPtr memory_bio(std::string_view text) { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

int64_t unix_seconds(const ASN1_TIME* time) {
  tm parts{};
  return time != nullptr && ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string format_name(const X509_NAME* name) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, std::min(static_cast<size_t>(size), kNameMax));
}

std::string format_serial(const X509* certificate) {
  const std::unique_ptr<BIGNUM, Freer<BN_free>> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  char* const text = number ? BN_bn2hex(number.get()) : nullptr;
  std::string serial = text != nullptr ? text : "";
  OPENSSL_free(text);
  return serial;
}

std::string fingerprint(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  return X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1 ? hex(digest.data(), size) : "";
}

std::vector<std::string> uri_names(const X509* certificate) {
  std::vector<std::string> uris;
  const std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

Result<std::vector<X509Ptr>> read_certificates(std::string_view pem, size_t max) {
  return read_all<X509Ptr>(pem, max, "certificates",
                           [](BIO* bio) { return PEM_read_bio_X509(bio, nullptr, no_passphrase, nullptr); });
}

Result<std::vector<CrlPtr>> read_crls(std::string_view pem, size_t max) {
  return read_all<CrlPtr>(pem, max, "revocation lists",
                          [](BIO* bio) { return PEM_read_bio_X509_CRL(bio, nullptr, no_passphrase, nullptr); });
}

Result<KeyPtr> read_private_key(std::string_view pem) {
  const BioPtr bio = memory_bio(pem);
  ERR_clear_error();
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) return Error{"expected a private key in PEM, without a passphrase: " + take_openssl_error()};
  return key;
}

Result<KeyPtr> read_public_key(std::string_view pem) {
  const BioPtr bio = memory_bio(pem);
  ERR_clear_error();
  KeyPtr key(PEM_read_bio_PUBKEY(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) return Error{"expected a public key in PEM: " + take_openssl_error()};
  return key;
}

}  // namespace margay::security
