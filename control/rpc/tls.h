// SPDX-License-Identifier: Apache-2.0
#pragma once

// gRPC's credentials with our own check of the peer, and what both sides set alike. gRPC inside: for the .cc files of
// control/rpc alone.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "control/rpc/table.h"

namespace margay::rpc {

// Once a process: no lines of gRPC's own on stderr, the health service and reflection on.
void set_up_grpc();

// Of the handshakes of a client's connection. Any thread.
class LastRefusal {
 public:
  void set(std::string name) {
    const std::lock_guard lock(mutex_);
    name_ = std::move(name);
  }
  std::string get() const {
    const std::lock_guard lock(mutex_);
    return name_;
  }

 private:
  mutable std::mutex mutex_;
  std::string name_;
};
std::shared_ptr<grpc::ServerCredentials> server_credentials(const std::shared_ptr<Shared>& shared,
                                                            const security::Trust& own);
std::shared_ptr<grpc::ChannelCredentials> client_credentials(const std::shared_ptr<Shared>& shared,
                                                             const security::Trust& own,
                                                             std::shared_ptr<LastRefusal> told);

// The peer of a call, judged once a certificate and trust. Any thread.
class Peers {
 public:
  struct Known {
    std::shared_ptr<const security::Peer> peer;  // none: refused, and `why` tells
    std::shared_ptr<const security::Trust> trust;
    std::string why;
  };
  explicit Peers(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  Known of(const grpc::AuthContext& context);

 private:
  struct Entry {
    std::weak_ptr<const security::Peer> peer;
    std::shared_ptr<const security::Trust> trust;
  };
  std::shared_ptr<Shared> shared_;
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> known_;
  size_t prune_at_ = 64;
};

inline int ms(std::chrono::milliseconds t) { return static_cast<int>(t.count()); }

grpc::Status to_status(Code code, const std::string& why);
Code to_code(grpc::StatusCode code);

grpc::ByteBuffer to_buffer(const std::string& message);
std::string to_string(const grpc::ByteBuffer& buffer);

// "ipv4:192.0.2.1:40312" as "192.0.2.1:40312".
std::string address_of(const std::string& peer);

}  // namespace margay::rpc
