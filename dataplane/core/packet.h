// SPDX-License-Identifier: Apache-2.0
#pragma once

// A packet as the core sees it: bytes in one piece, with room before them, and the shell's own handle.
// A Burst is what one poll of one queue brings; the shell fills packets[0..count), the fast path fills
// outcomes[0..count) and may change data, length and headroom of a packet. One worker only.

#include <array>
#include <cstdint>

#include "dataplane/core/outcome.h"
#include "dataplane/core/units.h"

namespace margay::dp {

struct Packet {
  uint8_t* data = nullptr;   // first byte of the Ethernet header
  void* handle = nullptr;    // an mbuf, or a replayed record; the core only passes it on
  uint16_t length = 0;       // bytes at data, frame check sequence not included
  uint16_t headroom = 0;     // writable bytes before data
  uint16_t tailroom = 0;     // writable bytes behind data + length
  PortIndex port = kNoPort;  // where it arrived first

  // Moves the start of the frame by `bytes` towards the front. REQUIRES: headroom >= bytes.
  void prepend(uint16_t bytes) {
    data -= bytes;
    headroom = static_cast<uint16_t>(headroom - bytes);
    length = static_cast<uint16_t>(length + bytes);
  }
  // Takes `bytes` off the front. REQUIRES: length >= bytes.
  void trim_front(uint16_t bytes) {
    data += bytes;
    headroom = static_cast<uint16_t>(headroom + bytes);
    length = static_cast<uint16_t>(length - bytes);
  }
  // Sets the length. REQUIRES: bytes <= length + tailroom.
  void resize(uint16_t bytes) {
    tailroom = static_cast<uint16_t>(tailroom + length - bytes);
    length = bytes;
  }
};

struct Burst {
  std::array<Packet, kBurstMax> packets;
  std::array<Outcome, kBurstMax> outcomes;
  uint32_t count = 0;
  bool handed_over = false;  // came from another worker's ring, not from a port
};

// Frames that the fast path makes itself (ARP, ND, resets to the other side): copied out by the shell after
// each burst. Bounded; what does not fit is counted as outbox_full.
struct Frame {
  static constexpr size_t kBytesMax = 128;
  std::array<uint8_t, kBytesMax> bytes;
  uint16_t length = 0;
  Outcome outcome;           // transmit, kernel or hand_over
  PortIndex port = kNoPort;  // for hand_over: the port it belongs to
};

class Outbox {
 public:
  static constexpr size_t kFramesMax = 128;

  // A frame to fill, or nullptr when full (counted by the caller).
  Frame* add() { return count_ < kFramesMax ? &frames_[count_++] : nullptr; }
  const Frame* begin() const { return frames_.data(); }
  const Frame* end() const { return frames_.data() + count_; }
  size_t room() const { return kFramesMax - count_; }
  bool empty() const { return count_ == 0; }
  void clear() { count_ = 0; }

 private:
  std::array<Frame, kFramesMax> frames_;
  uint32_t count_ = 0;
};

}  // namespace margay::dp
