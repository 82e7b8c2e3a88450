// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the benches of the fast path run on: a site of one SCI and eight instances, its fast path with one worker,
// and TCP packets of many clients as 64-byte templates (IPv6: 128) in random flow order. Copying a template into a
// buffer stands for a port's receive. One thread.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/core/fast_path.h"
#include "tests/support/test_arena.h"

namespace margay::bench {

enum class Family : uint8_t { kIpv4, kIpv6 };

struct Setup {
  Family family = Family::kIpv4;
  dp::Mode mode = dp::Mode::kNat;
  uint32_t flows = 1024;
};

inline constexpr MacAddress kClientSide{{2, 0, 0, 0, 0xf, 0}}, kInstanceSide{{2, 0, 0, 0, 0xf, 1}};
inline constexpr MacAddress kForwarder{{2, 0, 0, 0, 0, 1}};
inline constexpr size_t kInstances = 8;
inline constexpr uint16_t kServicePort = 80, kInstancePort = 8080;  // l2-dsr: kServicePort for both

IpAddress service_address(Family family);
IpAddress instance_address(Family family, size_t i);
MacAddress instance_mac(size_t i);
// The client of a flow: sixteen ports an address.
dp::FlowKey client_of(Family family, uint32_t flow);
dp::HashSecret bench_secret();

// One packet of a flow: `kFromClient` from the forwarder to the SCI, `kFromInstance` from instance to client.
struct Segment {
  uint8_t flags = 0;  // dp::TcpFlag
  uint32_t sequence = 0, acknowledgement = 0;
  uint16_t payload = 0;
};

// Frames of one length, in one piece of memory.
class Frames {
 public:
  Frames(Family family, size_t count);

  size_t size() const { return count_; }
  uint16_t length() const { return length_; }
  const uint8_t* operator[](size_t i) const { return bytes_.data() + i * stride_; }
  void write_from_client(size_t i, uint32_t flow, const Segment& segment);
  void write_from_instance(size_t i, uint32_t flow, size_t instance, uint16_t port, const Segment& segment);

 private:
  struct Ends {
    MacAddress mac_from, mac_to;
    IpAddress from, to;
    uint16_t port_from = 0, port_to = 0;  // wire order
  };
  void write(size_t i, const Ends& ends, const Segment& segment);

  Family family_;
  size_t count_;
  uint16_t length_;
  size_t stride_;
  std::span<uint8_t> bytes_;
  dp::TestArena arena_;
};

// Receive buffers, used in turn as from a port's pool.
class Buffers {
 public:
  // Copies frames [first, first + count) into the burst. REQUIRES: count <= kBurstMax
  void receive(const Frames& frames, size_t first, size_t count, dp::PortIndex port, dp::Burst& burst);

 private:
  static constexpr size_t kCount = 256, kBytes = 2048, kHeadroom = 128;
  struct alignas(dp::kCacheLine) Buffer {
    std::array<uint8_t, kBytes> bytes;
  };
  std::vector<Buffer> buffers_ = std::vector<Buffer>(kCount);
  size_t next_ = 0;
};

class Site {
 public:
  explicit Site(const Setup& setup);

  // Each flow through its handshake. Returns the acknowledgements that then hit, one a flow, in random order.
  Frames establish();
  // Frames [first, first + count) of the site, a burst after the other; ends the process when one is not transmitted.
  // `instances`, if not empty, takes each packet's instance.
  void process(const Frames& frames, size_t first, size_t count, dp::PortIndex port,
               std::span<dp::InstanceIndex> instances = {});
  // Lets time pass at once.
  void pass(dp::Nanoseconds time) { now_ += time; }
  bool run_timers() { return fast_path_->tick(*table_, now_); }  // some; false: nothing is due any more

  const Setup& setup() const { return setup_; }
  dp::FastPath& fast_path() { return *fast_path_; }
  uint16_t instance_port() const { return setup_.mode == dp::Mode::kNat ? kInstancePort : kServicePort; }

 private:
  static size_t bytes_for(const Setup& setup);

  Setup setup_;
  std::unique_ptr<dp::SiteTable> table_;
  dp::TestArena arena_;
  dp::SharedState shared_;
  std::unique_ptr<dp::FastPath> fast_path_;
  Buffers buffers_;
  dp::Burst burst_;
  dp::Nanoseconds now_ = 1000 * dp::kSecond;
};

}  // namespace margay::bench
