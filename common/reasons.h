// SPDX-License-Identifier: Apache-2.0
#pragma once

// Why packets are dropped or refused and bindings end, as the data plane counts it and both planes name it.
//
// A refused packet is counted once: by its Refusal when it was turned into the answer and goes back (it is transmitted,
// no drop), by its DropReason when there is no answer to it (reject_rate_limited, unknown_flow_rate_limited,
// no_headroom, or unknown_flow and instance_gone where nobody is to be answered).

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace margay {

// Name, and what it means to an operator (shown by `show drops`).
#define MARGAY_DROP_REASONS(X)                                                                                        \
  X(kNone, "none", "not dropped")                                                                                     \
  X(kTooShort, "too_short", "frame ends before its headers do")                                                       \
  X(kBadLength, "bad_length", "a length field contradicts the frame or another length field")                         \
  X(kMultiSegment, "multi_segment", "frame does not fit one buffer")                                                  \
  X(kNotOurMac, "not_our_mac", "destination MAC is neither the port's nor a group")                                   \
  X(kVlanMismatch, "vlan_mismatch", "VLAN tag is not the port's")                                                     \
  X(kUnknownEthertype, "unknown_ethertype", "neither IPv4, IPv6 nor ARP, and no kernel interface")                    \
  X(kBadVersion, "bad_ip_version", "IP version contradicts the EtherType")                                            \
  X(kBadHeaderChecksum, "bad_ipv4_checksum", "IPv4 header checksum is wrong")                                         \
  X(kBadAddress, "bad_address", "source or destination that no unicast packet may carry")                             \
  X(kFragment, "fragment", "IP fragment towards an SCI or from an instance")                                          \
  X(kExtensionHeader, "ipv6_extension_header", "IPv6 extension header towards an SCI or from an instance")            \
  X(kUnknownProtocol, "unknown_protocol", "neither TCP, UDP nor ICMP, to an SCI's address")                           \
  X(kBadTcpHeader, "bad_tcp_header", "TCP data offset outside the packet or below 5")                                 \
  X(kBadTcpFlags, "bad_tcp_flags", "TCP flags that no correct peer sends together")                                   \
  X(kBadUdpLength, "bad_udp_length", "UDP length below 8 or beyond the packet")                                       \
  X(kBadPort, "bad_port", "TCP or UDP port 0")                                                                        \
  X(kBadIcmp, "bad_icmp", "ICMP too short or with a wrong checksum")                                                  \
  X(kIcmpUnhandled, "icmp_unhandled", "ICMP to an SCI's address other than an echo request")                          \
  X(kBadArp, "bad_arp", "ARP packet that is malformed or lies about its sender")                                      \
  X(kAddressConflict, "address_conflict", "ARP or ND: another host claims an address of ours")                        \
  X(kBadNd, "bad_nd", "Neighbour Discovery packet that RFC 4861 tells to ignore")                                     \
  X(kUnauthorisedForwarder, "unauthorised_forwarder", "client packet not from a listed forwarder")                    \
  X(kNoSuchService, "no_such_service", "an SCI's address, but no SCI on that port and protocol")                      \
  X(kNotForUs, "not_for_us", "no SCI, no instance and no kernel interface wants it")                                  \
  X(kInstanceWrongPort, "instance_wrong_port", "instance's source address on a port that is not its")                 \
  X(kStrayFromInstance, "stray_from_instance", "from an instance, but no binding matches")                            \
  X(kUnknownFlow, "unknown_flow", "TCP in mid-flow without a binding, policy drop")                                   \
  X(kUnknownFlowRateLimited, "unknown_flow_rate_limited", "TCP in mid-flow without a binding, beyond the reset rate") \
  X(kRejectRateLimited, "reject_rate_limited", "to be refused, beyond the rate of ICMP errors")                       \
  X(kInstanceGone, "instance_gone", "the bound instance may not be used any more")                                    \
  X(kTtlExceeded, "ttl_exceeded", "TTL or hop limit ran out")                                                         \
  X(kNoRoute, "no_route", "destination is on no port's network and there is no gateway")                              \
  X(kNeighbourQueueFull, "neighbour_queue_full", "too many packets wait for this next hop")                           \
  X(kNeighbourTableFull, "neighbour_table_full", "no room for another next hop")                                      \
  X(kNeighbourUnresolved, "neighbour_unresolved", "the next hop does not answer ARP or ND")                           \
  X(kNoHeadroom, "no_headroom", "no room in the buffer for the header to be added")                                   \
  X(kTooBig, "too_big", "longer than the MTU of the port it has to leave by")                                         \
  X(kHandOverFull, "hand_over_full", "the owning worker's ring is full")                                              \
  X(kTransmitFull, "transmit_full", "the port took no more packets")                                                  \
  X(kLinkDown, "link_down", "the link of the port it has to leave by is down")                                        \
  X(kKernelFull, "kernel_full", "the kernel interface took no more packets")                                          \
  X(kNoBuffer, "no_buffer", "no packet buffer left for a packet of our own")                                          \
  X(kOutboxFull, "outbox_full", "too many packets of our own in one burst")                                           \
  X(kStopped, "stopped", "forwarding is stopped by command")

enum class DropReason : uint8_t {
#define X(name, text, meaning) name,
  MARGAY_DROP_REASONS(X)
#undef X
};
inline constexpr size_t kDropReasons = 0
#define X(name, text, meaning) +1
    MARGAY_DROP_REASONS(X)
#undef X
    ;

// Why a client's packet got a reset or an ICMP error instead of a session. Of the causes of several instances the last
// in this list is told: it came nearest to a session.
#define MARGAY_REFUSALS(X)                                                                                            \
  X(kNone, "none", "not refused")                                                                                     \
  X(kNoSnapshot, "no_snapshot", "the control plane has not said yet which instances are healthy")                     \
  X(kNoHealthyInstance, "no_healthy_instance", "no instance may take a new flow")                                     \
  X(kNoFreeSlot, "no_free_slot", "instances are there, all are full")                                                 \
  X(kProvisionalSpent, "provisional_spent", "slots are free, but unproven flows hold their whole share of them")      \
  X(kEndpointConflict, "endpoint_conflict", "the reply direction of this flow already belongs to another SCI's flow") \
  X(kFlowTableFull, "flow_table_full", "no entry left, and none that may give way")                                   \
  X(kUnknownFlow, "unknown_flow", "TCP in mid-flow without a binding, policy reset")                                  \
  X(kInstanceGone, "instance_gone", "the bound instance may not be used any more")                                    \
  X(kTooBig, "too_big", "longer than what reaches the instance; told to the client with the MTU")

enum class Refusal : uint8_t {
#define X(name, text, meaning) name,
  MARGAY_REFUSALS(X)
#undef X
};
inline constexpr size_t kRefusals = 0
#define X(name, text, meaning) +1
    MARGAY_REFUSALS(X)
#undef X
    ;

struct ReasonText {
  std::string_view name;
  std::string_view meaning;
};
inline constexpr std::array<ReasonText, kRefusals> kRefusalTexts{{
#define X(name, text, meaning) {text, meaning},
    MARGAY_REFUSALS(X)
#undef X
}};
constexpr const ReasonText& text_of(Refusal r) { return kRefusalTexts[static_cast<size_t>(r)]; }

inline constexpr std::array<ReasonText, kDropReasons> kDropReasonTexts{{
#define X(name, text, meaning) {text, meaning},
    MARGAY_DROP_REASONS(X)
#undef X
}};
constexpr const ReasonText& text_of(DropReason r) { return kDropReasonTexts[static_cast<size_t>(r)]; }

// Why a binding ended; the slot, if still held, was released with it.
#define MARGAY_END_REASONS(X) \
  X(kFin, "fin")              \
  X(kReset, "reset")          \
  X(kTimeout, "timeout")      \
  X(kEvicted, "evicted")      \
  X(kDrained, "drained")      \
  X(kDisabled, "disabled")    \
  X(kUnhealthy, "unhealthy")  \
  X(kReplaced, "replaced")

enum class EndReason : uint8_t {
#define X(name, text) name,
  MARGAY_END_REASONS(X)
#undef X
};
inline constexpr size_t kEndReasons = 8;
constexpr std::string_view name_of(EndReason r) {  // "fin"
  constexpr std::array<std::string_view, kEndReasons> kNames{
#define X(name, text) text,
      MARGAY_END_REASONS(X)
#undef X
  };
  return kNames[static_cast<size_t>(r)];
}

}  // namespace margay
