// SPDX-License-Identifier: Apache-2.0
#pragma once

// The SCI's fast path, one object a worker: bursts of packets and the time go in, outcomes and own frames come
// out. No EAL, no system call, no clock; all memory is taken at construction. fast_path.cc tells the packet's
// story; a flow's first packet stands in new_flow.cc, the life of a binding in bindings.cc, what goes to the SCI's
// own addresses in local.cc.
//
// Threads: everything by the one worker that owns it, except counters (any reader) and the shared ledgers (see
// slot_ledger.h). The table passed to a call must stay valid until the call returns (one RCU read section).

#include <array>
#include <cstdint>
#include <span>

#include "common/counters.h"
#include "common/token_bucket.h"
#include "dataplane/core/arena.h"
#include "dataplane/core/defence.h"
#include "dataplane/core/flow_table.h"
#include "dataplane/core/neighbours.h"
#include "dataplane/core/own_packets.h"
#include "dataplane/core/packet.h"
#include "dataplane/core/parse.h"
#include "dataplane/core/rewrite.h"
#include "dataplane/core/selector.h"
#include "dataplane/core/shared_state.h"
#include "dataplane/core/site_table.h"
#include "dataplane/core/stopwatches.h"
#include "dataplane/core/tcp_state.h"
#include "dataplane/core/timer_wheel.h"

namespace margay::dp {

struct FastPathConfig {
  WorkerIndex self = 0;
  WorkerIndex workers = 1;
  uint32_t flows = 1024;                 // entries of this worker
  std::span<FlowEntry> entries;          // so many free ones, in memory that outlives the process; none: from the arena
  HashSecret secret;                     // the same in all workers
  TokenRate resets{kMillisecond, 1000};  // to packets of unknown flows
  TokenRate icmp{kMillisecond, 1000};    // ICMP errors (RFC 1812 §4.3.2.8, RFC 4443 §2.4 f)
};

// What was decided about a packet of the last burst and why, for replay and explain.
struct PacketTrace {
  Direction direction = Direction::kFromClient;
  bool new_binding = false;
  int8_t slot_change = 0;  // +1 taken, -1 released, by this packet
  FlowState state_before = FlowState::kFree, state_after = FlowState::kFree;
  SciIndex sci = kNoIndex;
  InstanceIndex instance = kNoIndex;
  EntryIndex entry = kNoIndex;
  Refusal refused = Refusal::kNone;  // answered with a reset or an ICMP error, and why
};

class FastPath {
 public:
  // REQUIRES: shared outlives this.
  FastPath(const FastPathConfig& config, SharedState& shared, Arena& arena, Nanoseconds now);
  FastPath(const FastPath&) = delete;
  FastPath& operator=(const FastPath&) = delete;

  // Gives each packet of the burst its outcome.
  void process(Burst& burst, const SiteTable& table, Nanoseconds now);

  // Frames from the kernel interface of a port, on their way out of it.
  void process_from_kernel(Burst& burst, PortIndex port, const SiteTable& table);

  // Before the first burst: takes a binding over from another process. Its indices are the table's; it has a frontend,
  // an instance that is known, an owner that is this worker, and last_seen on this process's clock. The slots that it
  // holds are the caller's to charge.
  enum class TakenOver : uint8_t { kYes, kDuplicate, kTableFull };
  TakenOver take_over(const FlowEntry& binding, const SiteTable& table);

  // Once a poll: looks at no more than 3 * `limit` bindings whose time has come; every 10 ms also asks for next hops,
  // announces addresses and audits a share of the entries. Returns whether there is more to do at once.
  bool tick(const SiteTable& table, Nanoseconds now, uint32_t limit = 64);

  // The same walk in one go, for replay: ends all sessions of instances that may not go on. Returns whether some are
  // left, for the outbox is full.
  bool end_lost(const SiteTable& table, Nanoseconds now);

  // Held packets whose next hop is known now, or that waited in vain, at most a burst. Their outcomes are set.
  // Returns whether the burst holds any.
  bool release_held(Burst& burst, const SiteTable& table, Nanoseconds now);

  // Frames made by us since the last clear(); the shell copies them out after the calls above.
  Outbox& outbox() { return outbox_; }

  // Begins two rounds of gratuitous ARP and unsolicited NA for each announced address, paced by tick()
  // (RFC 5227 §2.3, RFC 4861 §7.2.6).
  void announce() { announce_round_ = announce_next_ = 0; }

  // For show, explain and replay: this worker only.
  const Parsed& parsed(uint32_t i) const { return parsed_[i]; }  // of the last burst
  const PacketTrace& trace(uint32_t i) const { return traces_[i]; }
  size_t flows() const { return flows_.used(); }
  size_t held() const { return neighbours_.held(); }
  const FlowTable& table() const { return flows_; }
  const Neighbours& neighbours() const { return neighbours_; }
  const Defence& defence() const { return defence_; }  // kDefender's holds the claims
  WorkerCounters& counters() { return counters_; }
  WorkerIndex self() const { return config_.self; }
  static constexpr size_t kGatewaysMax = 64;
  static constexpr WorkerIndex kDefender = 0;               // gets every claim to an address of ours
  static Tick timeout(const FlowEntry& e, const Sci& sci);  // from last_seen on

 private:
  struct Context {
    Burst& burst;
    const SiteTable& table;
    Nanoseconds now;
    Tick tick;
  };
  // A packet that belongs to a flow, or is about to begin one.
  struct Lane {
    uint32_t packet;   // index in the burst
    uint32_t service;  // frontend or endpoint
    uint64_t client_hash;
  };

  // fast_path.cc
  void classify(Context& c, uint32_t i);
  void add_lane(Context& c, uint32_t i, Direction direction, uint32_t service);
  bool hit(Context& c, uint32_t lane, EntryIndex e);
  void track(Context& c, uint32_t i, EntryIndex e, Direction direction);
  void change_state(Context& c, uint32_t i, EntryIndex e, Direction direction, FlowState next, uint32_t next_before);
  void time_response(Context& c, EntryIndex e, Direction direction);
  void to_instance(Context& c, uint32_t lane, EntryIndex e);
  void to_client(Context& c, uint32_t i, EntryIndex e, uint64_t client_hash);
  void clamp_mss(Context& c, uint32_t i, const Instance& instance);
  void send_to(Context& c, uint32_t i, uint32_t neighbour, InstanceIndex instance);
  uint32_t neighbour_of_client(const SiteTable& table, const IpAddress& client, uint64_t client_hash, Tick now,
                               Outcome& outcome);
  void to_kernel(Context& c, uint32_t i, DropReason without_kernel);
  void count_outcomes(Context& c);

  // new_flow.cc
  void miss(Context& c, uint32_t lane);
  void unknown_flow(Context& c, uint32_t lane);
  void new_flow(Context& c, uint32_t lane);
  struct Attempt {
    bool candidates = false;
    uint16_t mtu = 0;  // largest of those for which the packet was too long
  };
  Refusal select_and_bind(Context& c, uint32_t lane, HealthState wanted, Attempt& attempt);
  Refusal charge(const SiteTable& table, InstanceIndex i, uint8_t& flags, bool provisional);
  void uncharge(InstanceIndex i, uint8_t flags);
  Refusal bind(Context& c, uint32_t lane, InstanceIndex i, uint8_t flags);
  bool insert_keys(EntryIndex e, uint64_t hash, uint64_t reply_hash);
  void begin_binding(Context& c, uint32_t packet, EntryIndex e);
  void reject(Context& c, uint32_t i, Refusal why);
  void reset(Context& c, uint32_t i, Refusal why);
  void too_big(Context& c, uint32_t i, uint16_t mtu);
  void answer_with(Context& c, uint32_t i, IcmpError error, Refusal why);
  void answered(Context& c, uint32_t i, Refusal why);

  // bindings.cc
  static FlowKey key_of(const FlowEntry& e, Direction direction, const SiteTable& table);
  uint64_t hash_of(const FlowEntry& e, Direction direction, const SiteTable& table) const;
  void set_state(EntryIndex e, FlowState next, const Sci& sci);
  void release_provisional(EntryIndex e);
  void release_slot(EntryIndex e, EndReason reason);
  void end_binding(EntryIndex e, EndReason reason, const SiteTable& table);
  bool lost_instance(Context& c, uint32_t lane, EntryIndex e);
  static EndReason lost_reason(const Instance& instance, Tick now);
  static bool rebinds(const Instance& instance, EndReason reason);
  void end_with_resets(const SiteTable& table, EntryIndex e, Tick now);
  bool expire(const SiteTable& table, Tick now, uint32_t limit);
  void look_at(EntryIndex e, const SiteTable& table, Tick now);
  EntryIndex allocate(const SiteTable& table);
  TimerWheel& wheel_of(FlowState state);
  void audit(const SiteTable& table, Tick now);
  void audit_adjust(EntryIndex e, InstanceIndex i, int change);

  // local.cc
  void local_packet(Context& c, uint32_t i, LocalKind kind);
  void icmp_to_us(Context& c, uint32_t i, LocalKind kind);
  void arp(Context& c, uint32_t i);
  bool neighbour_discovery(Context& c, uint32_t i);
  void solicitation(Context& c, uint32_t i, const IpAddress& target);
  void advertisement(Context& c, uint32_t i, const IpAddress& target);
  void heard(Context& c, uint32_t i, const IpAddress& address, const MacAddress& mac, bool replace);
  void ask(const SiteTable& table, uint32_t neighbour);
  void conflict(Context& c, uint32_t i, const IpAddress& address, const MacAddress& mac);
  bool announce_one(const SiteTable& table, PortIndex port, const IpAddress& address);
  void announce_some(const SiteTable& table, Tick now);
  Frame* own_frame(Outcome outcome);

  FastPathConfig config_;
  SharedState& shared_;
  WorkerCounters& counters_;
  FlowTable flows_;
  TimerWheel closed_, transient_, steady_;  // TIME_WAIT, bindings that may give way, and the others
  Neighbours neighbours_;
  Defence defence_;
  Selector selector_;
  Stopwatches requests_;  // from the last data of a request to the first of its response
  TokenBucket resets_, icmp_;
  Outbox outbox_;
  Tick ticked_;

  // The burst in hand.
  std::array<Parsed, kBurstMax> parsed_;
  std::array<PacketTrace, kBurstMax> traces_;
  std::array<Lane, kBurstMax> lanes_;
  std::array<FlowKey, kBurstMax> keys_;
  std::array<uint64_t, kBurstMax> hashes_;
  std::array<EntryIndex, kBurstMax> found_;
  std::array<uint32_t, kBurstMax> misses_;
  uint32_t lane_count_ = 0, miss_count_ = 0;

  // The running audit: slot bits by instance, in entries below the cursor. Behind the last entry the instances are
  // compared, a share of them a tick.
  std::span<uint32_t> audited_;
  EntryIndex audit_cursor_ = 0;
  InstanceIndex audit_compared_ = 0;

  uint32_t announce_round_ = kNoIndex, announce_next_ = 0;
  Tick announce_at_ = 0;
};

}  // namespace margay::dp
