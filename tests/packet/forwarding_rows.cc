// SPDX-License-Identifier: Apache-2.0
// What becomes of a packet that is let through. nat (SCI-18, SCI-73, SCI-84, SCI-127): address and port of one end,
// MACs, TTL (RFC 1812 §5.3.1) and checksums, nothing else. l2-dsr: MACs and TTL.
#include "tests/packet/flows.h"

namespace margay::test {
namespace {

const PacketBuilder kSynAck =
    from_instance(tcp("10.1.0.11:8080", "198.51.100.7:40000").flags(kSyn | kAck).seq(5000).ack(1001));
const PacketBuilder kSynAckOut = kSynAck.from("192.0.2.10:80").ether(kPort0, kRouter).ttl(63);

const PacketBuilder kSynAck6 =
    from_instance(tcp("[2001:db8:1::11]:8080", "[2001:db8:99::7]:40000").flags(kSyn | kAck).seq(5000).ack(1001));
const PacketBuilder kSynAck6Out = kSynAck6.from("[2001:db8::10]:80").ether(kPort0, kRouter).ttl(63);

const PacketBuilder kAnswer = from_instance(udp("10.1.0.11:5353", "198.51.100.7:40000").payload("the answer"));
const PacketBuilder kAnswerOut = kAnswer.from("192.0.2.10:53").ether(kPort0, kRouter).ttl(63);

const PacketBuilder kQuery6Out = kQuery6.to("[2001:db8:1::11]:5353").ether(kPort1, kInstance1).ttl(63);
const PacketBuilder kAnswer6 =
    from_instance(udp("[2001:db8:1::11]:5353", "[2001:db8:99::7]:40000").payload("the answer"));
const PacketBuilder kAnswer6Out = kAnswer6.from("[2001:db8::10]:53").ether(kPort0, kRouter).ttl(63);

// A query whose checksum is, or becomes, one of the values that RFC 768 treats apart.
PacketBuilder arriving_with(const PacketBuilder& p, uint16_t checksum) { return p.payload_for_checksum(checksum); }
PacketBuilder leaving_with(const PacketBuilder& in, const PacketBuilder& out, uint16_t checksum) {
  return in.payload(out.payload_for_checksum(checksum).payload_bytes());
}

PacketBuilder rewritten(const PacketBuilder& p) { return p.to("10.1.0.11:5353").ether(kPort1, kInstance1).ttl(63); }
PacketBuilder rewritten6(const PacketBuilder& p) {
  return p.to("[2001:db8:1::11]:5353").ether(kPort1, kInstance1).ttl(63);
}
Row query(const char* name, const PacketBuilder& p) { return {name, nat_site(), {in(0, p).out(1, rewritten(p))}}; }
Row query6(const char* name, const PacketBuilder& p) { return {name, nat_site(), {in(0, p).out(1, rewritten6(p))}}; }

SiteConfig small_mtu() {
  return with(nat_site(), [](SiteConfig& c) { c.ports[1].mtu = 1400; });
}
SiteConfig on_link_client() {  // clients live on port 0's own network
  return with(nat_site(), [](SiteConfig& c) {
    c.ports[0].gateways.clear();
    dp::ForwarderConfig any;
    any.any = true;
    c.forwarders = {any};
  });
}

}  // namespace

Rows nat_rows() {
  return {
      {"TCP to the instance and back",
       nat_site(),
       {in(0, kOpen).out(1, kOpenOut).leaves(1, 1), in(1, kSynAck).out(0, kSynAckOut).leaves(1, 1)}},
      {"TCP over IPv6 to the instance and back",
       nat_site(),
       {in(0, kOpen6).out(1, kOpen6Out).leaves(1, 1), in(1, kSynAck6).out(0, kSynAck6Out).leaves(1, 1)}},
      {"UDP to the instance and back",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut).leaves(1, 1), in(1, kAnswer).out(0, kAnswerOut).leaves(1, 1)}},
      {"UDP over IPv6 to the instance and back",
       nat_site(),
       {in(0, kQuery6).out(1, kQuery6Out).leaves(1, 1), in(1, kAnswer6).out(0, kAnswer6Out).leaves(1, 1)}},
      {"second packet uses the binding",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut),
        in(0, kQuery.payload("again")).out(1, kQueryOut.payload("again")).leaves(1, 1)}},
      {"two packets of a new flow in one burst",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut).also(0, kQuery.payload("x")).out(1, kQueryOut.payload("x")).leaves(1, 1)}},
      {"two flows in one burst",
       nat_site(),
       {in(0, kOpen).out(1, kOpenOut).also(0, kOpen6).out(1, kOpen6Out).leaves(2, 2)}},
      {"empty UDP datagram", nat_site(), {in(0, kQuery.payload("")).out(1, kQueryOut.payload(""))}},
      {"odd and even payloads",
       nat_site(),
       {in(0, kQuery.payload_size(1471)).out(1, kQueryOut.payload_size(1471)),
        in(0, kQuery.payload_size(1472)).out(1, kQueryOut.payload_size(1472))}},

      query("UDP without a checksum keeps none", kQuery.l4_checksum(0)),
      query("UDP checksum 0xffff arrives", arriving_with(kQuery, 0)),
      query("UDP checksum 1 arrives", arriving_with(kQuery, 1)),
      query("UDP checksum 0xfffe arrives", arriving_with(kQuery, 0xfffe)),
      query("UDP checksum 0xffff leaves", leaving_with(kQuery, kQueryOut, 0)),
      query("UDP checksum 1 leaves", leaving_with(kQuery, kQueryOut, 1)),
      query("UDP checksum 0xfffe leaves", leaving_with(kQuery, kQueryOut, 0xfffe)),
      query6("UDP over IPv6: checksum 0xffff arrives", arriving_with(kQuery6, 0)),
      query6("UDP over IPv6: checksum 0xffff leaves", leaving_with(kQuery6, kQuery6Out, 0)),
      {"answer without a checksum keeps none",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut), in(1, kAnswer.l4_checksum(0)).out(0, kAnswerOut.l4_checksum(0))}},
      {"answer's checksum 0xffff leaves",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut),
        in(1, leaving_with(kAnswer, kAnswerOut, 0)).out(0, kAnswerOut.payload_for_checksum(0))}},
      {"TCP checksum 0 leaves as 0",
       nat_site(),
       {in(0, kOpen.payload(kOpenOut.payload_for_checksum(0).payload_bytes()))
            .out(1, kOpenOut.payload_for_checksum(0))}},
      {"a wrong UDP checksum stays wrong",  // RFC 1624's update carries the error on to the receiver
       nat_site(),
       {in(0, kQuery.l4_checksum(static_cast<uint16_t>(kQuery.computed_l4_checksum() + 1)))
            .out(1, kQueryOut.l4_checksum(static_cast<uint16_t>(kQueryOut.computed_l4_checksum() + 1)))}},
      query("IPv4 header checksum leaves as 0", kQuery.id(kQueryOut.id_for_ip_checksum(0).identification())),
      query("IPv4 header checksum arrives as 0", kQuery.id_for_ip_checksum(0)),

      {"TTL 2 is the last that goes", nat_site(), {in(0, kQuery.ttl(2)).out(1, kQueryOut.ttl(1))}},
      {"TTL 1 ends here", nat_site(), {in(0, kQuery.ttl(1)).drop(DropReason::kTtlExceeded).leaves(0, 0)}},
      {"TTL 0 ends here", nat_site(), {in(0, kOpen.ttl(0)).drop(DropReason::kTtlExceeded).leaves(0, 0)}},
      {"hop limit 1 ends here", nat_site(), {in(0, kOpen6.ttl(1)).drop(DropReason::kTtlExceeded).leaves(0, 0)}},
      {"TTL 255", nat_site(), {in(0, kQuery.ttl(255)).out(1, kQueryOut.ttl(254))}},
      {"answer with TTL 1 ends here",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut), in(1, kAnswer.ttl(1)).drop(DropReason::kTtlExceeded)}},

      {"as long as the MTU", small_mtu(), {in(0, kQuery.payload_size(1372)).out(1, kQueryOut.payload_size(1372))}},
      {"answer longer than the MTU",
       with(nat_site(), [](SiteConfig& c) { c.ports[0].mtu = 1400; }),
       {in(0, kQuery).out(1, kQueryOut), in(1, kAnswer.payload_size(1372)).out(0, kAnswerOut.payload_size(1372)),
        in(1, kAnswer.payload_size(1373)).drop(DropReason::kTooBig)}},
      {"padding does not count for the MTU",
       small_mtu(),
       {in(0, kQuery.payload_size(1372).pad(1500)).out(1, kQueryOut.payload_size(1372).pad(1500))}},

      {"client on the port's own network",
       with(on_link_client(), [](SiteConfig& c) { c.ports[0].neighbours.clear(); }),
       {in(0, arp_request(kStranger, "192.0.2.77", "192.0.2.2"))
            .own(0, arp_reply(kPort0, "192.0.2.2", kStranger, "192.0.2.77")),
        in(0, kQuery.from("192.0.2.77").ether(kStranger, kPort0)).out(1, kQueryOut.from("192.0.2.77")),
        in(1, kAnswer.to("192.0.2.77")).held().own(0, arp_request(kPort0, "192.0.2.2", "192.0.2.77")),
        in(0, arp_reply(kStranger, "192.0.2.77", kPort0, "192.0.2.2"))
            .consumed()
            .released(0, kAnswerOut.to("192.0.2.77").ether(kPort0, kStranger))}},
      {"no way back to the client",
       on_link_client(),
       {in(0, kQuery).out(1, kQueryOut), in(1, kAnswer).drop(DropReason::kNoRoute)}},

      {"stray from an instance", nat_site(), {in(1, kAnswer).drop(DropReason::kStrayFromInstance)}},
      {"stray TCP from an instance", nat_site(), {in(1, kSynAck6).drop(DropReason::kStrayFromInstance)}},
      {"answer on the wrong port",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut),
        in(0, kAnswer.ether(kRouter, kPort0)).drop(DropReason::kInstanceWrongPort).leaves(1, 1)}},
      {"fragment from an instance", nat_site(), {in(1, kAnswer.fragment(0, true)).drop(DropReason::kFragment)}},
      {"instance's other traffic", nat_site(), {in(1, kAnswer.ports(999, 40000)).drop(DropReason::kNotForUs)}},
  };
}

Rows dsr_rows() {
  const auto to_instance = [](const PacketBuilder& p) { return p.ether(kPort1, kInstance1).ttl(63); };
  return {
      {"l2-dsr: TCP", dsr_site(), {in(0, kOpen).out(1, to_instance(kOpen)).leaves(1, 1)}},
      {"l2-dsr: TCP over IPv6", dsr_site(), {in(0, kOpen6).out(1, to_instance(kOpen6)).leaves(1, 1)}},
      {"l2-dsr: UDP", dsr_site(), {in(0, kQuery).out(1, to_instance(kQuery)).leaves(1, 1)}},
      {"l2-dsr: UDP over IPv6", dsr_site(), {in(0, kQuery6).out(1, to_instance(kQuery6)).leaves(1, 1)}},
      {"l2-dsr: UDP without a checksum",
       dsr_site(),
       {in(0, kQuery.l4_checksum(0)).out(1, to_instance(kQuery.l4_checksum(0)))}},
      {"l2-dsr: TTL 1", dsr_site(), {in(0, kQuery.ttl(1)).drop(DropReason::kTtlExceeded).leaves(0, 0)}},
      {"l2-dsr: IPv4 header checksum becomes 0 and not 0xffff",  // RFC 1624 §3
       dsr_site(),
       {in(0, kQuery.id_for_ip_checksum(0xfeff)).out(1, to_instance(kQuery.id_for_ip_checksum(0xfeff)))}},
      {"l2-dsr: tag is put on",
       with(dsr_site(), [](SiteConfig& c) { c.ports[1].vlan = 200; }),
       {in(0, kOpen).headroom(4).out(1, to_instance(kOpen).vlan(200)),
        in(0, kOpen).headroom(3).drop(DropReason::kNoHeadroom)}},
      {"l2-dsr: an instance's own traffic is not ours",
       dsr_site(),
       {in(0, kQuery).out(1, to_instance(kQuery)), in(1, kAnswer).drop(DropReason::kNotForUs)}},
      {"l2-dsr: a client's connection",  // a client's FIN half-closes it; the closing timer ends it
       dsr_site(),
       {in(0, kOpen).out(1, to_instance(kOpen)).leaves(1, 1),
        in(0, kOpen.flags(kAck).seq(1001).ack(5001)).out(1, to_instance(kOpen.flags(kAck).seq(1001).ack(5001))),
        in(0, kOpen.flags(kFin | kAck).seq(1001).ack(5001))
            .out(1, to_instance(kOpen.flags(kFin | kAck).seq(1001).ack(5001)))
            .leaves(1, 1),
        wait(9 * dp::kSecond).leaves(1, 1), wait(2 * dp::kSecond).leaves(0, 0)}},
  };
}

Rows forwarding_rows() {
  Rows rows = nat_rows();
  for (Row& row : dsr_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace margay::test
