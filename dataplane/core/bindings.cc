// SPDX-License-Identifier: Apache-2.0
// The life of a binding after its first packet: timers, the end, and the audit (SCI-87, SCI-91, SCI-92).
#include "dataplane/core/fast_path.h"
#include "dataplane/core/own_packets.h"

namespace margay::dp {
namespace {

constexpr uint32_t kAuditedPerTick = 256;  // entries, and instances
constexpr Tick kLate = 100;                // a second

// Why a binding ends when its timer runs out.
EndReason end_of(const FlowEntry& e) {
  switch (e.state) {
    case FlowState::kTimeWait:
    case FlowState::kClosing:
      return EndReason::kFin;
    case FlowState::kHalfClosed:
      return (e.flags & kTwoKeys) == 0 ? EndReason::kFin : EndReason::kTimeout;
    case FlowState::kResetGrace:
      return EndReason::kReset;
    case FlowState::kFree:
    case FlowState::kUdpUnreplied:
    case FlowState::kUdpReplied:
    case FlowState::kSynSent:
    case FlowState::kSynReceived:
    case FlowState::kEstablished:
      return EndReason::kTimeout;
  }
  return EndReason::kTimeout;
}

}  // namespace

Tick FastPath::timeout(const FlowEntry& e, const Sci& sci) {
  switch (e.state) {
    case FlowState::kUdpUnreplied:
      return sci.unreplied;
    case FlowState::kSynSent:
    case FlowState::kSynReceived:
      return sci.embryonic;
    // One-way: the server's FIN is never seen, so the client's begins the end.
    case FlowState::kHalfClosed:
      return (e.flags & kTwoKeys) == 0 ? sci.closing : sci.established;
    case FlowState::kClosing:
      return sci.closing;
    case FlowState::kTimeWait:
      return sci.time_wait;
    case FlowState::kResetGrace:
      return sci.reset_grace;
    case FlowState::kFree:
    case FlowState::kUdpReplied:
    case FlowState::kEstablished:
      return sci.established;
  }
  return sci.established;
}

FlowKey FastPath::key_of(const FlowEntry& e, Direction direction, const SiteTable& table) {
  const uint32_t service = direction == Direction::kFromClient ? e.frontend : table.endpoint_of_instance[e.instance];
  return {e.client, e.client_port, e.protocol, direction, service};
}

uint64_t FastPath::hash_of(const FlowEntry& e, Direction direction, const SiteTable& table) const {
  const FlowKey key = key_of(e, direction, table);
  return hash_key(config_.secret, hash_client(config_.secret, key.client, key.client_port, key.protocol), direction,
                  key.service);
}

FastPath::TakenOver FastPath::take_over(const FlowEntry& binding, const SiteTable& table) {
  const auto present = [&](Direction direction) {
    const FlowKey key = key_of(binding, direction, table);
    return flows_.find(key, hash_of(binding, direction, table), table.endpoint_of_instance) != kNoIndex;
  };
  const bool two_way = (binding.flags & kTwoKeys) != 0;
  if (present(Direction::kFromClient) || (two_way && present(Direction::kFromInstance))) return TakenOver::kDuplicate;
  const EntryIndex e = flows_.allocate();
  if (e == kNoIndex) return TakenOver::kTableFull;
  FlowEntry& entry = flows_[e];
  entry = binding;
  const uint64_t reply_hash = two_way ? hash_of(entry, Direction::kFromInstance, table) : 0;
  if (!insert_keys(e, hash_of(entry, Direction::kFromClient, table), reply_hash)) return TakenOver::kTableFull;
  entry.flags |= kAdopted;
  make_whole(entry);
  const Sci& sci = table.scis[table.instances[entry.instance].sci];
  wheel_of(entry.state).insert(e, entry.last_seen + timeout(entry, sci));
  shared_.serve(config_.self, entry.instance, entry.instance_generation);
  InstanceCounters& counters = shared_.counters(config_.self, entry.instance);
  counters.bindings.add();
  if ((entry.flags & kHoldsSlot) != 0) counters.active.add();
  if ((entry.flags & kHoldsProvisional) != 0) counters.provisional.add();
  return TakenOver::kYes;
}

// A longer timeout needs nothing (the wheel looks again later); a shorter one, or the other wheel, moves the entry.
void FastPath::set_state(EntryIndex e, FlowState next, const Sci& sci) {
  FlowEntry& entry = flows_[e];
  const Tick before = timeout(entry, sci);
  TimerWheel& from = wheel_of(entry.state);
  TimerWheel& to = wheel_of(next);
  entry.state = next;
  const Tick after = timeout(entry, sci);
  if (&from == &to && after >= before) return;
  from.erase(e);
  to.insert(e, entry.last_seen + after);
}

// A flow's proof, once in its life (D-45). Out of line: the hit path itself holds no locked instruction.
[[gnu::cold, gnu::noinline]] void FastPath::release_provisional(EntryIndex e) {
  FlowEntry& entry = flows_[e];
  shared_.provisional.put(entry.instance, config_.self);
  shared_.counters(config_.self, entry.instance).provisional.subtract();
  entry.flags &= static_cast<uint8_t>(~kHoldsProvisional);
}

void FastPath::release_slot(EntryIndex e, EndReason reason) {
  FlowEntry& entry = flows_[e];
  if ((entry.flags & kHoldsProvisional) != 0) release_provisional(e);
  shared_.slots.put(entry.instance, config_.self);
  entry.flags &= static_cast<uint8_t>(~kHoldsSlot);
  InstanceCounters& counters = shared_.counters(config_.self, entry.instance);
  counters.active.subtract();
  counters.ended[static_cast<size_t>(reason)].add();
  audit_adjust(e, entry.instance, -1);
}

[[gnu::cold, gnu::noinline]] void FastPath::end_binding(EntryIndex e, EndReason reason, const SiteTable& table) {
  FlowEntry& entry = flows_[e];
  take_apart(entry);
  if ((entry.flags & kHoldsSlot) != 0) release_slot(e, reason);
  wheel_of(entry.state).erase(e);
  flows_.erase(e, Direction::kFromClient, hash_of(entry, Direction::kFromClient, table));
  const bool two_way = (entry.flags & kTwoKeys) != 0;
  if (two_way) flows_.erase(e, Direction::kFromInstance, hash_of(entry, Direction::kFromInstance, table));
  InstanceCounters& counters = shared_.counters(config_.self, entry.instance);
  counters.bindings.subtract();
  if (two_way && entry.state == FlowState::kSynSent && reason == EndReason::kTimeout) counters.syn_unanswered.add();
  entry.state = FlowState::kFree;
  flows_.release(e);
}

// The bound instance may not go on (SCI-85, D-22): a TCP connection in mid-flow is reset at both ends, so that the
// client connects again at once; anything else is bound anew (false), and with on_unhealthy: rebind that is so of
// mid-flow packets too: they belong to a flow that nobody knows (unknown_flow).
[[gnu::cold, gnu::noinline]] bool FastPath::lost_instance(Context& c, uint32_t lane, EntryIndex e) {
  const uint32_t i = lanes_[lane].packet;
  const Parsed& p = parsed_[i];
  const bool from_client = keys_[lane].direction == Direction::kFromClient;
  const bool syn = p.layer == Layer::kTcp && (p.tcp_flags & (kSyn | kAck)) == kSyn;
  traces_[i].instance = flows_[e].instance;
  traces_[i].slot_change = (flows_[e].flags & kHoldsSlot) != 0 ? -1 : 0;
  const Instance& instance = c.table.instances[flows_[e].instance];
  const EndReason reason = lost_reason(instance, c.tick);
  if (from_client && (p.layer == Layer::kUdp || syn || rebinds(instance, reason))) {
    end_binding(e, reason, c.table);
    return false;
  }
  const bool two_way = (flows_[e].flags & kTwoKeys) != 0;
  end_with_resets(c.table, e, c.tick);
  c.burst.outcomes[i] = Outcome::drop(DropReason::kInstanceGone);
  if (two_way || p.layer != Layer::kTcp || (p.tcp_flags & kRst) != 0) return true;
  reset(c, i, Refusal::kInstanceGone);  // one-way: nothing is known of the instance's numbers
  return true;
}

// Why a session of this instance may not go on. An index that another instance has now was lost to its health.
EndReason FastPath::lost_reason(const Instance& instance, Tick now) {
  if (instance.admin == Admin::kDisabled) return EndReason::kDisabled;
  const bool drained = instance.admin == Admin::kDraining && tick_after(now, instance.drain_deadline);
  return drained ? EndReason::kDrained : EndReason::kUnhealthy;
}

bool FastPath::rebinds(const Instance& instance, EndReason reason) {
  return reason == EndReason::kUnhealthy && instance.on_unhealthy == OnUnhealthy::kRebind;
}

void FastPath::end_with_resets(const SiteTable& table, EntryIndex e, Tick now) {
  const FlowEntry entry = flows_[e];
  const EndReason reason = lost_reason(table.instances[entry.instance], now);
  end_binding(e, reason, table);
  if (rebinds(table.instances[entry.instance], reason)) return;
  if (!is_tcp(entry.state) || (entry.flags & kTwoKeys) == 0 || entry.state == FlowState::kTimeWait) return;
  // Each end gets the number behind the highest byte that it was sent. If it has received less it acknowledges what it
  // has, for the number lies in its window, and is reset as unknown_flow says; a lower number it would ignore
  // (RFC 5961 §3.2). While a connection opens each also expects its own SYN to be acknowledged.
  const bool opening = entry.state == FlowState::kSynSent || entry.state == FlowState::kSynReceived;
  const Instance& instance = table.instances[entry.instance];
  const Endpoint& shown = table.frontends[entry.frontend].endpoint;
  const Neighbour& next_hop = neighbours_.at(Neighbours::pinned(instance.next_hop));
  if (next_hop.usable()) {
    const ResetFields to_instance{entry.client, instance.address, entry.client_port, instance.port, entry.client_next};
    Frame* frame = own_frame(Outcome::transmit(next_hop.port));
    if (frame != nullptr) make_reset(*frame, to_instance, next_hop.mac, table.ports[next_hop.port]);
  }
  Outcome ignored;
  const uint64_t client_hash = hash_client(config_.secret, entry.client, entry.client_port, entry.protocol);
  const uint32_t n = neighbour_of_client(table, entry.client, client_hash, now, ignored);
  if (n == kNoIndex || !neighbours_.at(n).usable()) return;
  const Neighbour& back = neighbours_.at(n);
  const ResetFields to_client{shown.address,
                              entry.client,
                              to_wire16(shown.port),
                              entry.client_port,
                              entry.state == FlowState::kSynSent ? 0 : entry.instance_next,
                              opening ? entry.client_next : 0};
  Frame* frame = own_frame(Outcome::transmit(back.port));
  if (frame != nullptr) make_reset(*frame, to_client, back.mac, table.ports[back.port]);
}

// Each wheel has its own share, so that a flood of one kind of timer does not hold up the others.
bool FastPath::expire(const SiteTable& table, Tick now, uint32_t limit) {
  bool more = false;
  for (TimerWheel* wheel : {&transient_, &closed_, &steady_}) {
    uint32_t done = 0;
    for (; done < limit; ++done) {
      const EntryIndex e = wheel->pop_due(now);
      if (e == kNoIndex) break;
      look_at(e, table, now);
    }
    more = more || done == limit;
  }
  return more;
}

// An entry whose slot of the wheel came up: ended, or put back for later.
void FastPath::look_at(EntryIndex e, const SiteTable& table, Tick now) {
  FlowEntry& entry = flows_[e];
  const Tick due = entry.last_seen + timeout(entry, table.scis[table.instances[entry.instance].sci]);
  wheel_of(entry.state).insert(e, due);
  if (tick_after(due, now)) return;
  counters_.timers_fired.add();
  if (tick_after(now, due + kLate)) counters_.timers_late.add();
  end_binding(e, end_of(entry), table);
}

TimerWheel& FastPath::wheel_of(FlowState state) {
  if (state == FlowState::kTimeWait) return closed_;
  return is_transient(state) ? transient_ : steady_;
}

// A free entry; when there is none, a tuple that holds no slot gives way, else a transient binding, the one first that
// would end first.
EntryIndex FastPath::allocate(const SiteTable& table) {
  const EntryIndex e = flows_.allocate();
  if (e != kNoIndex) return e;
  EntryIndex victim = closed_.first();
  if (victim == kNoIndex) victim = transient_.first();
  if (victim == kNoIndex) return kNoIndex;
  counters_.evicted.add();
  end_binding(victim, EndReason::kEvicted, table);
  return flows_.allocate();
}

// Counts slot bits entry by entry. A change below the cursor is taken into the count at once, so that at the end of
// a pass the count must equal the worker's own active counter, whatever happened meanwhile; an instance that was
// compared waits for the next pass. The same walk ends
// sessions of instances that may not go on and of which no packet comes.
void FastPath::audit(const SiteTable& table, Tick now) {
  // Two resets for a session that ends here; without room for them the walk goes on with the next tick.
  for (uint32_t n = 0; n < kAuditedPerTick && audit_cursor_ < flows_.capacity() && outbox_.room() >= 2; ++n) {
    const EntryIndex e = audit_cursor_++;
    const FlowEntry& entry = flows_[e];
    if (entry.state == FlowState::kFree) continue;
    if ((entry.flags & kHoldsSlot) != 0) ++audited_[entry.instance];
    if (!table.instances[entry.instance].keeps_sessions(now)) end_with_resets(table, e, now);
  }
  if (audit_cursor_ < flows_.capacity()) return;
  for (uint32_t n = 0; n < kAuditedPerTick && audit_compared_ < table.instances.size(); ++n) {
    const InstanceIndex i = audit_compared_++;
    if (audited_[i] != shared_.counters(config_.self, i).active.get()) counters_.audit_differences.add();
    audited_[i] = 0;
  }
  if (audit_compared_ < table.instances.size()) return;
  audit_cursor_ = audit_compared_ = 0;
  counters_.audit_passes.add();
}

bool FastPath::end_lost(const SiteTable& table, Nanoseconds now) {
  const Tick tick = to_tick(now);
  for (EntryIndex e = 0; e < flows_.capacity(); ++e) {
    if (flows_[e].state == FlowState::kFree || table.instances[flows_[e].instance].keeps_sessions(tick)) continue;
    if (outbox_.room() < 2) return true;
    end_with_resets(table, e, tick);
  }
  return false;
}

void FastPath::audit_adjust(EntryIndex e, InstanceIndex i, int change) {
  if (e < audit_cursor_ && i >= audit_compared_) audited_[i] += static_cast<uint32_t>(change);
}

}  // namespace margay::dp
