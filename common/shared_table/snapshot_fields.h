// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fields of a snapshot, listed once: name, range and order. A walker goes over them with a record that it reads or
// fills: bytes for the shared table (snapshot.cc), JSON for recordings (common/json_fields.h).

#include "common/shared_table/snapshot.h"

namespace margay::shared_table {

inline constexpr Nanoseconds kTimerMax = 24 * 3600 * kSecond;
inline constexpr uint64_t kAny = ~uint64_t{0}, kAny32 = ~uint32_t{0};

template <class Walker, class Value>
void pass_endpoint(Walker& w, Value& e) {
  w.address("address", e.address);
  w.number("port", e.port, 1, 65535);
  w.protocol("protocol", e.protocol);
}

template <class Walker, class Value>
void pass_policy(Walker& w, Value& p) {
  w.text("csci_id", p.csci_id, kIdBytesMax);
  w.text("cs_id", p.cs_id, kIdBytesMax);
  w.list("endpoints", p.endpoints, kEndpointsMax, [](auto& walker, auto& e) { pass_endpoint(walker, e); });
  w.word("mode", p.mode, Mode::kGue);
  w.number("gue.port", p.gue.port, 1, 65535);
  w.number("gue.variant", p.gue.variant, 0, 1);
  w.word("gue.checksum", p.gue.checksum, UdpChecksum::kZero);
  w.number("mss_clamp", p.mss_clamp, 0, kMssByMtu);
  w.word("balance", p.balance, Balance::kConsistentHash);
  w.flag("selection.cheapest_first", p.cheapest_first);
  w.number("selection.security_level_min", p.security_level_min, 0, kSecurityLevelMax);
  w.duration("affinity.timeout", p.affinity_timeout);
  w.duration("timers.embryonic", p.timers.embryonic);
  w.duration("timers.closing", p.timers.closing);
  w.duration("timers.time_wait", p.timers.time_wait);
  w.duration("timers.reset_grace", p.timers.reset_grace);
  w.duration("timers.unreplied", p.timers.unreplied);
  w.word("when_none_healthy", p.when_none_healthy, WhenNoneHealthy::kReject);
  w.word("when_full", p.when_full, WhenFull::kReject);
  w.word("on_unhealthy", p.on_unhealthy, OnUnhealthy::kKeep);
  w.word("unknown_flow", p.unknown_flow, UnknownFlow::kAdopt);
  w.share("provisional.share", p.provisional_share);
  w.share("degradation_factor", p.degradation_factor);
  w.duration("drain_deadline", p.drain_deadline);
  w.duration("ramp", p.ramp);
}

template <class Walker, class Value>
void pass_instance(Walker& w, Value& i) {
  w.number("index", i.index, 0, kInstancesMax - 1);
  w.number("generation", i.generation, 1, 65535);
  w.word("health", i.health, HealthState::kUnknown);
  w.word("admin", i.admin, Admin::kDisabled);
  w.number("drain_deadline", i.drain_deadline, 0, kAny);
  w.number("health_since", i.health_since, 0, kAny);
  w.number("serves_since", i.serves_since, 0, kAny);
  w.number("limit", i.limit, 0, kSessionsMax);
  w.share("load", i.load);
  w.number("load_active", i.load_active, 0, kAny32);
  w.number("load_until", i.load_until, 0, kAny);
  w.duration("load_lifetime", i.load_lifetime);
  w.text("id", i.config.id, kIdBytesMax);
  w.address("address", i.config.address);
  w.number("port", i.config.port, 1, 65535);
  w.mac("mac", i.config.mac);
  w.number("max_sessions", i.config.max_sessions, 0, kSessionsMax);
  w.number("weight", i.config.weight, 0, 65535);
  w.number("preference", i.config.preference, 0, 255);
  w.number("price", i.config.price, 0, kAny32);
  w.number("security_level", i.config.security_level, 0, kSecurityLevelMax);
}

template <class Walker, class Value>
void pass_sci(Walker& w, Value& s) {
  w.number("index", s.index, 0, kScisMax - 1);
  pass_policy(w, s.policy);
  w.list("instances", s.instances, kInstancesMax, [](auto& walker, auto& i) { pass_instance(walker, i); });
}

template <class Walker, class Value>
void pass_snapshot(Walker& w, Value& s) {
  w.number("generation", s.generation, 1, kAny);
  w.number("base", s.base, 0, kAny);
  w.list("scis", s.scis, kScisMax, [](auto& walker, auto& sci) { pass_sci(walker, sci); });
  w.list("removed", s.removed, kScisMax,
         [](auto& walker, auto& index) { walker.number("index", index, 0, kScisMax - 1); });
}

}  // namespace margay::shared_table
