// SPDX-License-Identifier: Apache-2.0
// What concerns the SCI itself: ARP (RFC 826, RFC 5227), Neighbour Discovery (RFC 4861, RFC 4862), echo requests
// (RFC 792, RFC 4443 §4.2), next hops that have to be asked for, and the kernel's share of a port.
#include "tests/packet/fixture.h"

namespace margay::test {
namespace {

const char* const kHost = "192.0.2.77";
const char* const kHost6 = "2001:db8::77";
const char* const kAllNodes = "ff02::1";

Row arp_bad(const char* name, const PacketBuilder& frame) {
  return {name, nat_site(), {in(0, frame).drop(DropReason::kBadArp)}};
}
Row nd_bad(const char* name, const PacketBuilder& frame) {
  return {name, nat_site(), {in(0, frame).drop(DropReason::kBadNd)}};
}
Row answered(const char* name, const PacketBuilder& question, const PacketBuilder& answer) {
  return {name, nat_site(), {in(0, question).consumed().own(0, answer)}};
}
Row ignored(const char* name, const PacketBuilder& frame) { return {name, nat_site(), {in(0, frame).consumed()}}; }
Row echoed(const char* name, const PacketBuilder& request, const PacketBuilder& reply) {
  return {name, nat_site(), {in(0, request).out(0, reply)}};
}

Rows arp_rows() {
  const auto request = [](const char* target) { return arp_request(kStranger, kHost, target); };
  const auto reply = [](const char* sender) { return arp_reply(kPort0, sender, kStranger, kHost); };
  return {
      answered("ARP for the port's address", request("192.0.2.2"), reply("192.0.2.2")),
      answered("ARP for an SCI's address", request("192.0.2.10"), reply("192.0.2.10")),
      answered("ARP to the port alone", request("192.0.2.2").ether(kStranger, kPort0), reply("192.0.2.2")),
      answered("ARP with padding", request("192.0.2.2").pad(60), reply("192.0.2.2")),
      answered("ARP probe for our address", arp_request(kStranger, "0.0.0.0", "192.0.2.2"),
               arp_reply(kPort0, "192.0.2.2", kStranger, "0.0.0.0")),  // RFC 5227 §2.4: the defence
      {"ARP on a tagged port",
       with(nat_site(), [](SiteConfig& c) { c.ports[0].vlan = 100; }),
       {in(0, request("192.0.2.2").vlan(100)).consumed().own(0, reply("192.0.2.2").vlan(100))}},
      {"ARP without the port's tag",
       with(nat_site(), [](SiteConfig& c) { c.ports[0].vlan = 100; }),
       {in(0, request("192.0.2.2")).drop(DropReason::kVlanMismatch)}},
      ignored("ARP for another host", request("192.0.2.99")),
      ignored("ARP for the other port's address", request("10.1.0.2")),
      ignored("gratuitous ARP", arp_request(kStranger, kHost, kHost)),
      ignored("ARP reply nobody asked for", arp_reply(kStranger, kHost, kPort0, "192.0.2.2")),
      arp_bad("ARP of another hardware", request("192.0.2.2").l3_at(0, {0, 6})),
      arp_bad("ARP of another protocol", request("192.0.2.2").l3_at(2, {0x86, 0xdd})),
      arp_bad("ARP with a wrong address length", request("192.0.2.2").l3_at(5, {16})),
      {"ARP sender is a group",
       nat_site(),
       {in(0, request("192.0.2.2").l3_at(8, {1}).l2_at(6, {1})).drop(DropReason::kBadAddress)}},
      arp_bad("ARP sender is a group behind an honest MAC", request("192.0.2.2").l3_at(8, {1})),
      arp_bad("ARP sender is not the frame's", request("192.0.2.2").l2_at(6, {0x06})),
      arp_bad("somebody claims the other port's address", arp_request(kStranger, "10.1.0.2", "10.1.0.2")),
      {"ARP cut", nat_site(), {in(0, request("192.0.2.2").truncate(41)).drop(DropReason::kTooShort)}},
  };
}

Rows nd_rows() {
  const auto ask = [](const char* target) { return neighbour_solicitation(kStranger, kHost6, target, kStranger); };
  const auto tell = [](const char* target) {
    return neighbour_advertisement(kPort0, target, kHost6, target, kSolicited | kOverride, kPort0)
        .ether(kPort0, kStranger);
  };
  const auto probe = neighbour_solicitation(kStranger, "::", "2001:db8::2", std::nullopt);
  const auto news = [](uint32_t flags) {
    return neighbour_advertisement(kStranger, kHost6, kAllNodes, kHost6, flags, kStranger);
  };
  const auto told =
      neighbour_advertisement(kStranger, kHost6, "2001:db8::2", kHost6, kSolicited, kStranger).ether(kStranger, kPort0);
  return {
      answered("NS for the port's address", ask("2001:db8::2"), tell("2001:db8::2")),
      answered("NS for an SCI's address", ask("2001:db8::10"), tell("2001:db8::10")),
      answered("NS to the address itself", ask("2001:db8::2").to("2001:db8::2").ether(kStranger, kPort0),
               tell("2001:db8::2")),
      answered("NS without an option",
               neighbour_solicitation(kStranger, kHost6, "2001:db8::2", std::nullopt)
                   .to("2001:db8::2")
                   .ether(kStranger, kPort0),
               tell("2001:db8::2")),
      answered("duplicate address detection", probe,  // RFC 4861 §7.2.4: to all nodes, not solicited
               neighbour_advertisement(kPort0, "2001:db8::2", kAllNodes, "2001:db8::2", kOverride, kPort0)),
      ignored("NS for another host", ask("2001:db8::99")),
      ignored("NS for the other port's address", ask("2001:db8:1::2")),
      ignored("unsolicited NA", news(kOverride)),
      ignored("NA nobody asked for", told),
      nd_bad("NS hop limit 254", ask("2001:db8::2").ttl(254)),
      nd_bad("NS code 1", ask("2001:db8::2").icmp_type(135, 1)),
      nd_bad("NS checksum", ask("2001:db8::2").l4_checksum(0x1234)),
      nd_bad("NS of 23 bytes", ask("2001:db8::2").payload(Bytes(15))),
      nd_bad("NS target is a group", ask("2001:db8::2").payload(neighbour_target(kAllNodes))),
      nd_bad("NS option of length 0",
             ask("2001:db8::2").payload(neighbour_target("2001:db8::2", {1, 0, 2, 0, 0, 0, 0, 1}))),
      nd_bad("NS option cut", ask("2001:db8::2").payload(neighbour_target("2001:db8::2", {1, 1, 2, 0, 0, 0, 0}))),
      nd_bad("NS from :: with a source option", neighbour_solicitation(kStranger, "::", "2001:db8::2", kStranger)),
      nd_bad("NS from :: not to the group", probe.to("2001:db8::2").ether(kStranger, kPort0)),
      nd_bad("NA hop limit 254", told.ttl(254)),
      nd_bad("NA code 1", told.icmp_type(136, 1)),
      nd_bad("NA checksum", told.l4_checksum(0x1234)),
      nd_bad("NA of 23 bytes", told.payload(Bytes(15))),
      nd_bad("NA target is a group", told.payload(neighbour_target(kAllNodes))),
      nd_bad("NA option of length 0", told.payload(neighbour_target(kHost6, {2, 0, 2, 0, 0, 0, 0, 1}))),
      nd_bad("NA to a group, solicited", news(kSolicited)),
      nd_bad("somebody claims the other port's IPv6 address",
             neighbour_advertisement(kStranger, "2001:db8:1::2", kAllNodes, "2001:db8:1::2", kOverride, kStranger)),
      nd_bad("our own NA comes back",
             neighbour_advertisement(kPort0, "2001:db8::2", kAllNodes, "2001:db8::2", kOverride, kPort0)),
  };
}

// RFC 5227 §2.4 c: one ARP Announcement, then none within DEFEND_INTERVAL (10 s) however often the claim is repeated,
// and the address is kept. Each address for itself. Neighbour Discovery alike (RFC 4861 §7.2.6).
Rows conflict_rows() {
  const auto request = [](const char* address) { return arp_request(kStranger, address, address); };
  const auto announced = [](const char* address) { return arp_request(kPort0, address, address); };
  const auto advertised = [](const MacAddress& who, const char* address) {
    return neighbour_advertisement(who, address, kAllNodes, address, kOverride, who);
  };
  const auto told = [&](const char* address) {  // as if we had asked
    return neighbour_advertisement(kStranger, kHost6, "2001:db8::2", address, kSolicited, std::nullopt)
        .ether(kStranger, kPort0);
  };
  const auto claim = [](const PacketBuilder& p) { return in(0, p).drop(DropReason::kAddressConflict); };
  return {
      {"somebody claims the port's address",
       nat_site(),
       {claim(request("192.0.2.2")).own(0, announced("192.0.2.2")), claim(request("192.0.2.2")),
        claim(arp_reply(kStranger, "192.0.2.2", kPort0, "192.0.2.2")), wait(9900 * dp::kMillisecond),
        claim(request("192.0.2.2")), wait(60 * dp::kMillisecond),
        claim(request("192.0.2.2")).own(0, announced("192.0.2.2"))}},
      {"somebody claims an SCI's address, and then the port's",
       nat_site(),
       {claim(arp_reply(kStranger, "192.0.2.10", kPort0, "192.0.2.2")).own(0, announced("192.0.2.10")),
        claim(request("192.0.2.2")).own(0, announced("192.0.2.2")), claim(request("192.0.2.10"))}},
      {"somebody asks for another host from our address",
       nat_site(),
       {claim(arp_request(kStranger, "192.0.2.2", kHost)).own(0, announced("192.0.2.2"))}},
      {"somebody claims the address of a tagged port",
       with(nat_site(), [](SiteConfig& c) { c.ports[0].vlan = 100; }),
       {claim(request("192.0.2.2").vlan(100)).own(0, announced("192.0.2.2").vlan(100))}},
      ignored("our own announcement comes back", announced("192.0.2.10")),
      ignored("our own announcement comes back by the other port", arp_request(kPort1, "192.0.2.10", "192.0.2.10")),
      {"somebody claims the port's IPv6 address",
       nat_site(),
       {claim(advertised(kStranger, "2001:db8::2")).own(0, advertised(kPort0, "2001:db8::2")),
        claim(advertised(kStranger, "2001:db8::2")), wait(9900 * dp::kMillisecond),
        claim(advertised(kStranger, "2001:db8::2")), wait(70 * dp::kMillisecond),
        claim(told("2001:db8::2")).own(0, advertised(kPort0, "2001:db8::2"))}},
      {"somebody claims an SCI's IPv6 address",
       nat_site(),
       {claim(advertised(kStranger, "2001:db8::10")).own(0, advertised(kPort0, "2001:db8::10"))}},
  };
}

Rows echo_rows() {
  const auto ping = [](const char* to) {
    return echo_request("198.51.100.7", to, 0x1234, 7).ether(kRouter, kPort0).ttl(9).id(77).tos(0x20);
  };
  const auto pong = [](const char* from) {
    return echo_reply(from, "198.51.100.7", 0x1234, 7).ether(kPort0, kRouter).id(77).tos(0x20);
  };
  const auto ping6 = [](const char* to) {
    return echo_request("2001:db8:99::7", to, 0x1234, 7).ether(kRouter, kPort0).ttl(9);
  };
  const auto pong6 = [](const char* from) {
    return echo_reply(from, "2001:db8:99::7", 0x1234, 7).ether(kPort0, kRouter);
  };
  return {
      echoed("echo to the port", ping("192.0.2.2"), pong("192.0.2.2")),
      echoed("echo to an SCI", ping("192.0.2.10"), pong("192.0.2.10")),
      echoed("echo to the other port's address", ping("10.1.0.2"), pong("10.1.0.2")),
      echoed("echo over IPv6 to the port", ping6("2001:db8::2"), pong6("2001:db8::2")),
      echoed("echo over IPv6 to an SCI", ping6("2001:db8::10"), pong6("2001:db8::10")),
      echoed("echo without data", ping("192.0.2.2").payload(""), pong("192.0.2.2").payload("")),
      echoed("echo of odd length", ping("192.0.2.2").payload_size(1471), pong("192.0.2.2").payload_size(1471)),
      echoed("echo of odd length over IPv6", ping6("2001:db8::2").payload_size(333),
             pong6("2001:db8::2").payload_size(333)),
      echoed("echo with padding", ping("192.0.2.2").payload("x").pad(60), pong("192.0.2.2").payload("x").pad(60)),
      echoed("echo with TTL 1", ping("192.0.2.2").ttl(1), pong("192.0.2.2")),  // it is for us, not through us
      {"echo on a tagged port",
       with(nat_site(), [](SiteConfig& c) { c.ports[0].vlan = 100; }),
       {in(0, ping("192.0.2.2").vlan(100)).out(0, pong("192.0.2.2").vlan(100))}},
      {"echo with a wrong checksum", nat_site(), {in(0, ping("192.0.2.2").l4_checksum(1)).drop(DropReason::kBadIcmp)}},
      {"echo over IPv6 with a wrong checksum",
       nat_site(),
       {in(0, ping6("2001:db8::10").l4_checksum(1)).drop(DropReason::kBadIcmp)}},
      {"echo reply to an SCI",
       nat_site(),
       {in(0, ping("192.0.2.10").icmp_type(0, 0)).drop(DropReason::kIcmpUnhandled)}},
      {"timestamp request to an SCI",
       nat_site(),
       {in(0, ping("192.0.2.10").icmp_type(13, 0)).drop(DropReason::kIcmpUnhandled)}},
      {"echo reply to the port", nat_site(), {in(0, ping("192.0.2.2").icmp_type(0, 0)).drop(DropReason::kNotForUs)}},
      {"echo to somebody else", nat_site(), {in(0, ping("203.0.113.1")).drop(DropReason::kNotForUs)}},
      {"echo fragment", nat_site(), {in(0, ping("192.0.2.10").fragment(0, true)).drop(DropReason::kFragment)}},
  };
}

SiteConfig nothing_known() {
  return with(nat_site(), [](SiteConfig& c) {
    c.ports[0].neighbours.clear();
    for (dp::SciConfig& s : c.scis) s.instances[0].mac.reset();
    c.scis.resize(1);
    c.ports[0].gateways.resize(1);
  });
}
SiteConfig nothing_known6() {
  return with(nothing_known(), [](SiteConfig& c) {
    c.scis = {nat_site().scis[1]};
    c.scis[0].instances[0].mac.reset();
    c.ports[0].gateways = {};
  });
}

Rows next_hop_rows() {
  const auto syn = from_router(tcp("198.51.100.7:40000", "192.0.2.10:80").flags(kSyn).seq(1000));
  const auto syn_out = syn.to("10.1.0.11:8080").ether(kPort1, kInstance1).ttl(63);
  const auto syn6 = from_router(tcp("[2001:db8:99::7]:40000", "[2001:db8::10]:80").flags(kSyn).seq(1000));
  const auto syn6_out = syn6.to("[2001:db8:1::11]:8080").ether(kPort1, kInstance1).ttl(63);
  const auto who_is_router = arp_request(kPort0, "192.0.2.2", "192.0.2.1");
  const auto who_is_instance = arp_request(kPort1, "10.1.0.2", "10.1.0.11");
  const auto instance_is = arp_reply(kInstance1, "10.1.0.11", kPort1, "10.1.0.2");
  const auto who_is_instance6 = neighbour_solicitation(kPort1, "2001:db8:1::2", "2001:db8:1::11", kPort1);
  const auto instance6_is = neighbour_advertisement(kInstance1, "2001:db8:1::11", "2001:db8:1::2", "2001:db8:1::11",
                                                    kSolicited | kOverride, kInstance1)
                                .ether(kInstance1, kPort1);
  const auto moved = neighbour_advertisement(kInstance2, "2001:db8:1::11", kAllNodes, "2001:db8:1::11", 0, kInstance2);
  // Both next hops are asked for from the start.
  const Step asked = wait(60 * dp::kMillisecond).own(0, who_is_router).own(1, who_is_instance);
  Step full = in(0, syn).held();  // a burst of 32
  for (uint16_t n = 1; n < 32; ++n) full = full.also(0, syn.ports(static_cast<uint16_t>(40000 + n), 80)).held();
  const Step one_more = in(0, syn.ports(41000, 80)).drop(DropReason::kNeighbourQueueFull);
  return {
      {"packet waits for the instance's MAC",
       nothing_known(),
       {asked, in(0, syn).held().leaves(1, 1), in(1, instance_is).consumed().released(1, syn_out),
        in(0, syn).out(1, syn_out)}},
      {"packet waits for the instance's MAC over IPv6",
       nothing_known6(),
       {wait(60 * dp::kMillisecond).own(1, who_is_instance6), in(0, syn6).held(),
        in(1, instance6_is).consumed().released(1, syn6_out)}},
      {"asked again after a second, given up after three",
       nothing_known(),
       {asked, in(0, syn).held(),
        wait(3100 * dp::kMillisecond)
            .own(0, who_is_router)
            .own(1, who_is_instance)
            .own(0, who_is_router)
            .own(1, who_is_instance)
            .own(0, who_is_router)
            .own(1, who_is_instance)
            .given_up(DropReason::kNeighbourUnresolved)}},
      {"32 packets wait for a next hop, and no more", nothing_known(), {asked, full, one_more}},
      {"gratuitous ARP moves an instance",
       nothing_known(),
       {asked, in(1, instance_is).consumed(), in(0, syn).out(1, syn_out),
        in(1, arp_request(kInstance2, "10.1.0.11", "10.1.0.11")).consumed(),
        in(0, syn).out(1, syn_out.ether(kPort1, kInstance2))}},
      {"a configured MAC stays",
       nat_site(),
       {in(1, arp_request(kInstance2, "10.1.0.11", "10.1.0.11")).consumed(), in(0, syn).out(1, syn_out)}},
      {"ARP on the wrong port teaches nothing",
       nothing_known(),
       {asked, in(0, arp_reply(kInstance1, "10.1.0.11", kPort0, "192.0.2.2")).consumed(), in(0, syn).held()}},
      {"NA with override moves an instance",
       nothing_known6(),
       {wait(60 * dp::kMillisecond).own(1, who_is_instance6), in(1, instance6_is).consumed(),
        in(1, moved.icmp_rest(kOverride)).consumed(), in(0, syn6).out(1, syn6_out.ether(kPort1, kInstance2))}},
      {"NA without override does not",
       nothing_known6(),  // RFC 4861 §7.2.5
       {wait(60 * dp::kMillisecond).own(1, who_is_instance6), in(1, instance6_is).consumed(), in(1, moved).consumed(),
        in(0, syn6).out(1, syn6_out)}},
      {"waiting packets whose instance went away are dropped",
       nothing_known(),
       {asked, in(0, syn).held(),
        change([](dp::SiteTable& t) { t.instances.edit(0).health = dp::HealthState::kUnhealthy; }).leaves(0, 0),
        in(1, instance_is).consumed().given_up(DropReason::kInstanceGone)}},
  };
}

SiteConfig with_kernel() {
  return with(nat_site(), [](SiteConfig& c) { c.ports[0].kernel = "mg0"; });
}
SiteConfig with_tagged_kernel() {
  return with(with_kernel(), [](SiteConfig& c) { c.ports[0].vlan = 100; });
}

Rows kernel_rows() {
  const auto ssh = from_router(tcp("198.51.100.7:40000", "192.0.2.2:22").flags(kSyn));
  const auto bgp = from_router(tcp("192.0.2.1:179", "192.0.2.2:40000").flags(kAck));
  const auto lldp = PacketBuilder::raw(0x88cc, Bytes(46)).ether(kRouter, mac("01:80:c2:00:00:0e"));
  const auto who_is = arp_request(kStranger, kHost, "192.0.2.2");
  const auto router_is = arp_reply(kRouter, "192.0.2.1", kPort0, "192.0.2.2");
  return {
      {"TCP to the port goes to the kernel", with_kernel(), {in(0, ssh).kernel(0, ssh), in(0, bgp).kernel(0, bgp)}},
      {"TCP to the port without a kernel", nat_site(), {in(0, ssh).drop(DropReason::kNotForUs)}},
      {"fragment to the port goes to the kernel",
       with_kernel(),
       {in(0, ssh.fragment(0, true)).kernel(0, ssh.fragment(0, true))}},
      {"fragment to an SCI does not",
       with_kernel(),
       {in(0, ssh.to("192.0.2.10").fragment(0, true)).drop(DropReason::kFragment)}},
      {"extension header to the port goes to the kernel",
       with_kernel(),
       {in(0, echo_request(kHost6, "2001:db8::2", 1, 1).extension(0, Bytes(6)).ether(kStranger, kPort0))
            .kernel(0, echo_request(kHost6, "2001:db8::2", 1, 1).extension(0, Bytes(6)).ether(kStranger, kPort0))}},
      {"no service is no matter for the kernel",
       with_kernel(),
       {in(0, ssh.to("192.0.2.10")).drop(DropReason::kNoSuchService)}},
      {"LLDP goes to the kernel", with_kernel(), {in(0, lldp).kernel(0, lldp)}},
      {"group traffic goes to the kernel",
       with_kernel(),
       {in(0, udp("192.0.2.1:5353", "224.0.0.251:5353").ether(kRouter, mac("01:00:5e:00:00:fb")))
            .kernel(0, udp("192.0.2.1:5353", "224.0.0.251:5353").ether(kRouter, mac("01:00:5e:00:00:fb")))}},
      {"malformed goes nowhere", with_kernel(), {in(0, ssh.ip_checksum(1)).drop(DropReason::kBadHeaderChecksum)}},
      {"the kernel sees no tag", with_tagged_kernel(), {in(0, ssh.vlan(100)).kernel(0, ssh)}},
      {"ARP replies are heard by the kernel too", with_kernel(), {in(0, router_is).kernel(0, router_is)}},
      {"ARP requests are answered by us alone",
       with_kernel(),
       {in(0, who_is).consumed().own(0, arp_reply(kPort0, "192.0.2.2", kStranger, kHost))}},
      {"echo to the port is answered by us",
       with_kernel(),
       {in(0, echo_request("198.51.100.7", "192.0.2.2", 1, 1).ether(kRouter, kPort0))
            .out(0, echo_reply("192.0.2.2", "198.51.100.7", 1, 1).ether(kPort0, kRouter))}},
      {"echo reply to the port goes to the kernel",
       with_kernel(),
       {in(0, echo_reply("198.51.100.7", "192.0.2.2", 1, 1).ether(kRouter, kPort0))
            .kernel(0, echo_reply("198.51.100.7", "192.0.2.2", 1, 1).ether(kRouter, kPort0))}},
      {"from the kernel", with_kernel(), {from_kernel(0, bgp).out(0, bgp)}},
      {"from the kernel the tag is put on", with_tagged_kernel(), {from_kernel(0, bgp).out(0, bgp.vlan(100))}},
      {"from the kernel without room for the tag",
       with_tagged_kernel(),
       {from_kernel(0, bgp).headroom(3).drop(DropReason::kNoHeadroom),
        from_kernel(0, bgp).headroom(4).out(0, bgp.vlan(100))}},
      {"from the kernel too short", with_kernel(), {from_kernel(0, bgp.truncate(13)).drop(DropReason::kTooShort)}},
  };
}

}  // namespace

Rows local_rows() {
  Rows rows = arp_rows();
  for (Rows more : {nd_rows(), conflict_rows(), echo_rows(), next_hop_rows(), kernel_rows()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace margay::test
