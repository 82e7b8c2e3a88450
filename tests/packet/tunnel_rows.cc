// SPDX-License-Identifier: Apache-2.0
// ipip and gue (SCI-5, SCI-18, SCI-73, SCI-84): the client's packet as it came, but for its TTL, behind an outer
// header.
#include "tests/packet/outer.h"

namespace margay::test {
namespace {

const PacketBuilder kOpenIn = kOpen.ttl(63), kOpen6In = kOpen6.ttl(63);
const PacketBuilder kQueryIn = kQuery.ttl(63), kQuery6In = kQuery6.ttl(63);

// The four kinds of first packet through one site.
Row all_four(const char* name, const SiteConfig& site,
             const std::function<PacketBuilder(PacketBuilder, bool, uint64_t)>& outer, bool cross = false) {
  return {name,
          site,
          {in(0, kOpen).out(1, outer(kOpenIn, !cross, kOpenHash)).leaves(1, 1),
           in(0, kOpen6).out(1, outer(kOpen6In, cross, kOpen6Hash)).leaves(2, 2),
           in(0, kQuery).out(1, outer(kQueryIn, !cross, kQueryHash)).leaves(3, 3),
           in(0, kQuery6).out(1, outer(kQuery6In, cross, kQuery6Hash)).leaves(4, 4)}};
}

PacketBuilder variant1(const PacketBuilder& inner, bool v4, uint64_t hash) { return in_gue(inner, v4, hash, 1); }
PacketBuilder without_checksum(const PacketBuilder& inner, bool v4, uint64_t hash) {
  return in_gue(inner, v4, hash).l4_checksum(0);
}
PacketBuilder variant0(const PacketBuilder& inner, bool v4, uint64_t hash) { return in_gue(inner, v4, hash); }

Row ipip(const char* name, const PacketBuilder& query, const PacketBuilder& inner) {
  return {name, ipip_site(), {in(0, query).out(1, in_ip(inner, true, kQueryHash))}};
}
Row gue(const char* name, const PacketBuilder& query) {
  return {name, gue_site(), {in(0, query).out(1, in_gue(query.ttl(63), true, kQueryHash))}};
}
Row gue6(const char* name, const PacketBuilder& query) {
  return {name, gue_site(), {in(0, query).out(1, in_gue(query.ttl(63), false, kQuery6Hash))}};
}

// A datagram without a checksum, so that the outer one sums its bytes up, and two of them that make it come out as 0.
PacketBuilder outer_sum_zero() {
  const PacketBuilder plain = kQuery.l4_checksum(0).payload({0, 0, 'q'});
  const uint16_t word = in_gue(plain.ttl(63), true, kQueryHash).computed_l4_checksum();
  return plain.payload({static_cast<uint8_t>(word >> 8), static_cast<uint8_t>(word), 'q'});
}

SiteConfig behind_a_router() {  // on port 1, which has a network more
  return with(ipip_site(), [](SiteConfig& c) {
    c.ports[0].gateways.clear();
    c.ports[0].neighbours.clear();
    c.ports[1].addresses = {*Prefix::parse("10.1.0.2/24"), *Prefix::parse("10.7.0.2/24"),
                            *Prefix::parse("2001:db8:1::2/64")};
    c.ports[1].gateways = {ip("10.7.0.1")};
    c.ports[1].neighbours = {{ip("10.7.0.1"), kInstance2}};
    c.scis.resize(1);
    c.scis[0].instances[0].address = ip("10.99.0.1");
    c.scis[0].instances[0].mac.reset();
  });
}

Rows outer_header_rows() {
  const PacketBuilder wrong = kQuery.l4_checksum(static_cast<uint16_t>(kQuery.computed_l4_checksum() + 1));
  const uint16_t sum_of_right = in_gue(kQueryIn, true, kQueryHash).computed_l4_checksum();
  const PacketBuilder longer = kQuery.udp_length(10);  // bytes behind the datagram
  const PacketBuilder zero = outer_sum_zero();
  return {
      ipip("ipip: DSCP and ECN are copied, ECT(1)", kQuery.tos(0xb9), kQueryIn.tos(0xb9)),
      ipip("ipip: DSCP and ECN are copied, CE", kQuery.tos(0x2b), kQueryIn.tos(0x2b)),
      {"ipip: traffic class is copied",
       ipip_site(),
       {in(0, kOpen6.tos(0xb9)).out(1, in_ip(kOpen6In.tos(0xb9), false, kOpen6Hash))}},
      {"ipip: traffic class to IPv4, TOS to IPv6",
       crossed(ipip_site()),
       {in(0, kOpen6.tos(0xfe)).out(1, in_ip(kOpen6In.tos(0xfe), true, kOpen6Hash)),
        in(0, kOpen.tos(0xfd)).out(1, in_ip(kOpenIn.tos(0xfd), false, kOpenHash))}},
      ipip("ipip: identification and DF stay the inner header's own", kQuery.id(0x1234).dont_fragment(),
           kQueryIn.id(0x1234).dont_fragment()),
      ipip("ipip: IPv4 options stay inside", kQuery.ip_options({7, 3, 4, 0}), kQueryIn.ip_options({7, 3, 4, 0})),
      ipip("ipip: UDP without a checksum", kQuery.l4_checksum(0), kQueryIn.l4_checksum(0)),
      ipip("ipip: Ethernet's padding stays here", kQuery.pad(64), kQueryIn),
      ipip("ipip: TTL 2 is the last that goes", kQuery.ttl(2), kQuery.ttl(1)),
      ipip("ipip: TTL 255", kQuery.ttl(255), kQuery.ttl(254)),
      ipip("ipip: an empty datagram", kQuery.payload(""), kQueryIn.payload("")),
      {"ipip: TTL 1 ends here", ipip_site(), {in(0, kQuery.ttl(1)).drop(DropReason::kTtlExceeded).leaves(0, 0)}},
      gue("gue: odd payload", kQuery.payload_size(1001)),
      gue("gue: even payload", kQuery.payload_size(1000)),
      gue("gue: no checksum inside", kQuery.l4_checksum(0)),
      gue("gue: no checksum inside, odd payload", kQuery.l4_checksum(0).payload_size(33)),
      gue("gue: checksum inside 0xffff", kQuery.payload_for_checksum(0)),
      gue("gue: bytes behind the datagram", longer),
      gue("gue: IPv4 options inside", kQuery.ip_options({7, 7, 4, 1, 2, 3, 4})),
      gue("gue: DSCP and ECN", kQuery.tos(0xbb)),
      gue("gue: checksum outside would be 0", zero),
      gue6("gue: IPv6, odd payload", kQuery6.payload_size(1001)),
      gue6("gue: IPv6, checksum inside 0xffff", kQuery6.payload_for_checksum(0)),
      gue6("gue: IPv6, bytes behind the datagram", kQuery6.udp_length(9)),
      {"gue: a wrong checksum inside makes a wrong one outside",  // as in nat: RFC 1624's update carries the error on
       gue_site(),
       {in(0, wrong).out(1, in_gue(wrong.ttl(63), true, kQueryHash).l4_checksum(sum_of_right))}},
      {"gue: another port",
       with(gue_site(), [](SiteConfig& c) { c.scis[2].gue.port = 5555; }),
       {in(0, kQuery).out(1, in_gue(kQueryIn, true, kQueryHash).to("10.1.0.11:5555"))}},
  };
}

Rows outer_link_rows() {
  const SiteConfig tagged = with(ipip_site(), [](SiteConfig& c) { c.ports[1].vlan = 200; });
  const SiteConfig from_tagged = with(gue_site(), [](SiteConfig& c) { c.ports[0].vlan = 100; });
  const SiteConfig both = with(gue_site(), [](SiteConfig& c) { c.ports[0].vlan = 100, c.ports[1].vlan = 200; });
  const PacketBuilder outer = in_ip(kOpenIn, true, kOpenHash);
  const PacketBuilder outer_gue = in_gue(kOpenIn, true, kOpenHash);
  const SiteConfig unknown = with(ipip_site(), [](SiteConfig& c) { c.scis[0].instances[0].mac.reset(); });
  return {
      {"ipip: tag is put on",
       tagged,
       {in(0, kOpen).headroom(24).out(1, outer.vlan(200)), in(0, kOpen).headroom(23).drop(DropReason::kNoHeadroom)}},
      {"ipip: no room for the outer header",
       ipip_site(),
       {in(0, kOpen).headroom(20).out(1, outer), in(0, kOpen).headroom(19).drop(DropReason::kNoHeadroom),
        in(0, kOpen6).headroom(40).out(1, in_ip(kOpen6In, false, kOpen6Hash)),
        in(0, kOpen6).headroom(39).drop(DropReason::kNoHeadroom)}},
      {"gue: no room for the outer header",
       gue_site(),
       {in(0, kOpen).headroom(32).out(1, outer_gue), in(0, kOpen).headroom(31).drop(DropReason::kNoHeadroom)}},
      {"gue: tag is taken off", from_tagged, {in(0, kOpen.vlan(100)).out(1, outer_gue)}},
      {"gue: tag is changed", both, {in(0, kOpen.vlan(100)).out(1, outer_gue.vlan(200))}},
      {"ipip: next hop is asked for",
       unknown,
       {in(0, kOpen).held().own(1, arp_request(kPort1, "10.1.0.2", "10.1.0.11")),
        in(1, arp_reply(kInstance2, "10.1.0.11", kPort1, "10.1.0.2"))
            .consumed()
            .released(1, outer.ether(kPort1, kInstance2))}},
      {"ipip: behind a router, from the address on its network",
       behind_a_router(),
       {in(0, kOpen).out(1, outer.from("10.7.0.2").to("10.99.0.1").ether(kPort1, kInstance2))}},
  };
}

// One-way, as l2-dsr.
Rows one_way_rows() {
  const PacketBuilder data = kOpen.flags(kAck).seq(1001).ack(5001), fin = kOpen.flags(kFin | kAck).seq(1001).ack(5001);
  const auto sent = [](const PacketBuilder& p) { return in_ip(p.ttl(63), true, kOpenHash); };
  const PacketBuilder answer = from_instance(udp("10.1.0.11:53", "198.51.100.7:40000").payload("the answer"));
  return {
      {"ipip: a client's connection",
       ipip_site(),
       {in(0, kOpen).out(1, sent(kOpen)).leaves(1, 1), in(0, data).out(1, sent(data)),
        in(0, fin).out(1, sent(fin)).leaves(1, 1), wait(9 * dp::kSecond).leaves(1, 1),
        wait(2 * dp::kSecond).leaves(0, 0)}},
      {"ipip: two packets of a new flow in one burst",
       ipip_site(),
       {in(0, kOpen).out(1, sent(kOpen)).also(0, data).out(1, sent(data)).leaves(1, 1)}},
      {"ipip: an instance's own traffic is not ours",
       ipip_site(),
       {in(0, kQuery).out(1, in_ip(kQueryIn, true, kQueryHash)), in(1, answer).drop(DropReason::kNotForUs)}},
      {"ipip: a lost instance's session is reset at the client alone",
       ipip_site(),
       {in(0, kOpen).out(1, sent(kOpen)), in(0, data).out(1, sent(data)),
        change([](dp::SiteTable& t) { t.instances.edit(0).admin = Admin::kDisabled; }).leaves(0, 0)}},
  };
}

}  // namespace

Rows tunnel_rows() {
  Rows rows = {
      all_four("ipip", ipip_site(), in_ip),
      all_four("ipip: into the other family", crossed(ipip_site()), in_ip, true),
      all_four("gue", gue_site(), variant0),
      all_four("gue: into the other family", crossed(gue_site()), variant0, true),
      all_four("gue: variant 1", gue_site(1), variant1),
      all_four("gue: variant 1 into the other family", crossed(gue_site(1)), variant1, true),
      all_four("gue: no checksum outside", gue_site(0, UdpChecksum::kZero), without_checksum),
  };
  for (const Rows& more : {outer_header_rows(), outer_link_rows(), one_way_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace margay::test
