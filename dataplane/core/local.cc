// SPDX-License-Identifier: Apache-2.0
// What is not a flow's: ARP, Neighbour Discovery, echo requests, the kernel's share, and what nobody wants.
#include <algorithm>
#include <cstring>

#include "dataplane/core/checksum.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/core/own_packets.h"
#include "dataplane/core/wire.h"

namespace margay::dp {
namespace {

constexpr uint8_t kEchoRequest = 8, kEchoRequestV6 = 128, kSolicitation = 135, kAdvertisement = 136;
constexpr uint16_t kNdFixedBytes = 24;  // RFC 4861 §4.3, §4.4
constexpr uint32_t kAnnouncedPerTick = 16;
constexpr Tick kAnnounceInterval = 200;  // 2 s, RFC 5227 §1.1
constexpr uint32_t kAnnounceRounds = 2;

uint16_t icmp_bytes(const Parsed& p) { return static_cast<uint16_t>(p.ip_length - (p.l4_offset - p.l3_offset)); }

bool icmp_checksum_right(const Packet& packet, const Parsed& p) {
  const std::span<const uint8_t> message{packet.data + p.l4_offset, icmp_bytes(p)};
  const ChecksumSum start = p.is_v4 ? 0 : sum_pseudo_header(p.source, p.destination, p.protocol, icmp_bytes(p));
  return fold(sum_bytes(message, start)) == 0;
}

bool all_options_whole(std::span<const uint8_t> options) {
  while (!options.empty()) {
    if (options.size() < 2 || options[1] == 0 || options[1] * 8u > options.size()) return false;
    options = options.subspan(options[1] * 8u);
  }
  return true;
}

// The link-layer address option of this type, or zero (RFC 4861 §4.6.1). REQUIRES: all_options_whole.
MacAddress link_layer_option(std::span<const uint8_t> options, uint8_t type) {
  while (!options.empty()) {
    if (options[0] == type && options[1] == 1) return load_mac(options.data() + 2);
    options = options.subspan(options[1] * 8u);
  }
  return {};
}

std::span<const uint8_t> nd_options(const Packet& packet, const Parsed& p) {
  return {packet.data + p.l4_offset + kNdFixedBytes, static_cast<size_t>(icmp_bytes(p) - kNdFixedBytes)};
}

// Our address to ask from: the one on the target's network, else any of its family.
const IpAddress* own_address(const TablePort& port, const IpAddress& target) {
  const IpAddress* any = nullptr;
  for (const Prefix& prefix : port.addresses) {
    if (prefix.address.is_v4() != target.is_v4()) continue;
    if (prefix.contains(target)) return &prefix.address;
    if (any == nullptr) any = &prefix.address;
  }
  return any;
}

bool is_own(const SiteTable& table, const MacAddress& mac) {
  return std::any_of(table.ports.begin(), table.ports.end(), [&](const TablePort& port) { return port.mac == mac; });
}

}  // namespace

// A frame of our own to fill, or nullptr when there are too many.
Frame* FastPath::own_frame(Outcome outcome) {
  Frame* frame = outbox_.add();
  if (frame == nullptr) {
    counters_.drop(DropReason::kOutboxFull);
    return nullptr;
  }
  frame->outcome = outcome;
  frame->port = kNoPort;
  return frame;
}

[[gnu::cold, gnu::noinline]] void FastPath::local_packet(Context& c, uint32_t i, LocalKind kind) {
  const Parsed& p = parsed_[i];
  Outcome& outcome = c.burst.outcomes[i];
  if (p.layer == Layer::kIcmp) {
    if (!p.is_v4 && neighbour_discovery(c, i)) return;
    if (kind != LocalKind::kNone) return icmp_to_us(c, i, kind);
  }
  if (kind == LocalKind::kSci) {
    outcome = Outcome::drop(p.layer == Layer::kFragment    ? DropReason::kFragment
                            : p.layer == Layer::kExtension ? DropReason::kExtensionHeader
                            : p.layer == Layer::kIp        ? DropReason::kUnknownProtocol
                                                           : DropReason::kNoSuchService);
    return;
  }
  const DropReason unwanted = kind != LocalKind::kNone       ? DropReason::kNotForUs
                              : p.layer == Layer::kFragment  ? DropReason::kFragment
                              : p.layer == Layer::kExtension ? DropReason::kExtensionHeader
                                                             : DropReason::kNotForUs;
  to_kernel(c, i, unwanted);
}

void FastPath::icmp_to_us(Context& c, uint32_t i, LocalKind kind) {
  const Parsed& p = parsed_[i];
  Packet& packet = c.burst.packets[i];
  const uint8_t type = packet.data[p.l4_offset];
  if (type == (p.is_v4 ? kEchoRequest : kEchoRequestV6)) {
    if (!icmp_checksum_right(packet, p)) {
      c.burst.outcomes[i] = Outcome::drop(DropReason::kBadIcmp);
      return;
    }
    turn_into_echo_reply(packet, p, c.table.ports[packet.port]);
    c.burst.outcomes[i] = Outcome::transmit(packet.port);
  } else if (kind == LocalKind::kPort) {
    to_kernel(c, i, DropReason::kNotForUs);
  } else {
    c.burst.outcomes[i] = Outcome::drop(DropReason::kIcmpUnhandled);
  }
}

// What a neighbour said goes to the other workers and to the kernel, which has a table of its own.
void FastPath::heard(Context& c, uint32_t i, const IpAddress& address, const MacAddress& mac, bool replace) {
  const Packet& packet = c.burst.packets[i];
  neighbours_.learn(c.table, packet.port, address, mac, c.tick, replace);
  if (c.burst.handed_over || packet.length > Frame::kBytesMax) return;
  for (WorkerIndex w = 0; w < config_.workers; ++w) {
    if (w == config_.self) continue;
    Frame* frame = own_frame(Outcome::hand_over(w));
    if (frame == nullptr) return;
    std::memcpy(frame->bytes.data(), packet.data, packet.length);
    frame->length = packet.length;
    frame->port = packet.port;
  }
}

// RFC 826, with RFC 5227's view of what is a conflict.
[[gnu::cold, gnu::noinline]] void FastPath::arp(Context& c, uint32_t i) {
  const Packet& packet = c.burst.packets[i];
  const TablePort& port = c.table.ports[packet.port];
  Outcome& outcome = c.burst.outcomes[i];
  const uint8_t* arp = packet.data + parsed_[i].l3_offset;
  const bool request = load16(arp + 6) == to_wire16(1);
  const MacAddress sender_mac = load_mac(arp + 8);
  const IpAddress sender = load_ip(arp + 14, true), target = load_ip(arp + 24, true);
  outcome = Outcome::drop(DropReason::kBadArp);
  if (sender_mac.is_group() || sender_mac.is_zero() || sender_mac != load_mac(packet.data + 6)) return;
  if (is_own(c.table, sender_mac)) {  // our own frame has come back
    outcome = Outcome::consumed();
    return;
  }
  if (c.table.local(sender) != LocalKind::kNone) {
    if (c.table.answers_for(packet.port, sender)) conflict(c, i, sender, sender_mac);
    return;
  }
  outcome = Outcome::consumed();
  if (!sender.is_unspecified()) heard(c, i, sender, sender_mac, true);
  if (c.burst.handed_over) return;
  if (!request || !c.table.answers_for(packet.port, target)) {
    if (port.has_kernel) to_kernel(c, i, DropReason::kNotForUs);
    return;
  }
  Frame* frame = own_frame(Outcome::transmit(packet.port));
  if (frame != nullptr) make_arp(*frame, {true, port.mac, sender_mac, target, sender}, sender_mac, port);
}

// True when the packet was Neighbour Discovery that is dealt with here (the outcome is set). Validity checks of
// RFC 4861 §7.1.1 and §7.1.2.
bool FastPath::neighbour_discovery(Context& c, uint32_t i) {
  const Packet& packet = c.burst.packets[i];
  const Parsed& p = parsed_[i];
  const uint8_t* nd = packet.data + p.l4_offset;
  if (nd[0] != kSolicitation && nd[0] != kAdvertisement) return false;
  c.burst.outcomes[i] = Outcome::drop(DropReason::kBadNd);
  if (p.ttl != 255 || nd[1] != 0 || icmp_bytes(p) < kNdFixedBytes || !icmp_checksum_right(packet, p)) return true;
  const IpAddress target = load_ip(nd + 8, false);
  if (target.is_multicast() || !all_options_whole(nd_options(packet, p))) return true;
  if (nd[0] == kSolicitation) {
    solicitation(c, i, target);
  } else {
    advertisement(c, i, target);
  }
  return true;
}

void FastPath::solicitation(Context& c, uint32_t i, const IpAddress& target) {
  const Packet& packet = c.burst.packets[i];
  const Parsed& p = parsed_[i];
  const TablePort& port = c.table.ports[packet.port];
  const MacAddress source_mac = link_layer_option(nd_options(packet, p), 1);
  const bool probe = p.source.is_unspecified();  // duplicate address detection, RFC 4862 §5.4.3
  const auto& d = p.destination.bytes;
  const bool to_group = d[0] == 0xff && d[1] == 2 && d[11] == 1 && d[12] == 0xff;
  if (probe && (!source_mac.is_zero() || !to_group)) return;
  Outcome& outcome = c.burst.outcomes[i];
  outcome = Outcome::consumed();
  if (!probe && !source_mac.is_zero() && !source_mac.is_group()) heard(c, i, p.source, source_mac, true);
  if (c.burst.handed_over) return;
  if (!c.table.answers_for(packet.port, target)) {
    if (port.has_kernel) to_kernel(c, i, DropReason::kNotForUs);
    return;
  }
  Frame* frame = own_frame(Outcome::transmit(packet.port));
  if (frame == nullptr) return;
  if (probe) {
    make_advertisement(*frame, target, kAllNodes, kAllNodesMac, port);
  } else {
    const MacAddress to = source_mac.is_zero() ? load_mac(packet.data + 6) : source_mac;
    make_advertisement(*frame, target, p.source, to, port);
  }
}

void FastPath::advertisement(Context& c, uint32_t i, const IpAddress& target) {
  const Packet& packet = c.burst.packets[i];
  const Parsed& p = parsed_[i];
  const uint8_t flags = packet.data[p.l4_offset + 4];
  const bool solicited = (flags & 0x40) != 0, override = (flags & 0x20) != 0;
  if (p.destination.is_multicast() && solicited) return;
  const MacAddress mac = link_layer_option(nd_options(packet, p), 2);
  if (c.table.local(target) != LocalKind::kNone) {
    const MacAddress claimant = mac.is_zero() ? load_mac(packet.data + 6) : mac;
    if (c.table.answers_for(packet.port, target) && !is_own(c.table, claimant)) conflict(c, i, target, claimant);
    return;
  }
  c.burst.outcomes[i] = Outcome::consumed();
  if (!mac.is_zero() && !mac.is_group()) heard(c, i, target, mac, override);
  if (!c.burst.handed_over && c.table.ports[packet.port].has_kernel) to_kernel(c, i, DropReason::kNotForUs);
}

// Asks for a next hop by ARP or Neighbour Solicitation.
void FastPath::ask(const SiteTable& table, uint32_t neighbour) {
  const Neighbour& n = neighbours_.at(neighbour);
  const TablePort& port = table.ports[n.port];
  const IpAddress* own = own_address(port, n.address);
  if (own == nullptr) return;
  Frame* frame = own_frame(Outcome::transmit(n.port));
  if (frame == nullptr) return;
  if (n.address.is_v4()) {
    make_arp(*frame, {false, port.mac, {}, *own, n.address}, kBroadcastMac, port);
  } else {
    make_solicitation(*frame, *own, n.address, port);
  }
}

// Another host says that an address of ours is its own. One worker defends them all, so that the interval holds.
void FastPath::conflict(Context& c, uint32_t i, const IpAddress& address, const MacAddress& mac) {
  const PortIndex port = c.burst.packets[i].port;
  if (config_.self != kDefender && !c.burst.handed_over) {
    c.burst.outcomes[i] = Outcome::hand_over(kDefender);
    return;
  }
  c.burst.outcomes[i] = Outcome::drop(DropReason::kAddressConflict);
  if (config_.self == kDefender && defence_.claimed(port, address, mac, c.tick)) announce_one(c.table, port, address);
}

// ARP Announcement (RFC 5227 §2.3) or unsolicited advertisement (RFC 4861 §7.2.6). False: no room for it.
bool FastPath::announce_one(const SiteTable& table, PortIndex port_index, const IpAddress& address) {
  const TablePort& port = table.ports[port_index];
  Frame* frame = own_frame(Outcome::transmit(port_index));
  if (frame == nullptr) return false;
  if (address.is_v4()) {
    make_arp(*frame, {false, port.mac, {}, address, address}, kBroadcastMac, port);
  } else {
    make_advertisement(*frame, address, kAllNodes, kAllNodesMac, port);
  }
  return true;
}

// A few gratuitous announcements; two rounds, some seconds apart.
void FastPath::announce_some(const SiteTable& table, Tick now) {
  if (announce_round_ >= kAnnounceRounds) return;
  if (announce_round_ > 0 && announce_next_ == 0 && tick_after(announce_at_, now)) return;
  for (uint32_t n = 0; n < kAnnouncedPerTick && announce_next_ < table.layout().announced.size(); ++n) {
    const auto& [port, address] = table.layout().announced[announce_next_];
    if (!announce_one(table, port, address)) return;  // goes on with the next tick
    ++announce_next_;
  }
  if (announce_next_ < table.layout().announced.size()) return;
  ++announce_round_;
  announce_next_ = 0;
  announce_at_ = now + kAnnounceInterval;
}

}  // namespace margay::dp
