// SPDX-License-Identifier: Apache-2.0
#include "common/shared_table/messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace margay::shared_table {
namespace {

constexpr size_t kDescriptorsMax = 4;
using Control = std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))>;

std::vector<Fd> descriptors_of(msghdr& header) {
  std::vector<Fd> all;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      all.emplace_back(fd);
    }
  }
  return all;
}

std::string wrong_with(const Message& m, size_t bytes, size_t descriptors, size_t descriptors_max) {
  if (bytes != sizeof(Message)) {
    return "a message of " + std::to_string(bytes) + " bytes, expected " + std::to_string(sizeof(Message));
  }
  if (m.magic != Message::kMagic) return "a message that is none of ours";
  if (m.version != Message::kVersion) {
    return "protocol version " + std::to_string(m.version) + ", expected " + std::to_string(Message::kVersion);
  }
  if (m.kind < MessageKind::kHello || m.kind > MessageKind::kStalled) {
    return "a message of kind " + std::to_string(static_cast<uint32_t>(m.kind)) + ", which there is not";
  }
  if (descriptors > descriptors_max) return "descriptors that nobody asked for";
  return {};
}

}  // namespace

void Message::say(std::string_view words) {
  text = {};
  words.copy(text.data(), std::min(words.size(), text.size() - 1));
}

std::string_view Message::said() const { return {text.data(), strnlen(text.data(), text.size())}; }

SendResult send(int socket, const Message& message, std::span<const int> descriptors) {
  iovec piece{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) Control control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
  }
  if (::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message)) {
    return SendResult::kSent;
  }
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? SendResult::kFull : SendResult::kGone;
}

Received receive(int socket, size_t descriptors_max) {
  Received received;
  std::array<std::byte, sizeof(Message) + 1> bytes{};  // one more: what is too long is seen
  iovec piece{bytes.data(), bytes.size()};
  alignas(cmsghdr) Control control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) {
    const bool nothing = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    received.state = nothing ? Received::State::kNothing : Received::State::kClosed;
    return received;
  }
  received.descriptors = descriptors_of(header);
  if (size == 0) {
    received.state = Received::State::kClosed;
    return received;
  }
  std::memcpy(&received.message, bytes.data(), sizeof(Message));
  received.wrong =
      wrong_with(received.message, static_cast<size_t>(size), received.descriptors.size(), descriptors_max);
  received.state = received.wrong.empty() ? Received::State::kMessage : Received::State::kWrong;
  return received;
}

}  // namespace margay::shared_table
