// SPDX-License-Identifier: Apache-2.0
#include "tests/support/packet_builder.h"

#include <algorithm>

#include "common/check.h"

namespace margay::test {
namespace {

void put8(Bytes& out, size_t v) { out.push_back(static_cast<uint8_t>(v)); }
void put16(Bytes& out, size_t v) {
  put8(out, v >> 8 & 0xff);
  put8(out, v & 0xff);
}
void put32(Bytes& out, uint32_t v) {
  put16(out, v >> 16);
  put16(out, v & 0xffff);
}
template <class Range>
void put(Bytes& out, const Range& bytes) {
  for (const uint8_t byte : bytes) out.push_back(byte);  // g++ 12 warns wrongly of vector::insert here at -O3
}
void put_address(Bytes& out, const IpAddress& a) {
  out.insert(out.end(), a.bytes.begin() + (a.is_v4() ? 12 : 0), a.bytes.end());
}
void set16(Bytes& out, size_t at, uint16_t v) {
  out[at] = static_cast<uint8_t>(v >> 8);
  out[at + 1] = static_cast<uint8_t>(v);
}
Bytes padded(Bytes bytes) {
  while (bytes.size() % 4 != 0) bytes.push_back(0);
  return bytes;
}

// "address", "address:port" or "[address]:port".
AddressPort endpoint(std::string_view text) {
  if (const auto both = AddressPort::parse(text)) return *both;
  return {ip(text), 0};
}

}  // namespace

MacAddress mac(std::string_view text) {
  const auto m = MacAddress::parse(text);
  MARGAY_CHECK(m);
  return *m;
}

IpAddress ip(std::string_view text) {
  const auto a = IpAddress::parse(text);
  MARGAY_CHECK(a);
  return *a;
}

Bytes text_bytes(std::string_view text) { return {text.begin(), text.end()}; }

std::string hex(const Bytes& bytes) {
  std::string out;
  char piece[32];
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 16 == 0) {
      std::snprintf(piece, sizeof piece, "%s%08zx ", i == 0 ? "" : "\n", i);
      out += piece;
    }
    std::snprintf(piece, sizeof piece, " %02x", bytes[i]);
    out += piece;
  }
  return out;
}

uint16_t rfc1071(const Bytes& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const uint32_t low = i + 1 < bytes.size() ? bytes[i + 1] : 0;
    sum += uint32_t{bytes[i]} << 8 | low;
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return static_cast<uint16_t>(~sum);
}

PacketBuilder PacketBuilder::start(Kind kind, std::string_view from, std::string_view to) {
  PacketBuilder b;
  b.kind_ = kind;
  b = b.from(from).to(to);
  MARGAY_CHECK(b.source_.is_v4() == b.destination_.is_v4());
  b.ethertype_ = b.is_v4() ? 0x0800 : 0x86dd;
  return b;
}

PacketBuilder PacketBuilder::raw(uint16_t ethertype, Bytes payload) {
  PacketBuilder b;
  b.ethertype_ = ethertype;
  b.payload_ = std::move(payload);
  return b;
}

PacketBuilder PacketBuilder::ether(const MacAddress& from, const MacAddress& to) const {
  return with([&](auto& b) { b.ether_from_ = from, b.ether_to_ = to; });
}
PacketBuilder PacketBuilder::ethertype(uint16_t v) const {
  return with([&](auto& b) { b.ethertype_ = v; });
}
PacketBuilder PacketBuilder::vlan(uint16_t tag_control, uint16_t tag_type) const {
  return with([&](auto& b) { b.tags_.emplace_back(tag_type, tag_control); });
}
PacketBuilder PacketBuilder::untagged() const {
  return with([&](auto& b) { b.tags_.clear(); });
}
PacketBuilder PacketBuilder::from(std::string_view text) const {
  const AddressPort e = endpoint(text);
  return with([&](auto& b) {
    b.source_ = e.address;
    if (e.port != 0) b.source_port_ = e.port;
  });
}
PacketBuilder PacketBuilder::to(std::string_view text) const {
  const AddressPort e = endpoint(text);
  return with([&](auto& b) {
    b.destination_ = e.address;
    if (e.port != 0) b.destination_port_ = e.port;
  });
}
PacketBuilder PacketBuilder::ttl(uint8_t v) const {
  return with([&](auto& b) { b.ttl_ = v; });
}
PacketBuilder PacketBuilder::tos(uint8_t v) const {
  return with([&](auto& b) { b.tos_ = v; });
}
PacketBuilder PacketBuilder::id(uint16_t v) const {
  return with([&](auto& b) { b.id_ = v; });
}
PacketBuilder PacketBuilder::fragment(uint16_t offset_units, bool more) const {
  return with([&](auto& b) {
    b.fragment_ = static_cast<uint16_t>(b.is_v4() ? offset_units | more << 13 : offset_units << 3 | more);
    b.fragment_header_ = !b.is_v4();
  });
}
PacketBuilder PacketBuilder::dont_fragment() const {
  return with([&](auto& b) { b.fragment_ = static_cast<uint16_t>(b.fragment_ | 0x4000); });
}
PacketBuilder PacketBuilder::ip_options(Bytes options) const {
  return with([&](auto& b) { b.ip_options_ = padded(std::move(options)); });
}
PacketBuilder PacketBuilder::extension(uint8_t type, Bytes body) const {
  return with([&](auto& b) { b.extensions_.emplace_back(type, std::move(body)); });
}
PacketBuilder PacketBuilder::protocol(uint8_t v) const {
  return with([&](auto& b) { b.protocol_ = v; });
}
PacketBuilder PacketBuilder::ip_version(uint8_t v) const {
  return with([&](auto& b) { b.ip_version_ = v; });
}
PacketBuilder PacketBuilder::ihl(uint8_t v) const {
  return with([&](auto& b) { b.ihl_ = v; });
}
PacketBuilder PacketBuilder::ip_length(uint16_t v) const {
  return with([&](auto& b) { b.ip_length_ = v; });
}
PacketBuilder PacketBuilder::ip_checksum(uint16_t v) const {
  return with([&](auto& b) { b.ip_checksum_ = v; });
}
PacketBuilder PacketBuilder::ports(uint16_t from, uint16_t to) const {
  return with([&](auto& b) { b.source_port_ = from, b.destination_port_ = to; });
}
PacketBuilder PacketBuilder::flags(unsigned v) const {
  return with([&](auto& b) { b.flags_ = static_cast<uint8_t>(v); });
}
PacketBuilder PacketBuilder::seq(uint32_t v) const {
  return with([&](auto& b) { b.seq_ = v; });
}
PacketBuilder PacketBuilder::ack(uint32_t v) const {
  return with([&](auto& b) { b.ack_ = v; });
}
PacketBuilder PacketBuilder::window(uint16_t v) const {
  return with([&](auto& b) { b.window_ = v; });
}
PacketBuilder PacketBuilder::tcp_options(Bytes options) const {
  return with([&](auto& b) { b.tcp_options_ = padded(std::move(options)); });
}
PacketBuilder PacketBuilder::data_offset(uint8_t words) const {
  return with([&](auto& b) { b.data_offset_ = words; });
}
PacketBuilder PacketBuilder::udp_length(uint16_t v) const {
  return with([&](auto& b) { b.udp_length_ = v; });
}
PacketBuilder PacketBuilder::l4_checksum(uint16_t v) const {
  return with([&](auto& b) { b.l4_checksum_ = v; });
}
PacketBuilder PacketBuilder::icmp_type(uint8_t type, uint8_t code) const {
  return with([&](auto& b) { b.icmp_type_ = type, b.icmp_code_ = code; });
}
PacketBuilder PacketBuilder::icmp_rest(uint32_t v) const {
  return with([&](auto& b) { b.icmp_rest_ = v; });
}
PacketBuilder PacketBuilder::payload(Bytes bytes) const {
  return with([&](auto& b) { b.payload_ = std::move(bytes); });
}
PacketBuilder PacketBuilder::payload_size(size_t n) const {
  Bytes bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(i);
  return payload(std::move(bytes));
}
namespace {
// The word to put where 0 gave the checksum `with_zero`, so that it becomes `wanted`: ~wanted - ~with_zero.
uint16_t word_for(uint16_t with_zero, uint16_t wanted) {
  const uint32_t w = uint32_t{with_zero} + static_cast<uint16_t>(~wanted);
  return static_cast<uint16_t>((w & 0xffff) + (w >> 16));
}
}  // namespace
PacketBuilder PacketBuilder::payload_for_checksum(uint16_t wanted) const {
  PacketBuilder b = *this;
  b.payload_.insert(b.payload_.begin(), {0, 0});
  set16(b.payload_, 0, word_for(b.computed_l4_checksum(), wanted));
  return b;
}
PacketBuilder PacketBuilder::id_for_ip_checksum(uint16_t wanted) const {
  const Bytes packet = id(0).ip_packet();
  return id(word_for(static_cast<uint16_t>(packet[10] << 8 | packet[11]), wanted));
}
PacketBuilder PacketBuilder::l2_at(size_t offset, Bytes bytes) const {
  return with([&](auto& b) { b.patches_.push_back({2, offset, std::move(bytes)}); });
}
PacketBuilder PacketBuilder::l3_at(size_t offset, Bytes bytes) const {
  return with([&](auto& b) { b.patches_.push_back({3, offset, std::move(bytes)}); });
}
PacketBuilder PacketBuilder::l4_at(size_t offset, Bytes bytes) const {
  return with([&](auto& b) { b.patches_.push_back({4, offset, std::move(bytes)}); });
}
PacketBuilder PacketBuilder::truncate(size_t length) const {
  return with([&](auto& b) { b.truncate_ = length; });
}
PacketBuilder PacketBuilder::pad(size_t length) const {
  return with([&](auto& b) { b.pad_ = length; });
}

uint8_t PacketBuilder::transport() const {
  switch (kind_) {
    case Kind::kTcp:
      return 6;
    case Kind::kUdp:
      return 17;
    case Kind::kIcmp:
      return icmp_protocol();
    case Kind::kRaw:
      return 59;
  }
  return 59;
}

// With 0 for the checksum.
Bytes PacketBuilder::transport_header() const {
  Bytes h;
  if (kind_ == Kind::kTcp) {
    put16(h, source_port_), put16(h, destination_port_), put32(h, seq_), put32(h, ack_);
    put8(h, size_t{data_offset_.value_or(static_cast<uint8_t>(5 + tcp_options_.size() / 4))} << 4);
    put8(h, flags_), put16(h, window_), put16(h, 0), put16(h, 0);
    put(h, tcp_options_);
  } else if (kind_ == Kind::kUdp) {
    put16(h, source_port_), put16(h, destination_port_);
    put16(h, udp_length_.value_or(static_cast<uint16_t>(8 + payload_.size()))), put16(h, 0);
  } else if (kind_ == Kind::kIcmp) {
    put8(h, icmp_type_), put8(h, icmp_code_), put16(h, 0), put32(h, icmp_rest_);
  }
  return h;
}

uint16_t PacketBuilder::computed_l4_checksum() const {
  Bytes segment = transport_header();
  put(segment, payload_);
  Bytes summed;
  if (kind_ != Kind::kIcmp || !is_v4()) {  // pseudo-header: RFC 9293 §3.1, RFC 768, RFC 8200 §8.1, RFC 4443 §2.3
    put_address(summed, source_), put_address(summed, destination_);
    if (is_v4()) {
      put8(summed, 0), put8(summed, transport()), put16(summed, segment.size());
    } else {
      put32(summed, static_cast<uint32_t>(segment.size())), put32(summed, transport());
    }
  }
  put(summed, segment);
  return rfc1071(summed);
}

Bytes PacketBuilder::transport_bytes() const {
  if (kind_ == Kind::kRaw) return payload_;
  Bytes segment = transport_header();
  put(segment, payload_);
  uint16_t checksum = computed_l4_checksum();
  if (kind_ == Kind::kUdp && checksum == 0) checksum = 0xffff;  // RFC 768: 0 would mean none sent
  const size_t at = kind_ == Kind::kTcp ? 16 : kind_ == Kind::kUdp ? 6 : 2;
  set16(segment, at, l4_checksum_.value_or(checksum));
  return segment;
}

// Each header names the next; `last` is the transport.
Bytes PacketBuilder::extensions_bytes(uint8_t last) const {
  Bytes out;
  for (size_t i = 0; i < extensions_.size(); ++i) {
    const bool more = i + 1 < extensions_.size();
    put8(out, more ? extensions_[i + 1].first : fragment_header_ ? 44 : last);
    put8(out, (extensions_[i].second.size() + 2) / 8 - 1);
    put(out, extensions_[i].second);
  }
  if (fragment_header_) put8(out, last), put8(out, 0), put16(out, fragment_), put32(out, id_);
  return out;
}

Bytes PacketBuilder::ipv4_header(size_t payload) const {
  const size_t bytes = 20 + ip_options_.size();
  Bytes h;
  put8(h, size_t{ip_version_.value_or(4)} << 4 | ihl_.value_or(static_cast<uint8_t>(bytes / 4)));
  put8(h, tos_), put16(h, ip_length_.value_or(static_cast<uint16_t>(bytes + payload)));
  put16(h, id_), put16(h, fragment_), put8(h, ttl_), put8(h, protocol_.value_or(transport())), put16(h, 0);
  put_address(h, source_), put_address(h, destination_), put(h, ip_options_);
  set16(h, 10, ip_checksum_.value_or(rfc1071(h)));
  return h;
}

Bytes PacketBuilder::ipv6_header(size_t payload) const {
  const Bytes extensions = extensions_bytes(protocol_.value_or(transport()));
  const uint8_t first = !extensions_.empty() ? extensions_[0].first
                        : fragment_header_   ? uint8_t{44}
                                             : protocol_.value_or(transport());
  Bytes h;
  put32(h, uint32_t{ip_version_.value_or(6)} << 28 | uint32_t{tos_} << 20);
  put16(h, ip_length_.value_or(static_cast<uint16_t>(extensions.size() + payload)));
  put8(h, first), put8(h, ttl_), put_address(h, source_), put_address(h, destination_), put(h, extensions);
  return h;
}

Bytes PacketBuilder::ip_bytes() const {
  if (ethertype_ != 0x0800 && ethertype_ != 0x86dd && kind_ == Kind::kRaw) return payload_;
  const Bytes segment = transport_bytes();
  Bytes out = is_v4() ? ipv4_header(segment.size()) : ipv6_header(segment.size());
  put(out, segment);
  return out;
}

Bytes PacketBuilder::ip_packet() const {
  const Bytes frame = build();
  return {frame.begin() + static_cast<ptrdiff_t>(l3_offset()), frame.end()};
}

size_t PacketBuilder::l4_offset() const {
  return l3_offset() + (is_v4() ? 20 + ip_options_.size() : 40 + extensions_bytes(0).size());
}

Bytes PacketBuilder::build() const {
  Bytes frame;
  put(frame, ether_to_.bytes), put(frame, ether_from_.bytes);
  for (const auto& [type, control] : tags_) put16(frame, type), put16(frame, control);
  put16(frame, ethertype_);
  put(frame, ip_bytes());
  for (const Patch& p : patches_) {
    const size_t start = p.layer == 2 ? 0 : p.layer == 3 ? l3_offset() : l4_offset();
    MARGAY_CHECK(start + p.offset + p.bytes.size() <= frame.size());
    std::copy(p.bytes.begin(), p.bytes.end(), frame.begin() + static_cast<ptrdiff_t>(start + p.offset));
  }
  if (truncate_) frame.resize(std::min(frame.size(), *truncate_));
  frame.resize(std::max(frame.size(), pad_));
  return frame;
}

PacketBuilder tcp(std::string_view from, std::string_view to) {
  return PacketBuilder::start(PacketBuilder::Kind::kTcp, from, to);
}
PacketBuilder udp(std::string_view from, std::string_view to) {
  return PacketBuilder::start(PacketBuilder::Kind::kUdp, from, to);
}
PacketBuilder icmp(std::string_view from, std::string_view to, uint8_t type, uint8_t code) {
  return PacketBuilder::start(PacketBuilder::Kind::kIcmp, from, to).icmp_type(type, code);
}
PacketBuilder echo_request(std::string_view from, std::string_view to, uint16_t id, uint16_t sequence) {
  const uint8_t type = ip(from).is_v4() ? 8 : 128;
  return icmp(from, to, type, 0).icmp_rest(uint32_t{id} << 16 | sequence).payload("0123456789abcdef");
}
PacketBuilder echo_reply(std::string_view from, std::string_view to, uint16_t id, uint16_t sequence) {
  return echo_request(from, to, id, sequence).icmp_type(ip(from).is_v4() ? 0 : 129, 0);
}

}  // namespace margay::test
