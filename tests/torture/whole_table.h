// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the publication torture knows of a table: its digest, which it compares with that of the snapshot of the same
// generation, and whether everything in it is found where it should be. Weights are left out of the digest, for the
// operator sets them: they follow from the generation that an SCI changed in last (its affinity timeout holds it), or
// from the instance that the operator set them for.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/shared_table/snapshot.h"
#include "dataplane/core/site_table.h"

namespace margay::test {

inline constexpr uint16_t kOperatorWeights = 50'000;  // from here on: set by the operator

// What a snapshot of this generation gives this instance.
inline uint16_t weight_of(uint64_t stamp, uint32_t index) {
  return static_cast<uint16_t>((stamp * 31 + index) % 10'000);
}
inline uint16_t operator_weight(uint32_t index, uint16_t generation) {
  return static_cast<uint16_t>(kOperatorWeights + (index * 97 + generation * 13u) % 10'000);
}

// Of everything that neither is the operator's to set nor follows from the rest.
class Digest {
 public:
  void add(uint64_t v) { value_ = (value_ ^ v) * 0x9e3779b97f4a7c15 ^ value_ >> 29; }
  void add_sci(uint32_t index, const SciPolicy& policy, size_t instances) {
    for (const uint64_t v : {uint64_t{index}, uint64_t{policy.affinity_timeout}, uint64_t{instances}}) add(v);
    for (const Endpoint& e : policy.endpoints) add(e.port), add(e.address.low());
    add(std::hash<std::string>{}(policy.csci_id));
  }
  void add_instance(uint32_t index, uint16_t generation, HealthState health, uint32_t max_sessions,
                    const IpAddress& address, const std::string& id) {
    for (const uint64_t v : {uint64_t{index}, uint64_t{generation}, static_cast<uint64_t>(health),
                             uint64_t{max_sessions}, address.low(), uint64_t{std::hash<std::string>{}(id)}}) {
      add(v);
    }
  }
  uint64_t value() const { return value_ | 1; }  // 0: never to be seen

 private:
  uint64_t value_ = 0;
};

inline uint64_t digest_of(const std::map<uint32_t, shared_table::SciRecord>& site) {
  Digest d;
  for (const auto& [index, sci] : site) {
    d.add_sci(index, sci.policy, sci.instances.size());
    for (const shared_table::InstanceRecord& i : sci.instances) {
      d.add_instance(i.index, i.generation, i.health, i.config.max_sessions, i.config.address, i.config.id);
    }
  }
  return d.value();
}

inline uint64_t digest_of(const dp::SiteTable& table) {
  Digest d;
  for (uint32_t s = 0; s < table.scis.size(); ++s) {
    const dp::Sci& sci = table.scis[s];
    if (sci.gone()) continue;
    d.add_sci(s, sci, sci.instances.size());
    for (const dp::InstanceIndex i : sci.instances) {
      const dp::Instance& x = table.instances[i];
      d.add_instance(i, x.generation, x.health, x.max_sessions, x.address, x.si_id);
    }
  }
  return d.value();
}

// What is wrong with an instance, and with how it is found; null: nothing.
inline const char* wrong_with(const dp::SiteTable& table, uint32_t s, dp::InstanceIndex i) {
  const dp::Sci& sci = table.scis[s];
  const dp::Instance& x = table.instances[i];
  const auto stamp = static_cast<uint64_t>(sci.affinity_timeout);
  if (x.gone || x.sci != s) return "an instance of another SCI, or one that is gone";
  if (x.weight != weight_of(stamp, i) && x.weight != operator_weight(i, x.generation)) return "a weight";
  if (x.limit > x.max_sessions) return "a limit";
  const dp::EndpointIndex e = table.find_endpoint(x.address, x.port, Protocol::kTcp);
  if (e == dp::kNoIndex || e != x.endpoint || table.endpoint_of_instance[i] != e) return "an instance's endpoint";
  if (table.endpoints[e].address != x.address) return "an endpoint's address";
  if (table.next_hops[x.next_hop].address != x.address) return "a next hop";
  return nullptr;
}

inline const char* wrong_with(const dp::SiteTable& table) {
  for (uint32_t s = 0; s < table.scis.size(); ++s) {
    const dp::Sci& sci = table.scis[s];
    if (sci.gone()) continue;
    if (sci.frontends.size() != sci.endpoints.size()) return "the number of frontends";
    for (size_t n = 0; n < sci.endpoints.size(); ++n) {
      const Endpoint& e = sci.endpoints[n];
      const dp::FrontendIndex f = table.find_frontend(e.address, to_wire16(e.port), e.protocol);
      if (f == dp::kNoIndex || f != sci.frontends[n] || table.frontends[f].sci != s) return "a frontend";
      if (table.frontends[f].endpoint != e) return "a frontend's endpoint";
      if (table.local(e.address) != dp::LocalKind::kSci) return "an SCI's address";
    }
    for (const dp::InstanceIndex i : sci.instances) {
      if (const char* wrong = wrong_with(table, s, i)) return wrong;
    }
  }
  return nullptr;
}

}  // namespace margay::test
