// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packets as they go to an instance in tunnel modes, written down from the RFCs: outer header with a TTL of its own,
// DSCP and ECN of the inner one (RFC 6040 §4.1), IPv4 with DF and identification 0 (RFC 6864 §4.1).

#include <string>

#include "dataplane/core/flow_table.h"
#include "tests/packet/flows.h"

namespace margay::test {

inline SiteConfig ipip_site() {
  return with(dsr_site(), [](SiteConfig& c) {
    for (dp::SciConfig& s : c.scis) s.mode = dp::Mode::kIpip;
  });
}
inline SiteConfig gue_site(uint8_t variant = 0, UdpChecksum checksum = UdpChecksum::kComputed) {
  return with(dsr_site(), [=](SiteConfig& c) {
    for (dp::SciConfig& s : c.scis) {
      s.mode = dp::Mode::kGue;
      s.gue.variant = variant;
      s.gue.checksum = checksum;
    }
  });
}
// Each SCI's instance in the other family.
inline SiteConfig crossed(SiteConfig site) {
  return with(std::move(site), [](SiteConfig& c) {
    for (dp::SciConfig& s : c.scis) {
      IpAddress& address = s.instances[0].address;
      address = address.is_v4() ? ip("2001:db8:1::11") : ip("10.1.0.11");
    }
  });
}

// What the fixture's worker computes of a flow: the only input here that is no RFC's. The SCIs stand in the order of
// nat_site(), and frontends have their numbers.
inline uint64_t flow_hash(std::string_view client, Protocol protocol, uint32_t frontend) {
  dp::HashSecret secret;
  for (size_t i = 0; i < secret.words.size(); ++i) secret.words[i] = 0x9e3779b97f4a7c15u * (i + 1);
  const AddressPort from = *AddressPort::parse(client);
  const uint64_t hash = dp::hash_client(secret, from.address, to_wire16(from.port), protocol);
  return dp::hash_key(secret, hash, dp::Direction::kFromClient, frontend);
}
inline const uint64_t kOpenHash = flow_hash("198.51.100.7:40000", Protocol::kTcp, 0);
inline const uint64_t kOpen6Hash = flow_hash("[2001:db8:99::7]:40000", Protocol::kTcp, 1);
inline const uint64_t kQueryHash = flow_hash("198.51.100.7:40000", Protocol::kUdp, 2);
inline const uint64_t kQuery6Hash = flow_hash("[2001:db8:99::7]:40000", Protocol::kUdp, 3);

inline constexpr std::string_view kFrom4 = "10.1.0.2", kTo4 = "10.1.0.11";
inline constexpr std::string_view kFrom6 = "2001:db8:1::2", kTo6 = "2001:db8:1::11";

inline uint8_t tos_of(const Bytes& packet) {
  return packet[0] >> 4 == 4 ? packet[1] : static_cast<uint8_t>(packet[0] << 4 | packet[1] >> 4);
}
inline uint8_t protocol_of(const Bytes& packet) { return packet[0] >> 4 == 4 ? 4 : 41; }

// Fields that both forms of outer packet have in common.
inline PacketBuilder outer_fields(const PacketBuilder& p, bool v4, uint8_t tos, uint64_t hash) {
  const PacketBuilder outer = p.ether(kPort1, kInstance1).ttl(64).tos(tos);
  if (v4) return outer.dont_fragment();
  const auto label = static_cast<uint32_t>(hash >> 14 & 0xfffff);  // RFC 6438 §3: by the flow
  return outer.l3_at(1, {static_cast<uint8_t>(uint32_t{tos} << 4 | label >> 16), static_cast<uint8_t>(label >> 8),
                         static_cast<uint8_t>(label)});
}

// RFC 2003, RFC 2473, RFC 4213. `inner` is what came in; its TTL counts this hop (RFC 2003 §3.1).
inline PacketBuilder in_ip(const PacketBuilder& inner, bool v4, uint64_t hash) {
  const Bytes packet = inner.ip_packet();
  const PacketBuilder outer = PacketBuilder::start(PacketBuilder::Kind::kRaw, v4 ? kFrom4 : kFrom6, v4 ? kTo4 : kTo6)
                                  .protocol(protocol_of(packet))
                                  .payload(packet);
  return outer_fields(outer, v4, tos_of(packet), hash);
}

// draft-ietf-intarea-gue §3: variant 0 with a header that tells the protocol, variant 1 without one.
inline PacketBuilder in_gue(const PacketBuilder& inner, bool v4, uint64_t hash, uint8_t variant = 0) {
  const Bytes packet = inner.ip_packet();
  Bytes payload;
  if (variant == 0) payload = {0, protocol_of(packet), 0, 0};
  payload.insert(payload.end(), packet.begin(), packet.end());
  const std::string port = ":" + std::to_string(0xc000 | (hash & 0x3fff));  // RFC 6335 §6: dynamic, by the flow
  const auto at = [&](std::string_view address, const std::string& behind) {
    return v4 ? std::string(address) + behind : "[" + std::string(address) + "]" + behind;
  };
  const PacketBuilder outer = udp(at(v4 ? kFrom4 : kFrom6, port), at(v4 ? kTo4 : kTo6, ":6080")).payload(payload);
  return outer_fields(outer, v4, tos_of(packet), hash);
}

}  // namespace margay::test
