// SPDX-License-Identifier: Apache-2.0
// Packets that do not get through to the instance: told to the client (RFC 1191 §4, RFC 4443 §3.2), who sees nothing
// but its own packet and the SCI's address (SCI-127). And MSS in SYNs, which keeps TCP from making such (RFC 9293
// §3.7.1).
#include "tests/packet/outer.h"

namespace margay::test {
namespace {

// As much of the packet as RFC 1812 §4.3.2.3 and RFC 4443 §2.4 c allow.
PacketBuilder needs_fragments(const PacketBuilder& packet, uint16_t mtu) {
  Bytes quoted = packet.ip_packet();
  quoted.resize(std::min<size_t>(quoted.size(), 576 - 20 - 8));
  return icmp("192.0.2.10", "198.51.100.7", 3, 4).icmp_rest(mtu).payload(quoted).dont_fragment().ether(kPort0, kRouter);
}
PacketBuilder packet_too_big(const PacketBuilder& packet, uint16_t mtu) {
  Bytes quoted = packet.ip_packet();
  quoted.resize(std::min<size_t>(quoted.size(), 1280 - 40 - 8));
  return icmp("2001:db8::10", "2001:db8:99::7", 2, 0).icmp_rest(mtu).payload(quoted).ether(kPort0, kRouter);
}

SiteConfig with_mtu(const SiteConfig& site, uint16_t mtu) {
  return with(site, [=](SiteConfig& c) { c.ports[1].mtu = mtu; });
}
PacketBuilder query_of(size_t ip_bytes) { return kQuery.payload_size(ip_bytes - 28).dont_fragment(); }
PacketBuilder query6_of(size_t ip_bytes) { return kQuery6.payload_size(ip_bytes - 48); }

// The longest that goes through a site link of 1500 bytes, and one byte more.
Row longest(const char* name, const SiteConfig& site, uint16_t mtu, const PacketBuilder& fits) {
  return {name,
          site,
          {in(0, query_of(mtu)).out(1, fits).leaves(1, 1),
           in(0, query_of(mtu + 1)).out(0, needs_fragments(query_of(mtu + 1), mtu)).refused(Refusal::kTooBig)}};
}
Row longest6(const char* name, const SiteConfig& site, uint16_t mtu, const PacketBuilder& fits) {
  return {name,
          site,
          {in(0, query6_of(mtu)).out(1, fits).leaves(1, 1),
           in(0, query6_of(mtu + 1)).out(0, packet_too_big(query6_of(mtu + 1), mtu)).refused(Refusal::kTooBig)}};
}

SiteConfig two_families() {  // the IPv6 instance stands first in turn, and takes less
  return with(ipip_site(), [](SiteConfig& c) {
    dp::SciConfig& s = c.scis[2];
    s.balance = dp::Balance::kRoundRobin;
    dp::InstanceConfig other = s.instances[0];
    other.id = "si-2";
    s.instances[0].address = ip("2001:db8:1::11");
    s.instances.push_back(other);
  });
}

Rows mtu_rows() {
  const PacketBuilder big = query_of(1501), loose = kQuery.payload_size(1501 - 28);
  return {
      longest("too big: nat", nat_site(), 1500, query_of(1500).to("10.1.0.11:5353").ether(kPort1, kInstance1).ttl(63)),
      longest6("too big: nat over IPv6", nat_site(), 1500,
               query6_of(1500).to("[2001:db8:1::11]:5353").ether(kPort1, kInstance1).ttl(63)),
      longest("too big: l2-dsr", with_mtu(dsr_site(), 1400), 1400, query_of(1400).ether(kPort1, kInstance1).ttl(63)),
      longest("too big: 4in4", ipip_site(), 1480, in_ip(query_of(1480).ttl(63), true, kQueryHash)),
      longest("too big: 4in6", crossed(ipip_site()), 1460, in_ip(query_of(1460).ttl(63), false, kQueryHash)),
      longest6("too big: 6in6", ipip_site(), 1460, in_ip(query6_of(1460).ttl(63), false, kQuery6Hash)),
      longest6("too big: 6in4", crossed(ipip_site()), 1480, in_ip(query6_of(1480).ttl(63), true, kQuery6Hash)),
      longest("too big: gue", gue_site(), 1468, in_gue(query_of(1468).ttl(63), true, kQueryHash)),
      longest("too big: gue, variant 1", gue_site(1), 1472, in_gue(query_of(1472).ttl(63), true, kQueryHash, 1)),
      longest6("too big: gue over IPv6", gue_site(), 1448, in_gue(query6_of(1448).ttl(63), false, kQuery6Hash)),
      longest6("too big: the smallest MTU of IPv6", with_mtu(ipip_site(), 1320), 1280,
               in_ip(query6_of(1280).ttl(63), false, kQuery6Hash)),
      {"too big: a flow's first packet takes no slot",
       ipip_site(),
       {in(0, big).out(0, needs_fragments(big, 1480)).refused(Refusal::kTooBig).leaves(0, 0)}},
      {"too big: without DF too",  // outer fragments are not made, and the sender can make them
       ipip_site(),
       {in(0, loose).out(0, needs_fragments(loose, 1480)).refused(Refusal::kTooBig)}},
      {"too big: padding does not count",
       ipip_site(),
       {in(0, query_of(1480).pad(1600)).out(1, in_ip(query_of(1480).ttl(63), true, kQueryHash))}},
      {"too big: no room for the answer",
       ipip_site(),
       {in(0, big).headroom(27).drop(DropReason::kNoHeadroom),
        in(0, big).headroom(28).out(0, needs_fragments(big, 1480)).refused(Refusal::kTooBig)}},
      {"too big: TCP in mid-flow",
       ipip_site(),
       {in(0, kOpen).out(1, in_ip(kOpen.ttl(63), true, kOpenHash)),
        in(0, kOpen.flags(kAck).seq(1001).ack(1).payload_size(1441).dont_fragment())
            .out(0, needs_fragments(kOpen.flags(kAck).seq(1001).ack(1).payload_size(1441).dont_fragment(), 1480))
            .refused(Refusal::kTooBig)
            .leaves(1, 1)}},
      {"too big: for one instance and not for the other",
       two_families(),
       {in(0, query_of(1470)).out(1, in_ip(query_of(1470).ttl(63), true, kQueryHash)).leaves(1, 1)}},
      {"too big: the largest that one of them takes is told, whoever is asked last",
       with(two_families(), [](SiteConfig& c) { std::swap(c.scis[2].instances[0], c.scis[2].instances[1]); }),
       {in(0, big).out(0, needs_fragments(big, 1480)).refused(Refusal::kTooBig).leaves(0, 0)}},
      {"too big: the largest that one of them takes is told",
       two_families(),
       {in(0, big).out(0, needs_fragments(big, 1480)).refused(Refusal::kTooBig).leaves(0, 0)}},
  };
}

Bytes mss(uint16_t bytes) { return {2, 4, static_cast<uint8_t>(bytes >> 8), static_cast<uint8_t>(bytes)}; }
Bytes behind(Bytes front, const Bytes& option) {
  front.insert(front.end(), option.begin(), option.end());
  return front;
}
SiteConfig clamped(const SiteConfig& site, uint16_t to) {
  return with(site, [=](SiteConfig& c) {
    for (dp::SciConfig& s : c.scis) s.mss_clamp = to;
  });
}
Row syn(const char* name, const SiteConfig& site, const Bytes& options, const Bytes& expected) {
  return {name,
          site,
          {in(0, kOpen.tcp_options(options)).out(1, in_ip(kOpen.tcp_options(expected).ttl(63), true, kOpenHash))}};
}

Rows mss_rows() {
  const SiteConfig by_mtu = clamped(ipip_site(), kMssByMtu), at_1000 = clamped(ipip_site(), 1000);
  const PacketBuilder syn_ack =
      from_instance(tcp("10.1.0.11:8080", "198.51.100.7:40000").flags(kSyn | kAck).seq(5000).ack(1001));
  const PacketBuilder syn_ack_out = syn_ack.from("192.0.2.10:80").ether(kPort0, kRouter).ttl(63);
  const PacketBuilder data = kOpen.flags(kAck).seq(1001).ack(1).tcp_options(mss(1460));
  return {
      syn("MSS: off", ipip_site(), mss(1460), mss(1460)),
      syn("MSS: by the MTU, 1500 - 20 - 40", by_mtu, mss(1460), mss(1440)),
      syn("MSS: equal stays", by_mtu, mss(1440), mss(1440)),
      syn("MSS: lower stays", by_mtu, mss(536), mss(536)),
      syn("MSS: 65535", by_mtu, mss(65535), mss(1440)),
      syn("MSS: a number", at_1000, mss(1460), mss(1000)),
      syn("MSS: at an odd place", at_1000, behind({1}, mss(1460)), behind({1}, mss(1000))),
      syn("MSS: behind other options", at_1000, behind({4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}, mss(1460)),
          behind({4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}, mss(1000))),
      syn("MSS: behind the end of options", at_1000, behind({0}, mss(1460)), behind({0}, mss(1460))),
      syn("MSS: none", at_1000, {1, 1, 4, 2}, {1, 1, 4, 2}),
      syn("MSS: no options", at_1000, {}, {}),
      syn("MSS: of a wrong length", at_1000, {2, 3, 5, 0xb4}, {2, 3, 5, 0xb4}),
      syn("MSS: cut off by the header's end", at_1000, {1, 1, 2, 4}, {1, 1, 2, 4}),
      syn("MSS: an option of length 0 before it", at_1000, behind({8, 0}, mss(1460)), behind({8, 0}, mss(1460))),
      syn("MSS: an option longer than the header", at_1000, behind({8, 40}, mss(1460)), behind({8, 40}, mss(1460))),
      {"MSS: over IPv6, 1500 - 40 - 60",
       by_mtu,
       {in(0, kOpen6.tcp_options(mss(1440))).out(1, in_ip(kOpen6.tcp_options(mss(1400)).ttl(63), false, kOpen6Hash))}},
      {"MSS: gue, 1500 - 32 - 40",
       clamped(gue_site(), kMssByMtu),
       {in(0, kOpen.tcp_options(mss(1460))).out(1, in_gue(kOpen.tcp_options(mss(1428)).ttl(63), true, kOpenHash))}},
      {"MSS: a repeated SYN, and no other segment",
       at_1000,
       {in(0, kOpen.tcp_options(mss(1460))).out(1, in_ip(kOpen.tcp_options(mss(1000)).ttl(63), true, kOpenHash)),
        in(0, kOpen.tcp_options(mss(1460))).out(1, in_ip(kOpen.tcp_options(mss(1000)).ttl(63), true, kOpenHash)),
        in(0, data).out(1, in_ip(data.ttl(63), true, kOpenHash))}},
      {"MSS: nat, both ways",
       clamped(with_mtu(nat_site(), 1400), kMssByMtu),
       {in(0, kOpen.tcp_options(mss(1460))).out(1, kOpenOut.tcp_options(mss(1360))),
        in(1, syn_ack.tcp_options(mss(1460))).out(0, syn_ack_out.tcp_options(mss(1360)))}},
  };
}

}  // namespace

Rows too_big_rows() {
  Rows rows = mtu_rows();
  for (Row& row : mss_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace margay::test
