// SPDX-License-Identifier: Apache-2.0
#pragma once

// Captures on disk: reading them (pcap and pcapng, micro- and nanosecond stamps, link type Ethernet), merging those
// of several ports by their time stamps, and writing (pcap, nanoseconds). libpcap does the file formats.
//
// Time never goes back within a reader: an earlier or impossible stamp is taken as the one before it, and counted.
// Errors name the file and the packet (from 1, as Wireshark numbers them). One thread.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "dataplane/core/units.h"

struct pcap;
struct pcap_dumper;

namespace margay::dp {

struct CapturedFrame {
  PortIndex port = kNoPort;
  Nanoseconds time = 0;            // since 1970, never before the frame ahead of it
  std::span<const uint8_t> bytes;  // valid until the reader moves on
  uint32_t wire_length = 0;        // bytes.size(), or more where the capture cut the frame off
};

class CaptureReader {
 public:
  // Opens a file that holds what arrived on `port`, and reads the first frame.
  static Result<CaptureReader> open(const std::string& file, PortIndex port);

  bool at_end() const { return at_end_; }
  const CapturedFrame& frame() const { return frame_; }  // REQUIRES: !at_end()
  Result<void> advance();                                // REQUIRES: !at_end()

  PortIndex port() const { return frame_.port; }
  uint64_t clamped() const { return clamped_; }  // stamps that went back or were none

 private:
  struct Close {
    void operator()(pcap* p) const;
  };

  CaptureReader(std::string file, PortIndex port) : file_(std::move(file)) { frame_.port = port; }
  void take_time(int64_t seconds, int64_t nanoseconds);

  std::string file_;
  std::unique_ptr<pcap, Close> pcap_;
  CapturedFrame frame_;
  uint64_t count_ = 0;
  uint64_t clamped_ = 0;
  bool at_end_ = false;
};

// The earliest of several readers first; of equal times the reader that stands first in the list.
class CaptureMerge {
 public:
  explicit CaptureMerge(std::vector<CaptureReader> readers) : readers_(std::move(readers)) { choose(); }

  bool at_end() const { return next_ == nullptr; }
  const CapturedFrame& frame() const { return next_->frame(); }  // REQUIRES: !at_end()
  Result<void> advance();                                        // REQUIRES: !at_end()
  Nanoseconds start() const { return at_end() ? 0 : frame().time; }
  std::span<const CaptureReader> readers() const { return readers_; }

 private:
  void choose();

  std::vector<CaptureReader> readers_;
  CaptureReader* next_ = nullptr;
};

class CaptureWriter {
 public:
  static Result<CaptureWriter> create(const std::string& file);

  void write(Nanoseconds time, std::span<const uint8_t> frame);
  Result<void> close();  // tells whether all of it was written

 private:
  struct Close {
    void operator()(pcap* p) const;
    void operator()(pcap_dumper* d) const;
  };

  explicit CaptureWriter(std::string file) : file_(std::move(file)) {}

  std::string file_;
  std::unique_ptr<pcap, Close> pcap_;
  std::unique_ptr<pcap_dumper, Close> dumper_;
};

}  // namespace margay::dp
