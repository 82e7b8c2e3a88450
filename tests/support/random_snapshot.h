// SPDX-License-Identifier: Apache-2.0
#pragma once

// Snapshots with anything in them that the codec lets through.

#include <string>

#include "common/shared_table/snapshot.h"
#include "tests/support/seed.h"

namespace margay::test {

inline std::string random_text(Random& random) {
  std::string text;
  const uint32_t size = 1 + random.below(kIdBytesMax);
  for (uint32_t i = 0; i < size; ++i) text += static_cast<char>('!' + random.below(90));
  return text;
}

inline IpAddress random_address(Random& random) {
  IpAddress address;
  for (uint8_t& byte : address.bytes) byte = static_cast<uint8_t>(random.below(256));
  return random.one_in(2) ? address : IpAddress::v4(static_cast<uint32_t>(random.next()));
}

inline shared_table::InstanceRecord random_instance(Random& random, uint32_t index) {
  shared_table::InstanceRecord i;
  i.index = index;
  i.generation = static_cast<uint16_t>(1 + random.below(65535));
  i.health = static_cast<HealthState>(random.below(kHealthStates));
  i.admin = static_cast<Admin>(random.below(3));
  i.drain_deadline = random.next();
  i.health_since = random.next();
  i.serves_since = random.next();
  i.config.id = std::to_string(index) + random_text(random).substr(0, 200);
  i.config.address = random_address(random);
  i.config.port = static_cast<uint16_t>(1 + random.below(65535));
  if (random.one_in(2)) i.config.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<uint8_t>(random.below(256))}};
  i.config.max_sessions = random.below(kSessionsMax + 1);
  i.limit = random.below(uint64_t{i.config.max_sessions} + 1);
  i.load = random.below(1001) / 1000.0;
  i.load_active = static_cast<uint32_t>(random.next());
  i.load_until = random.next();
  i.load_lifetime = random.below(uint64_t{24} * 3600 * kSecond + 1);
  i.config.preference = static_cast<uint8_t>(random.below(256));
  i.config.price = static_cast<uint32_t>(random.next());
  i.config.security_level = static_cast<uint8_t>(random.below(kSecurityLevelMax + 1));
  i.config.weight = static_cast<uint16_t>(random.below(65536));
  return i;
}

inline shared_table::Snapshot random_snapshot(Random& random) {
  shared_table::Snapshot s;
  s.generation = 2 + random.below(1000);
  s.base = random.one_in(2) ? 0 : 1 + random.below(s.generation - 1);
  uint32_t instance = random.below(100);
  const uint32_t scis = random.below(5);
  for (uint32_t k = 0; k < scis; ++k) {
    shared_table::SciRecord& sci = s.scis.emplace_back();
    sci.index = k * 3;
    sci.policy.csci_id = std::to_string(k) + random_text(random).substr(0, 250);
    sci.policy.cs_id = random_text(random);
    for (uint32_t e = 0; e <= random.below(3); ++e) {
      sci.policy.endpoints.push_back({random_address(random), static_cast<uint16_t>(1 + random.below(65535)),
                                      random.one_in(2) ? Protocol::kTcp : Protocol::kUdp});
    }
    sci.policy.mode = static_cast<Mode>(random.below(4));
    sci.policy.gue = {static_cast<uint16_t>(1 + random.below(65535)), static_cast<uint8_t>(random.below(2)),
                      static_cast<UdpChecksum>(random.below(2))};
    sci.policy.mss_clamp = static_cast<uint16_t>(random.below(65536));
    sci.policy.balance = static_cast<Balance>(random.below(6));
    sci.policy.cheapest_first = random.one_in(2);
    sci.policy.security_level_min = static_cast<uint8_t>(random.below(kSecurityLevelMax + 1));
    sci.policy.affinity_timeout = random.below(1000) * kSecond;
    SciPolicy& p = sci.policy;
    for (Nanoseconds* t : {&p.timers.embryonic, &p.timers.closing, &p.timers.time_wait, &p.timers.reset_grace,
                           &p.timers.unreplied, &p.drain_deadline}) {
      *t = random.below(uint64_t{24} * 3600 * kSecond + 1);
    }
    sci.policy.when_none_healthy = static_cast<WhenNoneHealthy>(random.below(2));
    sci.policy.degradation_factor = random.below(1001) / 1000.0;
    sci.policy.on_unhealthy = static_cast<OnUnhealthy>(random.below(3));
    sci.policy.ramp = random.below(1000) * kSecond;
    sci.policy.unknown_flow = static_cast<UnknownFlow>(random.below(3));
    sci.policy.provisional_share = random.below(101) / 100.0;
    const uint32_t instances = random.below(6);
    for (uint32_t i = 0; i < instances; ++i) sci.instances.push_back(random_instance(random, instance++));
  }
  if (s.base != 0 && random.one_in(2)) s.removed = {100, 200};
  return s;
}

}  // namespace margay::test
