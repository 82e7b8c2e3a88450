// SPDX-License-Identifier: Apache-2.0
#include "common/audit/chain.h"

#include <openssl/sha.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

namespace margay {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kTailBytes = uint64_t{1} << 20;  // no line is longer

std::string sha256_of(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string time_of(int64_t unix_ms) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  char text[40];
  if (gmtime_r(&seconds, &parts) == nullptr) return "?";
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string millis = std::to_string(1000 + unix_ms % 1000).substr(1);
  return std::string(text, size) + "." + millis + "Z";
}

}  // namespace

std::string AuditChain::add(const AuditEntry& entry) {
  Json json;
  json["n"] = lines_ + 1;
  json["time"] = time_of(entry.unix_ms);
  json["kind"] = entry.kind;
  json["who"] = entry.who;
  json["what"] = entry.what;
  json["detail"] = entry.detail;
  if (entry.times > 1) json["times"] = entry.times;
  json["previous"] = head_;
  std::string line = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  ++lines_;
  head_ = sha256_of(line);
  return line;
}

Result<void> AuditChain::follow(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return Error{"expected one JSON object"};
  const auto n = json.find("n"), previous = json.find("previous");
  if (n == json.end() || !n->is_number_unsigned()) return Error{"n: expected the line's number"};
  if (*n != lines_ + 1) return Error{"n: " + n->dump() + ", expected " + std::to_string(lines_ + 1)};
  if (previous == json.end() || *previous != head_) {
    return Error{"previous: expected the SHA-256 of the line before it, " + head_};
  }
  ++lines_;
  head_ = sha256_of(line);
  return {};
}

Result<AuditChain> AuditChain::after(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  const auto n = json.is_object() ? json.find("n") : json.end();
  if (n == json.end() || !n->is_number_unsigned()) return Error{"is no line of an audit log"};
  AuditChain chain;
  chain.lines_ = n->get<uint64_t>();
  chain.head_ = sha256_of(line);
  return chain;
}

Result<AuditChain> verify_audit(std::istream& log, const std::string& path) {
  AuditChain chain;
  std::string line;
  while (std::getline(log, line)) {
    const std::string where = path + ":" + std::to_string(chain.lines() + 1);
    if (log.eof()) return Error{where + ": is cut off, expected a line with its end"};
    if (const auto followed = chain.follow(line); !followed) return in(where, followed.error());
  }
  return chain;
}

Result<AuditChain> resume_audit(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory || (!error && size == 0)) return AuditChain{};
  std::ifstream file(path, std::ios::binary);
  const uint64_t from = size > kTailBytes ? size - kTailBytes : 0;
  std::string tail(size - from, '\0');
  file.seekg(static_cast<std::streamoff>(from));
  if (error || !file.read(tail.data(), static_cast<std::streamsize>(tail.size())))
    return Error{path + ": cannot be read"};
  if (tail.back() != '\n') return Error{path + ": its last line is cut off"};
  tail.pop_back();
  const size_t begin = tail.rfind('\n') == std::string::npos ? 0 : tail.rfind('\n') + 1;
  const auto chain = AuditChain::after(std::string_view(tail).substr(begin));
  return chain ? chain : in(path + ": its last line", chain.error());
}

}  // namespace margay
