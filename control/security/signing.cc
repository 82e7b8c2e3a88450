// SPDX-License-Identifier: Apache-2.0
#include "control/security/signing.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <utility>

#include "control/security/openssl.h"

namespace margay::security {
namespace {

const unsigned char* data_of(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

Result<KeyPtr> load_key(const std::string& file, Result<KeyPtr> (*read)(std::string_view)) {
  const auto pem = read_file(file);
  if (!pem) return pem.error();
  auto key = read(*pem);
  if (!key) return in(file, key.error());
  if (EVP_PKEY_get_id(key->get()) != EVP_PKEY_ED25519) return Error{file + ": expected an Ed25519 key"};
  return key;
}

}  // namespace

struct Signer::Key {
  KeyPtr key;
};
struct Verifier::Key {
  KeyPtr key;
};

Result<Signer> Signer::load(const std::string& private_key_file) {
  auto key = load_key(private_key_file, read_private_key);
  if (!key) return key.error();
  return Signer(std::make_shared<const Key>(Key{std::move(*key)}));
}

std::string Signer::sign(std::string_view bytes) const {
  std::string signature(kSignatureSize, '\0');
  size_t size = signature.size();
  const DigestPtr context(EVP_MD_CTX_new());
  auto* const out = reinterpret_cast<unsigned char*>(signature.data());
  const bool done = EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_->key.get()) == 1 &&
                    EVP_DigestSign(context.get(), out, &size, data_of(bytes), bytes.size()) == 1 &&
                    size == kSignatureSize;
  if (!done) signature.clear();
  return signature;
}

std::string Signer::public_key_pem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PUBKEY(bio.get(), key_->key.get());
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

Result<Verifier> Verifier::load(const std::string& public_key_file) {
  auto key = load_key(public_key_file, read_public_key);
  if (!key) return key.error();
  return Verifier(std::make_shared<const Key>(Key{std::move(*key)}));
}

bool Verifier::verify(std::string_view bytes, std::string_view signature) const {
  if (signature.size() != kSignatureSize) return false;
  const DigestPtr context(EVP_MD_CTX_new());
  const bool good =
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_->key.get()) == 1 &&
      EVP_DigestVerify(context.get(), data_of(signature), signature.size(), data_of(bytes), bytes.size()) == 1;
  ERR_clear_error();
  return good;
}

}  // namespace margay::security
