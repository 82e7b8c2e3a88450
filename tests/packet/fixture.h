// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packet fixtures in katran's form: a row is a name, a site, and steps. A step puts packets into one worker's fast
// path or lets time pass, and says what must come of it: the outcome, the frame's bytes, frames the SCI makes itself
// (in any order, and no others), and held packets that are let go. Expected frames are built from the RFCs'
// rules by the packet builder, mostly as a variation of what came in; never copied from our output.
//
//   {"client's SYN reaches the instance", nat_site(),
//    {in(0, kSyn).out(1, kSyn.to("10.1.0.11:8080").ether(kPort1, kInstance1).ttl(63))}},
//
// After each step the counters of drops and refusals must be what the steps foretell, packet by packet. After the last
// step of each row all timers run out: no binding, no slot, no audit difference may be left.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/core/fast_path.h"
#include "tests/support/packet_builder.h"

namespace margay::test {

using dp::SiteConfig;

struct PortFrame {
  dp::PortIndex port;
  Bytes bytes;
  friend auto operator<=>(const PortFrame&, const PortFrame&) = default;
};

struct Arrival {
  PortFrame frame;
  dp::Outcome expected = dp::Outcome::consumed();
  std::optional<Bytes> expected_bytes;
  Refusal refused = Refusal::kNone;
  uint16_t headroom = 128;
};

class Step {
 public:
  // What must come of the last packet.
  Step out(dp::PortIndex port, const PacketBuilder& frame) const;
  Step kernel(dp::PortIndex port, const PacketBuilder& frame) const;
  Step drop(DropReason why) const;
  Step consumed() const;
  Step held() const;
  // Beside out(): the packet that leaves is the answer to one that was refused.
  Step refused(Refusal why) const;
  // Bytes in front of the last packet in its buffer.
  Step headroom(uint16_t bytes) const;
  // Another packet in the same burst.
  Step also(dp::PortIndex port, const PacketBuilder& frame) const;
  // A frame of our own, out of this port.
  Step own(dp::PortIndex port, const PacketBuilder& frame) const;
  // A held packet that goes now, or is given up.
  Step released(dp::PortIndex port, const PacketBuilder& frame) const;
  Step given_up(DropReason why) const;
  // Bindings and slots in all once the step is over.
  Step leaves(size_t flows, uint64_t slots) const;

  std::vector<Arrival> arrivals;
  bool from_kernel = false;
  dp::Nanoseconds passes = 10 * dp::kMillisecond;  // before the packets
  std::function<void(dp::SiteTable&)> change;
  std::vector<PortFrame> own_frames;
  std::vector<Arrival> let_go;
  std::optional<std::pair<size_t, uint64_t>> left;
};

Step in(dp::PortIndex port, const PacketBuilder& frame);
Step from_kernel(dp::PortIndex port, const PacketBuilder& frame);
Step wait(dp::Nanoseconds time);
Step change(std::function<void(dp::SiteTable&)> what);  // of the site table, as a command would

struct Row {
  std::string name;
  SiteConfig site;
  std::vector<Step> steps;
  friend void PrintTo(const Row& row, std::ostream* os) { *os << row.name; }
};
using Rows = std::vector<Row>;

// --- the site: clients behind a router on port 0, instances on port 1 ---

inline const MacAddress kPort0 = mac("02:00:00:00:0f:00"), kPort1 = mac("02:00:00:00:0f:01");
inline const MacAddress kRouter = mac("02:00:00:00:00:01");  // gateway and Egress CATS-Forwarder
inline const MacAddress kInstance1 = mac("02:00:00:00:01:01"), kInstance2 = mac("02:00:00:00:01:02");
inline const MacAddress kStranger = mac("02:00:00:00:ee:ee");

// Port 0: 192.0.2.2/24, 2001:db8::2/64, gateways .1; port 1: 10.1.0.2/24, 2001:db8:1::2/64. SCIs of one instance
// each at 192.0.2.10 and 2001:db8::10: TCP 80 to port 8080 and UDP 53 to port 5353 of 10.1.0.11 or
// 2001:db8:1::11. Next hops are known by configuration; no kernel interfaces, no VLANs.
SiteConfig nat_site();
SiteConfig dsr_site();  // the same in l2-dsr, ports unchanged
SiteConfig with(SiteConfig site, const std::function<void(SiteConfig&)>& what);

// Clients' packets as the forwarder hands them over, and what instances answer.
inline PacketBuilder from_router(const PacketBuilder& p) { return p.ether(kRouter, kPort0); }
inline PacketBuilder from_instance(const PacketBuilder& p) { return p.ether(kInstance1, kPort1); }

Rows frame_rows();       // what the parser and the link layer refuse
Rows forwarding_rows();  // nat and l2-dsr
Rows connection_rows();  // TCP's life, refusals, unknown flows
Rows tunnel_rows();      // ipip and gue
Rows too_big_rows();     // what does not fit, and MSS
Rows local_rows();       // ARP, ND, echo, kernel interface

}  // namespace margay::test
