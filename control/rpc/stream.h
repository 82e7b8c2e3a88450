// SPDX-License-Identifier: Apache-2.0
#pragma once

// Streams of messages between two processes, as the control loop sees them: events come out of a queue, and it sends
// and closes. Nothing of gRPC in here.
//
// The life of a stream: Opened once; then Received and WriteDone in any number; Closed once, after which its id means
// nothing, ever. A stream that the loop opened itself may be Closed without having been Opened.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "control/security/peer.h"
#include "control/security/trust.h"

namespace margay::rpc {

using StreamId = uint64_t;  // never used again within a process' server or client

// As gRPC's codes of these names.
enum class Code : uint8_t {
  kOk,
  kCancelled,
  kInvalid,
  kDeadline,
  kDenied,
  kExhausted,
  kUnimplemented,
  kInternal,
  kUnavailable,
  kUnauthenticated
};
std::string_view name_of(Code c);  // "UNAVAILABLE"

struct Opened {
  StreamId id = 0;
  std::shared_ptr<const security::Peer> peer;  // checked
  std::string address;                         // of the peer: "192.0.2.1:40312"
};
template <class Message>
struct Received {
  StreamId id = 0;
  Message message;
};
struct WriteDone {  // the next message may be sent
  StreamId id = 0;
};
struct Closed {
  StreamId id = 0;
  bool by_us = false;
  Code code{};
  std::string why;                                // one line
  std::optional<security::Refusal> refusal = {};  // the peer's certificate was good once, and is not any more
};
// Somebody was turned away before there was a stream (CSMA-193). At most kRefusedMax wait in the queue; more are
// counted only.
struct Refused {
  // Name of a security::Refusal, "too_many_streams", "stopping", or "own_certificate": ours, that gRPC does not take.
  std::string reason;
  std::string detail;  // one line
};
inline constexpr size_t kRefusedMax = 64;

template <class Message>
using Event = std::variant<Opened, Received<Message>, WriteDone, Closed, Refused>;
using RawEvent = Event<std::string>;

struct Limits {
  size_t message = size_t{4} << 20;  // bytes; a longer one ends its stream
  size_t window = size_t{64} << 10;  // bytes of a stream that come in before the loop takes what came before
  // Of a server. A connection more, and the one without a stream that is oldest is closed.
  size_t connections = 4096;
  size_t streams = 131'072;
  size_t streams_per_connection = 4096;
  // Bytes that a connection may bring beyond what became messages, and what a window holds for each of its streams; at
  // least twice `message`.
  size_t unfinished = size_t{16} << 20;
  size_t memory = size_t{1} << 30;              // bytes that gRPC counts before it closes connections: 8 KiB a stream
  std::chrono::milliseconds handshake{10'000};  // of TLS and HTTP/2
  std::chrono::milliseconds idle{300'000};      // a connection without a stream
  // Of both: how often a silent connection is asked, and how long its answer or acknowledgement may take.
  std::chrono::milliseconds keepalive{20'000}, keepalive_answer{10'000};
  std::chrono::milliseconds open{10'000};  // a client's stream, from open() to Opened
  std::chrono::milliseconds close{5'000};  // from close() until the stream is cancelled
};

struct Counters {
  uint64_t connections = 0, streams = 0;  // now
  uint64_t accepted = 0;                  // connections
  uint64_t evicted = 0;                   // connections without a stream that were closed for want of room
  uint64_t flooded = 0;                   // connections that were cut, as Limits::unfinished says
  uint64_t opened = 0;                    // streams
  uint64_t too_many_streams = 0;          // refused
  uint64_t malformed = 0;                 // messages that were no message
  uint64_t cancelled = 0;                 // streams that did not end within their time
  std::array<uint64_t, security::kRefusals> refused = {};
};

}  // namespace margay::rpc
