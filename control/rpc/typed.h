// SPDX-License-Identifier: Apache-2.0
#pragma once

// The same as server.h and client.h, in messages of proto/. A message is parsed when the loop takes it, so that however
// much one expands, there is one of them at a time.

#include <google/protobuf/message_lite.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "control/rpc/client.h"
#include "control/rpc/server.h"

namespace margay::rpc {

inline constexpr const char* kCollectionPush = "/margay.v1.Collection/Push";
inline constexpr const char* kSourcePull = "/margay.v1.Source/Pull";
inline constexpr const char* kNorthboundSession = "/margay.v1.Northbound/Session";

template <class Core, class Config, class In, class Out>
class Typed {
 public:
  static Result<std::unique_ptr<Typed>> open(Config config) {
    auto core = Core::open(std::move(config));
    if (!core) return core.error();
    return std::unique_ptr<Typed>(new Typed(std::move(*core)));
  }

  Core& core() { return *core_; }
  const Core& core() const { return *core_; }

  int fd() const { return core_->fd(); }
  std::optional<Event<In>> next() {
    while (auto raw = core_->next()) {
      auto* const received = std::get_if<Received<std::string>>(&*raw);
      if (received == nullptr) return other(std::move(*raw));
      Received<In> typed{received->id, {}};
      if (typed.message.ParseFromString(received->message)) return typed;
      core_->malformed(received->id, "expected " + typed.message.GetTypeName());
    }
    return {};
  }
  bool send(StreamId id, const Out& message) { return core_->send(id, message.SerializeAsString()); }
  StreamId ask(const Out& message) { return core_->ask(message.SerializeAsString()); }
  void close(StreamId id, Code code, const std::string& why) { core_->close(id, code, why); }

 private:
  explicit Typed(std::unique_ptr<Core> core) : core_(std::move(core)) {}

  static Event<In> other(RawEvent raw) {
    if (auto* const opened = std::get_if<Opened>(&raw)) return std::move(*opened);
    if (auto* const closed = std::get_if<Closed>(&raw)) return std::move(*closed);
    if (auto* const refused = std::get_if<Refused>(&raw)) return std::move(*refused);
    return std::get<WriteDone>(raw);
  }

  std::unique_ptr<Core> core_;
};

template <class In, class Out>
using StreamServer = Typed<Server, ServerConfig, In, Out>;
template <class In, class Out>
using StreamClient = Typed<Client, ClientConfig, In, Out>;

}  // namespace margay::rpc
