// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/acceptor.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/monotonic.h"

namespace margay::rpc {
namespace {

constexpr uint64_t kListener = 0, kStop = 1;  // numbers in the epoll set
constexpr int kPause = 1;                     // milliseconds from one connection to the next above the limit
constexpr int kNoDescriptorPause = 100;
constexpr Nanoseconds kWatch = 200 * kMillisecond;
// What a connection may send a second without a reason: pings, settings. And for each byte of ours that it
// acknowledged: window updates.
constexpr uint64_t kBytesASecond = 8192, kPerAcked = 8;

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

constexpr rlim_t kOtherDescriptors = 256;  // that the process needs beside its connections

// Of so many connections, two descriptors each, those that the process may have.
size_t room_for(size_t connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
  const rlim_t wanted = 2 * rlim_t{connections} + kOtherDescriptors;
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
  const rlim_t ours = std::max(limit.rlim_cur, 2 * kOtherDescriptors) - kOtherDescriptors;
  return std::min<size_t>(connections, ours / 2);
}

socklen_t to_socket_address(const AddressPort& from, Address& to) {
  to = {};
  if (from.address.is_v4()) {
    to.v4 = {
        .sin_family = AF_INET, .sin_port = to_wire16(from.port), .sin_addr = {from.address.v4_wire()}, .sin_zero = {}};
    return sizeof to.v4;
  }
  to.v6.sin6_family = AF_INET6;
  to.v6.sin6_port = to_wire16(from.port);
  std::memcpy(&to.v6.sin6_addr, from.address.bytes.data(), from.address.bytes.size());
  return sizeof to.v6;
}

AddressPort from_socket_address(const Address& from) {
  if (from.any.sa_family == AF_INET) return {IpAddress::v4(from.v4.sin_addr.s_addr), from_wire16(from.v4.sin_port)};
  AddressPort to{.address = {}, .port = from_wire16(from.v6.sin6_port)};
  std::memcpy(to.address.bytes.data(), &from.v6.sin6_addr, to.address.bytes.size());
  return to;
}

}  // namespace

Result<std::unique_ptr<Acceptor>> Acceptor::open(const AddressPort& listen, const Limits& limits, Take take) {
  Limits bounded = limits;
  bounded.connections = room_for(limits.connections);
  std::unique_ptr<Acceptor> acceptor(new Acceptor(bounded, std::move(take)));
  const auto failed = [&] { return Error{"cannot listen on " + listen.format() + ": " + std::strerror(errno)}; };
  Address address;
  const socklen_t size = to_socket_address(listen, address);
  acceptor->listener_ = Fd(socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  acceptor->epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  acceptor->stop_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int listener = acceptor->listener_.get(), on = 1;
  if (listener < 0 || !acceptor->epoll_ || !acceptor->stop_) return failed();
  (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!listen.address.is_v4()) (void)setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(listener, &address.any, size) != 0 || ::listen(listener, SOMAXCONN) != 0) return failed();
  socklen_t length = sizeof address;
  if (getsockname(listener, &address.any, &length) != 0) return failed();
  acceptor->port_ = from_socket_address(address).port;
  for (const auto& [fd, number] : {std::pair{listener, kListener}, std::pair{acceptor->stop_.get(), kStop}}) {
    epoll_event in{.events = EPOLLIN, .data = {.u64 = number}};
    if (epoll_ctl(acceptor->epoll_.get(), EPOLL_CTL_ADD, fd, &in) != 0) return failed();
  }
  return acceptor;
}

void Acceptor::start() {
  thread_ = std::thread([this] { run(); });
}

Acceptor::~Acceptor() {
  constexpr uint64_t kOne = 1;
  if (!thread_.joinable()) return;
  (void)!::write(stop_.get(), &kOne, sizeof kOne);
  thread_.join();
}

void Acceptor::run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), kWatch / kMillisecond);
    watch();
    bool listening = false;
    for (int i = 0; i < count; ++i) {
      const uint64_t number = events[static_cast<size_t>(i)].data.u64;
      if (number == kStop) return;
      if (number == kListener) {
        listening = true;
      } else {
        gone(number);
      }
    }
    const int pause = listening ? accept() : 0;
    pollfd stop{.fd = stop_.get(), .events = POLLIN, .revents = 0};
    if (pause > 0) (void)poll(&stop, 1, pause);
  }
}

// One connection. Returns how many milliseconds to wait before the next.
int Acceptor::accept() {
  Address address;
  socklen_t size = sizeof address;
  Fd fd(accept4(listener_.get(), &address.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return 0;
    const std::lock_guard lock(mutex_);
    evict();
    return kNoDescriptorPause;
  }
  const int on = 1;
  (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limits_.answer, sizeof limits_.answer);
  accepted_.fetch_add(1, std::memory_order_relaxed);
  admit(std::move(fd), from_socket_address(address).format());
  return connections() < limits_.connections ? 0 : kPause;
}

void Acceptor::admit(Fd fd, const std::string& address) {
  Fd second(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!second) return;
  uint64_t number;
  {
    const std::lock_guard lock(mutex_);
    if (connections_.size() >= limits_.connections && !evict()) {
      evicted_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    number = next_++;
    Connection& connection = connections_[number];
    connection.address = address;
    connection.fd = std::move(second);
    connection.idle = idle_.insert(idle_.end(), &connection);
    by_address_[address] = number;
    // Hang-up and error come unasked, and once each.
    epoll_event in{.events = EPOLLET, .data = {.u64 = number}};
    (void)epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd.get(), &in);
  }
  const uint64_t generation = take_(fd.release());
  const std::lock_guard lock(mutex_);
  if (const auto found = connections_.find(number); found != connections_.end()) found->second.generation = generation;
}

void Acceptor::gone(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (connection.streams == 0 && !connection.cut) idle_.erase(connection.idle);
  if (const auto at = by_address_.find(connection.address); at != by_address_.end() && at->second == number) {
    by_address_.erase(at);
  }
  connections_.erase(found);
}

// The caller holds the lock.
bool Acceptor::evict() {
  if (idle_.empty()) return false;
  Connection& oldest = *idle_.front();
  idle_.pop_front();
  oldest.cut = true;
  (void)shutdown(oldest.fd.get(), SHUT_RDWR);
  evicted_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// In the acceptor's thread, the only one that adds and removes connections, and that knows these counts.
void Acceptor::watch() {
  const Nanoseconds now = monotonic_now();
  if (now - watched_ < kWatch) return;
  const uint64_t free = kBytesASecond * (std::min(now - watched_, kSecond) / kMillisecond) / 1000;
  watched_ = now;
  for (auto& [number, connection] : connections_) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(connection.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    const uint64_t received = info.tcpi_bytes_received - std::exchange(connection.received, info.tcpi_bytes_received);
    const uint64_t acked = info.tcpi_bytes_acked - std::exchange(connection.acked, info.tcpi_bytes_acked);
    const uint64_t earned = connection.meter->take() + acked / kPerAcked + free;
    const uint64_t sent = connection.unfinished + received;
    connection.unfinished = sent > earned ? sent - earned : 0;
    if (connection.unfinished <= limits_.unfinished) continue;
    const std::lock_guard lock(mutex_);
    if (connection.unfinished <= limits_.unfinished + connection.streams * limits_.window) continue;
    connection.unfinished = 0;
    (void)shutdown(connection.fd.get(), SHUT_RDWR);
    flooded_.fetch_add(1, std::memory_order_relaxed);
  }
}

std::shared_ptr<Meter> Acceptor::stream_opened(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto at = by_address_.find(address);
  if (at == by_address_.end()) return {};
  Connection& connection = connections_.at(at->second);
  if (connection.streams++ == 0 && !connection.cut) idle_.erase(connection.idle);
  connection.meter->stream();
  return connection.meter;
}

void Acceptor::stream_closed(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto at = by_address_.find(address);
  if (at == by_address_.end()) return;
  Connection& connection = connections_.at(at->second);
  // A stream of a connection that is gone may end after the next one from the same address came.
  if (connection.streams == 0 || --connection.streams > 0 || connection.cut) return;
  connection.idle = idle_.insert(idle_.end(), &connection);
}

size_t Acceptor::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_.size();
}

size_t Acceptor::connections(uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(
      std::ranges::count_if(connections_, [&](const auto& c) { return c.second.generation == generation; }));
}

void Acceptor::cut(uint64_t generation) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, connection] : connections_) {
    if (connection.generation == generation) (void)shutdown(connection.fd.get(), SHUT_RDWR);
  }
}

}  // namespace margay::rpc
