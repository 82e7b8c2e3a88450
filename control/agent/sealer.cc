// SPDX-License-Identifier: Apache-2.0
#include "control/agent/sealer.h"

#include <algorithm>
#include <charconv>

#include <spdlog/spdlog.h>

#include "control/durable_file.h"
#include "control/northbound/wire/envelope.h"

namespace margay::control {
namespace {

constexpr char kWhat[] = "nonces";
// A file that was lost is made up for by the clock, in steps that no sender is fast enough for.
constexpr uint64_t kPerMillisecond = 4096;

Result<uint64_t> last_reserved(const std::string& path, int64_t unix_ms) {
  const auto content = read_checked(path, kWhat);
  if (!content) return content.error();
  uint64_t reserved = 0;
  if (*content) std::from_chars((*content)->data(), (*content)->data() + (*content)->size(), reserved);
  return std::max(reserved, static_cast<uint64_t>(std::max<int64_t>(unix_ms, 0)) * kPerMillisecond);
}

}  // namespace

Result<std::unique_ptr<Sealer>> Sealer::open(const std::optional<security::SigningKeyFile>& key,
                                             const std::string& state_directory, int64_t unix_ms) {
  const std::string path = state_directory + "/nonces";
  auto reserved = last_reserved(path, unix_ms);
  if (!reserved) {
    spdlog::warn("msg=\"the last nonces are not known, the clock has to do\" why={:?}", reserved.error().message);
    reserved = static_cast<uint64_t>(std::max<int64_t>(unix_ms, 0)) * kPerMillisecond;
  }
  std::unique_ptr<Sealer> sealer(new Sealer(path, *reserved));
  if (!key) return sealer;
  auto signer = security::Signer::load(key->file);
  if (!signer) return in("security.signing_key.file", signer.error());
  sealer->key_id_ = key->id;
  sealer->signer_ = std::move(*signer);
  return sealer;
}

std::optional<v1::Signed> Sealer::seal(northbound::Message message, Nanoseconds now) {
  if (const auto block = nonces_.wants()) {
    const auto written = write_checked(path_, kWhat, std::to_string(*block));
    if (written) nonces_.written_down(*block);
    if (!written && !told_) spdlog::error("msg=\"nonces cannot be kept\" why={:?}", written.error().message);
    told_ = !written;
  }
  const auto nonce = nonces_.take();
  if (!nonce) return std::nullopt;
  message.header.nonce = *nonce;
  northbound::Signer signer;
  if (signer_) {
    signer = {key_id_, northbound::Algorithm::kEd25519,
              [this](std::string_view bytes) { return signer_->sign(bytes); }};
  }
  v1::Signed out;
  northbound::seal(message, now, signer_ ? &signer : nullptr, out);
  return out;
}

}  // namespace margay::control
