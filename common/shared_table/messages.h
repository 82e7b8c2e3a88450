// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the two planes say to each other over their socket (AF_UNIX, SOCK_SEQPACKET: a message arrives whole or not at
// all). The data plane listens. On a connection it sends one kHello with two descriptors, the snapshot buffers and the
// counters; from then on the control plane commits buffers and the data plane answers each commit with kTaken or
// kRefused, and later with one kAck for all generations up to the one it names.
//
//   data plane                                control plane
//   kHello {buffers, running snapshot} ----->
//                                      <----- kCommit {buffer, generation, length, checksum}
//   kTaken {buffer} | kRefused {buffer, text} ----->      the buffer is the control plane's again
//   kAck {generation} ----->                              every worker uses this generation or a later one
//   kStalled {worker, generation} ----->                  a worker holds up the ack; named once a stall
//   kBusy {text} ----->                                   another control plane is connected; then it closes

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace margay::shared_table {

inline constexpr uint32_t kBuffers = 3;  // of kSnapshotBytesMax each

enum class MessageKind : uint32_t { kHello = 1, kBusy, kCommit, kTaken, kRefused, kAck, kStalled };

struct Message {
  static constexpr uint32_t kMagic = 0x4d59474d;  // "MGYM"
  static constexpr uint32_t kVersion = 1;

  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  MessageKind kind{};
  uint32_t buffer = 0;      // kHello: the buffer with the running snapshot; kStalled: the worker
  uint64_t generation = 0;  // kHello: of the running snapshot, 0 when there is none
  uint64_t length = 0;      // bytes of the snapshot
  uint64_t checksum = 0;    // of these bytes
  std::array<char, 216> text{};

  void say(std::string_view words);  // cut to what fits
  std::string_view said() const;
};
static_assert(sizeof(Message) == 256 && std::is_trivially_copyable_v<Message>);

enum class SendResult { kSent, kFull, kGone };

// Never blocks.
SendResult send(int socket, const Message& message, std::span<const int> descriptors = {});

struct Received {
  enum class State { kMessage, kNothing, kClosed, kWrong } state = State::kNothing;
  Message message;
  std::vector<Fd> descriptors;
  std::string wrong;  // kWrong: what is wrong with it
};

// Never blocks. Descriptors that come unasked are closed.
Received receive(int socket, size_t descriptors_max = 0);

}  // namespace margay::shared_table
