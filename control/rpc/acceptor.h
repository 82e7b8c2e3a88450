// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes connections and hands them to gRPC, whose own listener knows no limit: it gives up for good when there are no
// descriptors left. A thread of its own. Of each connection it keeps a second descriptor, by which it sees when the
// connection is gone and can cut it off.
//
// At the limit a new connection still comes in, and the oldest one that carries no stream goes: whoever holds many
// idle connections pushes out his own, and a peer with a stream is never touched (CSMA-191). New ones are taken at one
// a millisecond then. Where all carry streams the new one is closed. The process's soft limit of descriptors is raised
// as far as that needs; where it may not have so many, the limit of connections is lower.
//
// gRPC looks at a message's size when all of it is there, and takes memory for it until then. So we look at what each
// socket has received: a connection that sends more than `unfinished` bytes of which nothing becomes a message is cut.

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "common/fd.h"
#include "common/net.h"
#include "common/result.h"
#include "common/units.h"

namespace margay::rpc {

// What a connection may send for what came of it. Any thread.
class Meter {
 public:
  void message(size_t size) { earned_.fetch_add(2 * size + kMessage, std::memory_order_relaxed); }
  void stream() { earned_.fetch_add(kStream, std::memory_order_relaxed); }
  uint64_t take() { return earned_.exchange(0, std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kMessage = 512, kStream = 16384;  // frames, TLS records; header lists
  std::atomic<uint64_t> earned_{0};
};

class Acceptor {
 public:
  struct Limits {
    size_t connections = 0;
    uint64_t unfinished = 0;  // bytes; and `window` for each stream, that the loop has not taken yet
    uint64_t window = 0;
    unsigned answer = 0;  // how long sent bytes may go unacknowledged, in milliseconds
  };
  using Take = std::function<uint64_t(int fd)>;  // owns it; returns the generation of who serves it

  // Nothing is taken before start().
  static Result<std::unique_ptr<Acceptor>> open(const AddressPort& listen, const Limits& limits, Take take);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void start();
  uint16_t port() const { return port_; }
  // Any thread. Of the connection from `address`, as AddressPort::format() writes it.
  std::shared_ptr<Meter> stream_opened(const std::string& address);  // none: no such connection
  void stream_closed(const std::string& address);

  size_t connections() const;
  size_t connections(uint64_t generation) const;
  void cut(uint64_t generation);  // all of its connections
  uint64_t accepted() const { return accepted_; }
  uint64_t evicted() const { return evicted_; }  // for want of room; those that did not come in included
  uint64_t flooded() const { return flooded_; }  // cut for what they sent

 private:
  struct Connection {
    std::string address;
    Fd fd;
    uint64_t generation = 0;
    size_t streams = 0;
    bool cut = false;
    std::shared_ptr<Meter> meter = std::make_shared<Meter>();
    uint64_t received = 0, acked = 0;  // bytes, when last looked at
    uint64_t unfinished = 0;
    std::list<Connection*>::iterator idle = {};  // its place, while it has no stream
  };

  Acceptor(const Limits& limits, Take take) : limits_(limits), take_(std::move(take)) {}
  void run();
  int accept();
  void admit(Fd fd, const std::string& address);
  void gone(uint64_t number);
  bool evict();
  void watch();

  const Limits limits_;
  const Take take_;
  uint16_t port_ = 0;
  Fd listener_, epoll_, stop_;
  std::atomic<uint64_t> accepted_{0}, evicted_{0}, flooded_{0};
  Nanoseconds watched_ = 0;

  mutable std::mutex mutex_;  // of what follows; the acceptor's thread alone adds and removes connections
  uint64_t next_ = 2;         // numbers of connections in the epoll set
  std::unordered_map<uint64_t, Connection> connections_;
  std::unordered_map<std::string, uint64_t> by_address_;
  std::list<Connection*> idle_;  // oldest first
  std::thread thread_;
};

}  // namespace margay::rpc
