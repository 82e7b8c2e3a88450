// SPDX-License-Identifier: Apache-2.0
// TCP's life as the SCI sees it (SCI-92, SCI-125), who may open a connection (SCI-132), and what is said when
// nobody can take it (SCI-79, SCI-80; RFC 9293 §3.10.7.1, RFC 1122 §3.2.2.1, RFC 4443 §3.1).
#include "tests/packet/flows.h"

namespace margay::test {
namespace {

const char* const kClient = "198.51.100.7:40000";
const char* const kSci = "192.0.2.10:80";
const char* const kClient6 = "[2001:db8:99::7]:40000";
const char* const kSci6 = "[2001:db8::10]:80";

// One connection: the client's first number is 1000, the instance's 5000.
PacketBuilder client(unsigned flags, uint32_t seq, uint32_t ack = 0) {
  return from_router(tcp(kClient, kSci).flags(flags).seq(seq).ack(ack));
}
PacketBuilder instance(unsigned flags, uint32_t seq, uint32_t ack) {
  return from_instance(tcp("10.1.0.11:8080", kClient).flags(flags).seq(seq).ack(ack));
}
// The step of a packet that reaches the other side.
Step there(const PacketBuilder& p) { return in(0, p).out(1, p.to("10.1.0.11:8080").ether(kPort1, kInstance1).ttl(63)); }
Step back(const PacketBuilder& p) { return in(1, p).out(0, p.from(kSci).ether(kPort0, kRouter).ttl(63)); }

const std::vector<Step> kHandshake{there(client(kSyn, 1000)).leaves(1, 1), back(instance(kSyn | kAck, 5000, 1001)),
                                   there(client(kAck, 1001, 5001)).leaves(1, 1)};
const std::vector<Step> kClosed{there(client(kFin | kAck, 1001, 5001)), back(instance(kFin | kAck, 5001, 1002)),
                                there(client(kAck, 1002, 5002)).leaves(1, 0)};

template <class... More>
std::vector<Step> steps(std::vector<Step> first, const More&... more) {
  (first.insert(first.end(), more.begin(), more.end()), ...);
  return first;
}
using Steps = std::vector<Step>;

// Packets that the SCI makes: RFC 9293 §3.10.7.1; no window, TTL 64, not to be fragmented.
PacketBuilder reset_of(const char* from, const char* to) {
  return tcp(from, to).flags(kRst).window(0).dont_fragment().ether(kPort0, kRouter);
}
PacketBuilder reset6_of(const char* from, const char* to) {
  return tcp(from, to).flags(kRst).window(0).ether(kPort0, kRouter);
}

PacketBuilder reset_to_instance() {
  return tcp(kClient, "10.1.0.11:8080").flags(kRst).window(0).dont_fragment().ether(kPort1, kInstance1);
}

SiteConfig one_slot() {
  return with(nat_site(), [](SiteConfig& c) {
    for (dp::SciConfig& s : c.scis) s.instances[0].max_sessions = 1;
  });
}
SiteConfig no_slot() {
  return with(nat_site(), [](SiteConfig& c) {
    for (dp::SciConfig& s : c.scis) s.instances[0].max_sessions = 0;
  });
}
SiteConfig unknown_flows(dp::UnknownFlow what) {
  return with(nat_site(), [&](SiteConfig& c) { c.scis[0].unknown_flow = what; });
}
Step health(dp::HealthState state) {
  return change([state](dp::SiteTable& t) {
    for (size_t i = 0; i < t.instances.size(); ++i) t.instances.edit(i).health = state;
  });
}
// The packet comes before anything else that would notice.
Step health_and(dp::HealthState state, const PacketBuilder& packet) {
  Step step = in(0, packet);
  step.change = health(state).change;
  step.passes = 0;
  return step;
}
Step administer(dp::Admin admin, dp::Tick drain_deadline) {
  return change([=](dp::SiteTable& t) {
    for (size_t i = 0; i < t.instances.size(); ++i) {
      t.instances.edit(i).admin = admin;
      t.instances.edit(i).drain_deadline = drain_deadline;
    }
  });
}

PacketBuilder unreachable(const PacketBuilder& packet, size_t longest) {
  Bytes quoted = packet.ip_packet();
  quoted.resize(std::min(quoted.size(), longest - 28));
  return icmp("192.0.2.10", "198.51.100.7", 3, 3).payload(quoted).dont_fragment().ether(kPort0, kRouter);
}
PacketBuilder unreachable6(const PacketBuilder& packet, size_t longest) {
  Bytes quoted = packet.ip_packet();
  quoted.resize(std::min(quoted.size(), longest - 48));
  return icmp("2001:db8::10", "2001:db8:99::7", 1, 4).payload(quoted).ether(kPort0, kRouter);
}

Rows life_rows() {
  return {
      {"handshake, data, FIN from the client", nat_site(),
       steps(kHandshake,
             Steps{there(client(kAck | kPsh, 1001, 5001).payload("GET /")),
                   back(instance(kAck, 5001, 1006).payload("200 OK")), there(client(kFin | kAck, 1006, 5007)),
                   back(instance(kFin | kAck, 5007, 1007)).leaves(1, 1), there(client(kAck, 1007, 5008)).leaves(1, 0),
                   wait(59 * dp::kSecond).leaves(1, 0), wait(2 * dp::kSecond).leaves(0, 0)})},
      {"FIN from the instance first", nat_site(),
       steps(kHandshake, Steps{back(instance(kFin | kAck, 5001, 1001)), there(client(kAck, 1001, 5002)).leaves(1, 1),
                               there(client(kFin | kAck, 1001, 5002)).leaves(1, 1),
                               back(instance(kAck, 5002, 1002)).leaves(1, 0)})},
      {"half-closed connection carries data on", nat_site(),
       steps(kHandshake, Steps{there(client(kFin | kAck, 1001, 5001)),
                               back(instance(kAck, 5001, 1002).payload("still here")).leaves(1, 1),
                               wait(200 * dp::kSecond).leaves(1, 1), back(instance(kAck, 5011, 1002).payload("yes")),
                               wait(200 * dp::kSecond).leaves(1, 1)})},
      {"repeated last ACK in TIME_WAIT", nat_site(),
       steps(kHandshake, kClosed, Steps{back(instance(kFin | kAck, 5001, 1002)), there(client(kAck, 1002, 5002))})},
      {"new SYN in TIME_WAIT begins anew", nat_site(),
       steps(kHandshake, kClosed, Steps{there(client(kSyn, 900'000)).leaves(1, 1)})},
      {"old duplicate SYN in TIME_WAIT does not", nat_site(),
       steps(kHandshake, kClosed, Steps{there(client(kSyn, 1000)).leaves(1, 0)})},
      {"repeated SYN takes one slot", nat_site(), {there(client(kSyn, 1000)), there(client(kSyn, 1000)).leaves(1, 1)}},
      {"unanswered SYN ends after 5 s",
       nat_site(),
       {there(client(kSyn, 1000)), wait(4900 * dp::kMillisecond).leaves(1, 1),
        wait(200 * dp::kMillisecond).leaves(0, 0)}},
      {"unproven flow ends after 5 s",
       nat_site(),
       {there(client(kSyn, 1000)), back(instance(kSyn | kAck, 5000, 1001)),
        there(client(kAck, 1001, 4999)),  // acknowledges what the instance never sent
        wait(6 * dp::kSecond).leaves(0, 0)}},
      {"RST from the instance, after a grace", nat_site(),
       steps(kHandshake, Steps{back(instance(kRst, 5001, 0)).leaves(1, 1), wait(1900 * dp::kMillisecond).leaves(1, 1),
                               wait(200 * dp::kMillisecond).leaves(0, 0)})},
      {"RST from the client, after a grace", nat_site(),
       steps(kHandshake, Steps{there(client(kRst, 1001)).leaves(1, 1), wait(2100 * dp::kMillisecond).leaves(0, 0)})},
      {"RST out of the window changes nothing", nat_site(),
       steps(kHandshake, Steps{there(client(kRst, 900'000)), wait(10 * dp::kSecond).leaves(1, 1)})},
      {"refused connection",
       nat_site(),
       {there(client(kSyn, 1000)), back(instance(kRst | kAck, 0, 1001)).leaves(1, 1),
        wait(2100 * dp::kMillisecond).leaves(0, 0)}},
      {"new SYN right after a RST", nat_site(),
       steps(kHandshake, Steps{there(client(kRst, 1001)), there(client(kSyn, 2000)).leaves(1, 1)})},
      {"idle connection ends after 300 s", nat_site(),
       steps(kHandshake, Steps{wait(299 * dp::kSecond).leaves(1, 1), wait(2 * dp::kSecond).leaves(0, 0)})},
      {"unanswered datagram ends after 5 s",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut).leaves(1, 1), wait(4900 * dp::kMillisecond).leaves(1, 1),
        wait(200 * dp::kMillisecond).leaves(0, 0)}},
      {"answered datagram ends after 60 s",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut),
        in(1, from_instance(udp("10.1.0.11:5353", kClient)))
            .out(0, udp("192.0.2.10:53", kClient).ttl(63).ether(kPort0, kRouter)),
        wait(59 * dp::kSecond).leaves(1, 1), wait(2 * dp::kSecond).leaves(0, 0)}},
  };
}

Rows refusal_rows() {
  const auto big = kQuery.payload_size(1400), big6 = kQuery6.payload_size(1400);
  return {
      {"all full: SYN is reset",
       one_slot(),
       {there(client(kSyn, 1000)).leaves(1, 1),
        in(0, client(kSyn, 7000).ports(40001, 80))
            .out(0, reset_of(kSci, "198.51.100.7:40001").flags(kRst | kAck).seq(0).ack(7001))
            .refused(Refusal::kNoFreeSlot)
            .leaves(1, 1)}},
      {"no slot: the SYN's data counts",
       no_slot(),
       {in(0, client(kSyn, 0xffff'fffe).payload("abc"))
            .out(0, reset_of(kSci, kClient).flags(kRst | kAck).seq(0).ack(2))
            .refused(Refusal::kNoFreeSlot)
            .leaves(0, 0)}},
      {"no slot: SYN with options and padding",
       no_slot(),
       {in(0, client(kSyn, 7000).tcp_options({2, 4, 5, 0xb4}).pad(90))
            .out(0, reset_of(kSci, kClient).flags(kRst | kAck).seq(0).ack(7001))
            .refused(Refusal::kNoFreeSlot)}},
      {"no slot: SYN with IPv4 options",
       no_slot(),
       {in(0, client(kSyn, 7000).ip_options(Bytes(40, 1)))
            .out(0, reset_of(kSci, kClient).flags(kRst | kAck).seq(0).ack(7001))
            .refused(Refusal::kNoFreeSlot)}},
      {"no slot: SYN over IPv6",
       no_slot(),
       {in(0, from_router(tcp(kClient6, kSci6).flags(kSyn).seq(7000)))
            .out(0, reset6_of(kSci6, kClient6).flags(kRst | kAck).seq(0).ack(7001))
            .refused(Refusal::kNoFreeSlot)}},
      {"no slot: the reset keeps the port's tag",
       with(no_slot(), [](SiteConfig& c) { c.ports[0].vlan = 100; }),
       {in(0, client(kSyn, 7000).vlan(100))
            .out(0, reset_of(kSci, kClient).flags(kRst | kAck).seq(0).ack(7001).vlan(100))
            .refused(Refusal::kNoFreeSlot)}},
      {"no slot: UDP is unreachable",
       no_slot(),
       {in(0, kQuery).out(0, unreachable(kQuery, 576)).refused(Refusal::kNoFreeSlot).leaves(0, 0)}},
      {"no slot: padding is not quoted",
       no_slot(),
       {in(0, kQuery.pad(100)).out(0, unreachable(kQuery, 576)).refused(Refusal::kNoFreeSlot)}},
      {"no slot: at most 576 bytes over IPv4",
       no_slot(),
       {in(0, big).out(0, unreachable(big, 576)).refused(Refusal::kNoFreeSlot)}},
      {"no slot: UDP over IPv6",
       no_slot(),
       {in(0, kQuery6).out(0, unreachable6(kQuery6, 1280)).refused(Refusal::kNoFreeSlot)}},
      {"no slot: at most 1280 bytes over IPv6",
       no_slot(),
       {in(0, big6).out(0, unreachable6(big6, 1280)).refused(Refusal::kNoFreeSlot)}},
      {"no healthy instance: SYN is reset",
       nat_site(),
       {health(dp::HealthState::kUnhealthy), in(0, client(kSyn, 7000))
                                                 .out(0, reset_of(kSci, kClient).flags(kRst | kAck).seq(0).ack(7001))
                                                 .refused(Refusal::kNoHealthyInstance)
                                                 .leaves(0, 0)}},
      {"only degraded instances take it",
       nat_site(),  // D-46
       {health(dp::HealthState::kDegraded), there(client(kSyn, 1000)).leaves(1, 1)}},
      {"unknown instances take nothing",
       nat_site(),  // D-23
       {health(dp::HealthState::kUnknown), in(0, client(kSyn, 7000))
                                               .out(0, reset_of(kSci, kClient).flags(kRst | kAck).seq(0).ack(7001))
                                               .refused(Refusal::kNoHealthyInstance)}},
      {"degraded, then unknown: old ones go on", nat_site(),  // SCI-55, D-23
       steps(kHandshake, Steps{health(dp::HealthState::kDegraded), there(client(kAck, 1001, 5001)).leaves(1, 1),
                               health(dp::HealthState::kUnknown), there(client(kAck, 1001, 5001)).leaves(1, 1)})},
      {"draining: old ones go on, new ones are refused", nat_site(),  // D-33
       steps(kHandshake, Steps{administer(dp::Admin::kDraining, 0x7fff'ffff), there(client(kAck, 1001, 5001)),
                               in(0, client(kSyn, 7000).ports(40001, 80))
                                   .out(0, reset_of(kSci, "198.51.100.7:40001").flags(kRst | kAck).seq(0).ack(7001))
                                   .refused(Refusal::kNoHealthyInstance)
                                   .leaves(1, 1)})},
      {"unhealthy: both ends are reset", nat_site(),  // SCI-85, D-22
       steps(kHandshake,
             Steps{there(client(kAck | kPsh, 1001, 5001).payload("GET /")), back(instance(kAck, 5001, 1006)),
                   health(dp::HealthState::kUnhealthy)
                       .own(1, reset_to_instance().seq(1006))
                       .own(0, reset_of(kSci, kClient).seq(5001))
                       .leaves(0, 0)})},
      // RFC 5961 §3.2: below what it has received an end ignores a RST, within its window it answers.
      {"unhealthy: a reset stands behind what is sent and not acknowledged yet", nat_site(),
       steps(kHandshake, Steps{there(client(kAck | kPsh, 1001, 5001).payload("GET /")),
                               back(instance(kAck | kPsh, 5001, 1001).payload("0123456789")),
                               health(dp::HealthState::kUnhealthy)
                                   .own(1, reset_to_instance().seq(1006))
                                   .own(0, reset_of(kSci, kClient).seq(5011))
                                   .leaves(0, 0)})},
      {"unhealthy: both ends of an unproven connection are reset",
       nat_site(),
       {there(client(kSyn, 1000)), back(instance(kSyn | kAck, 5000, 1001)),
        health(dp::HealthState::kUnhealthy)
            .own(1, reset_to_instance().seq(1001))
            .own(0, reset_of(kSci, kClient).flags(kRst | kAck).seq(5001).ack(1001))
            .leaves(0, 0)}},
      {"unhealthy: a client in SYN-SENT believes only a RST that acknowledges its SYN",
       nat_site(),
       {there(client(kSyn, 1000)), health(dp::HealthState::kUnhealthy)
                                       .own(1, reset_to_instance().seq(1001))
                                       .own(0, reset_of(kSci, kClient).flags(kRst | kAck).seq(0).ack(1001))
                                       .leaves(0, 0)}},
      {"unhealthy: UDP ends in silence",
       nat_site(),
       {in(0, kQuery).out(1, kQueryOut), health(dp::HealthState::kUnhealthy).leaves(0, 0)}},
      {"unhealthy: the next packet ends the connection", nat_site(),
       steps(kHandshake, Steps{health_and(dp::HealthState::kUnhealthy, client(kAck | kPsh, 1001, 5001).payload("GET /"))
                                   .drop(DropReason::kInstanceGone)
                                   .own(1, reset_to_instance().seq(1001))
                                   .own(0, reset_of(kSci, kClient).seq(5001))
                                   .leaves(0, 0)})},
      {"no slot: no room for the ICMP header",
       no_slot(),
       {in(0, kQuery).headroom(27).drop(DropReason::kNoHeadroom),
        in(0, kQuery).headroom(28).out(0, unreachable(kQuery, 576)).refused(Refusal::kNoFreeSlot)}},
      {"no slot: no room for the ICMPv6 header",
       no_slot(),
       {in(0, kQuery6).headroom(47).drop(DropReason::kNoHeadroom),
        in(0, kQuery6).headroom(48).out(0, unreachable6(kQuery6, 1280)).refused(Refusal::kNoFreeSlot)}},
      {"slots are free, but not for another unproven connection",  // D-45: half of 2
       with(nat_site(), [](SiteConfig& c) { c.scis[0].instances[0].max_sessions = 2; }),
       {there(client(kSyn, 1000)), in(0, client(kSyn, 7000).ports(40001, 80))
                                       .out(0, reset_of(kSci, "198.51.100.7:40001").flags(kRst | kAck).seq(0).ack(7001))
                                       .refused(Refusal::kProvisionalSpent)
                                       .leaves(1, 1)}},
      {"two SCIs share an endpoint: the client's port is taken",
       with(nat_site(),
            [](SiteConfig& c) {
              c.scis.push_back(c.scis[0]);
              c.scis.back().csci_id = "192.0.2.11:80";
              c.scis.back().endpoints[0].address = ip("192.0.2.11");
            }),
       {there(client(kSyn, 1000)), in(0, client(kSyn, 7000).to("192.0.2.11:80"))
                                       .out(0, reset_of("192.0.2.11:80", kClient).flags(kRst | kAck).seq(0).ack(7001))
                                       .refused(Refusal::kEndpointConflict)
                                       .leaves(1, 1)}},
      {"unhealthy in l2-dsr: the next packet is reset",
       dsr_site(),
       {in(0, client(kSyn, 1000)).out(1, client(kSyn, 1000).ether(kPort1, kInstance1).ttl(63)),
        in(0, client(kAck, 1001, 5001)).out(1, client(kAck, 1001, 5001).ether(kPort1, kInstance1).ttl(63)),
        health_and(dp::HealthState::kUnhealthy, client(kAck, 1001, 5001))
            .out(0, reset_of(kSci, kClient).seq(5001))
            .refused(Refusal::kInstanceGone)
            .leaves(0, 0)}},
      {"unauthorised MAC",
       nat_site(),  // SCI-132
       {in(0, client(kSyn, 1000).ether(kStranger, kPort0)).drop(DropReason::kUnauthorisedForwarder).leaves(0, 0)}},
      {"unauthorised port",
       nat_site(),
       {in(1, client(kSyn, 1000).ether(kRouter, kPort1)).drop(DropReason::kUnauthorisedForwarder)}},
      {"unauthorised, although bound", nat_site(),
       steps(kHandshake, Steps{in(0, client(kAck, 1001, 5001).ether(kStranger, kPort0))
                                   .drop(DropReason::kUnauthorisedForwarder)
                                   .leaves(1, 1)})},
      {"forwarder by VLAN",
       with(nat_site(),
            [](SiteConfig& c) {
              c.ports[0].vlan = 100;
              c.forwarders[0] = {};
              c.forwarders[0].vlan = 100;
            }),
       {in(0, client(kSyn, 1000).vlan(100))
            .out(1, client(kSyn, 1000).to("10.1.0.11:8080").ether(kPort1, kInstance1).ttl(63))}},
      {"no such port", nat_site(), {in(0, client(kSyn, 1000).ports(40000, 81)).drop(DropReason::kNoSuchService)}},
      {"no such protocol", nat_site(), {in(0, kQuery.ports(40000, 80)).drop(DropReason::kNoSuchService)}},
      {"stopped",
       nat_site(),
       {change([](dp::SiteTable& t) { t.forwarding = false; }), in(0, client(kSyn, 1000)).drop(DropReason::kStopped)}},

      {"unknown flow: ACK is reset",
       nat_site(),
       {in(0, client(kAck, 1001, 5001))
            .out(0, reset_of(kSci, kClient).seq(5001).ack(0))
            .refused(Refusal::kUnknownFlow)
            .leaves(0, 0)}},
      {"unknown flow: data is reset",
       nat_site(),
       {in(0, client(kAck | kPsh, 1001, 5001).payload("GET /"))
            .out(0, reset_of(kSci, kClient).seq(5001).ack(0))
            .refused(Refusal::kUnknownFlow)}},
      {"unknown flow: FIN is reset",
       nat_site(),
       {in(0, client(kFin | kAck, 1001, 5001))
            .out(0, reset_of(kSci, kClient).seq(5001).ack(0))
            .refused(Refusal::kUnknownFlow)}},
      {"unknown flow: SYN-ACK is reset",
       nat_site(),
       {in(0, client(kSyn | kAck, 1000, 5001))
            .out(0, reset_of(kSci, kClient).seq(5001).ack(0))
            .refused(Refusal::kUnknownFlow)}},
      {"unknown flow over IPv6",
       nat_site(),
       {in(0, from_router(tcp(kClient6, kSci6).flags(kAck).seq(1).ack(77)))
            .out(0, reset6_of(kSci6, kClient6).seq(77))
            .refused(Refusal::kUnknownFlow)}},
      {"unknown flow: RST is never answered",
       nat_site(),
       {in(0, client(kRst, 1001)).drop(DropReason::kUnknownFlow),
        in(0, client(kRst | kAck, 1001, 5001)).drop(DropReason::kUnknownFlow)}},
      {"unknown flow: drop",
       unknown_flows(dp::UnknownFlow::kDrop),
       {in(0, client(kAck, 1001, 5001)).drop(DropReason::kUnknownFlow).leaves(0, 0)}},
      {"unknown flow: adopt",
       unknown_flows(dp::UnknownFlow::kAdopt),
       {there(client(kAck, 1001, 5001)).leaves(1, 1), back(instance(kAck, 5001, 1001).payload("data")),
        wait(290 * dp::kSecond).leaves(1, 1)}},
      {"unknown flow: adopt takes no FIN",
       unknown_flows(dp::UnknownFlow::kAdopt),
       {in(0, client(kFin | kAck, 1001, 5001)).drop(DropReason::kUnknownFlow).leaves(0, 0)}},
  };
}

// Packets of one burst see what the ones before them did.
Rows burst_rows() {
  Step storm = in(0, client(kSyn, 1000));
  storm = storm.out(1, client(kSyn, 1000).to("10.1.0.11:8080").ether(kPort1, kInstance1).ttl(63));
  for (uint32_t n = 1; n < dp::kBurstMax; ++n) {  // SYN and RST in turn: each SYN begins the flow anew
    const auto p = n % 2 == 0 ? client(kSyn, 1000 + n * 1000) : client(kRst, 1000 + (n - 1) * 1000 + 1);
    storm = storm.also(0, p).out(1, p.to("10.1.0.11:8080").ether(kPort1, kInstance1).ttl(63));
  }
  return {
      {"SYN and RST in turn fill a burst", nat_site(), {storm.leaves(1, 1), wait(3 * dp::kSecond).leaves(0, 0)}},
  };
}

}  // namespace

Rows connection_rows() {
  Rows rows = life_rows();
  for (Row& row : refusal_rows()) rows.push_back(std::move(row));
  for (Row& row : burst_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace margay::test
