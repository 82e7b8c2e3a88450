// SPDX-License-Identifier: Apache-2.0
#pragma once

// The shell around the fast path in replay: ReplayNet stands for the NIC, its clock and the rings between workers;
// a ReplayIo is one worker's view of it, the Io of dataplane/worker.h. All workers are stepped in one thread.
//
// RX queues: a frame goes to queue receive_hash(...) % workers, as a NIC's RSS would do: it differs between the two
// directions of a flow, so that packets really have to be handed over. What has no 5-tuple goes to queue 0.
// Rings: one a worker, first in, first out, without a bound of their own: a step brings at most kBurstMax packets,
// and the next one begins when all rings are empty. So hand_over_full, transmit_full, link_down and kernel_full never
// happen.
//
// --assume-neighbours: each ARP request and neighbour solicitation of ours is answered at once, at the same time, by
// a frame that arrives on the same port, with the MAC of assumed_mac(). It is no input packet: no account of it is
// kept, and the kernel does not get it.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/core/fast_path.h"
#include "dataplane/replay/capture.h"
#include "dataplane/replay/decisions.h"

namespace margay::dp {

// FNV-1a (64 bits, folded to 32) over source, destination, both ports as on the wire, and the protocol; fragments
// and other IP packets: over addresses and protocol. Not IP, or malformed: 0.
uint32_t receive_hash(const Parsed& parsed);

// 02:04 and the four bytes of an IPv4 address; 02:06 and an IPv6 address's four 32-bit words combined by XOR.
MacAddress assumed_mac(const IpAddress& address);

// A frame inside the replay; Packet::handle of what the fast path sees.
struct ReplayPacket {
  static constexpr uint16_t kHeadroom = 128;  // as RTE_PKTMBUF_HEADROOM

  InputPacket input;                 // number 0: none of the input (own copy for another worker, assumed answer)
  std::vector<WorkerIndex> workers;  // that have seen it
  bool held = false;                 // the fast path kept it, and has told so
  Packet packet;
  std::vector<uint8_t> buffer;
};

struct PortOutput {
  CaptureWriter wire;
  std::optional<CaptureWriter> kernel;
};

// What became of the input packets (each is in exactly one place) and what else went out. Answered: turned into a
// reset or an ICMP message and sent back. Held: still, at the end.
struct Account {
  uint64_t input = 0, forwarded = 0, answered = 0, consumed = 0, kernel = 0, dropped = 0, held = 0;
  uint64_t truncated = 0;  // of dropped: by the replay itself, reason truncated_in_capture
  uint64_t own_frames = 0;
  uint64_t copies = 0;  // of ARP and ND, for the other workers
  uint64_t assumed_answers = 0;

  uint64_t difference() const { return input - forwarded - answered - consumed - kernel - dropped - held; }
  void add(Verdict verdict, bool answer);
};

class ReplayNet {
 public:
  struct Config {
    WorkerIndex workers = 1;
    uint16_t frame_bytes_max = 2048;  // longer frames are dropped as multi_segment
    bool assume_neighbours = false;
  };

  ReplayNet(const Config& config, size_t ports, std::vector<PortOutput> outputs, DecisionLog& log);

  void set_time(Nanoseconds now) { now_ = now; }
  Nanoseconds now() const { return now_; }
  // A frame of a capture arrives. `first_worker` counts it when no worker can see it.
  void arrive(const InputPacket& input, std::span<const uint8_t> bytes, WorkerCounters& first_worker);
  // Whether any frame still waits in a queue or ring.
  bool pending() const { return in_flight_ > 0; }

  const Account& account() const { return account_; }
  Result<void> close_outputs();

 private:
  friend class ReplayIo;
  using Queue = std::deque<ReplayPacket*>;

  ReplayPacket& fresh(PortIndex port, std::span<const uint8_t> bytes);
  void recycle(ReplayPacket& packet);
  void take(Queue& queue, WorkerIndex worker, Burst& burst);
  void put(Queue& queue, ReplayPacket& packet);
  void answer(PortIndex port, std::span<const uint8_t> question, const Parsed& parsed);

  Config config_;
  std::vector<PortOutput> outputs_;  // by port
  DecisionLog& log_;
  Nanoseconds now_ = 0;
  std::vector<std::vector<Queue>> receive_;  // by worker and port
  std::vector<Queue> rings_;                 // by worker
  size_t in_flight_ = 0;
  std::vector<std::unique_ptr<ReplayPacket>> packets_;
  std::vector<ReplayPacket*> free_;
  Account account_;
};

class ReplayIo {
 public:
  ReplayIo(ReplayNet& net, const FastPath& fast_path) : net_(net), fast_path_(fast_path) {}

  PortIndex ports() const { return static_cast<PortIndex>(net_.outputs_.size()); }
  void receive(PortIndex port, Burst& burst, WorkerCounters& counters);
  void receive_handed_over(Burst& burst, WorkerCounters& counters);
  void receive_from_kernel(PortIndex, Burst& burst, WorkerCounters&) { burst.count = 0; }
  void carry_out(Burst& burst, WorkerCounters& counters);
  void send(const Outbox& outbox, const SiteTable& table, WorkerCounters& counters);
  Nanoseconds now() const { return net_.now(); }

 private:
  WorkerIndex self() const { return fast_path_.self(); }
  void end(ReplayPacket& packet, uint32_t place, const Outcome& outcome, WorkerCounters& counters);
  void write(const Outcome& outcome, std::span<const uint8_t> frame, WorkerCounters& counters);
  void send_own(const Frame& frame, WorkerCounters& counters);

  ReplayNet& net_;
  const FastPath& fast_path_;
};

}  // namespace margay::dp
