// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of tests/fuzz/corpus/parse, .../fast_path and .../snapshot: make_corpus DIRECTORY.
// Run by hand when the inputs' format changes; the files are part of the repository.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "common/shared_table/snapshot.h"
#include "tests/packet/fixture.h"
#include "tests/support/kept_site.h"

namespace margay::test {
namespace {

void write(const std::filesystem::path& file, const Bytes& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// The first byte says that checksums are mended.
Bytes for_parser(const PacketBuilder& packet) {
  Bytes bytes = packet.build();
  bytes.insert(bytes.begin(), 1);
  return bytes;
}

void add(Bytes& history, unsigned what, const PacketBuilder& packet) {
  const Bytes frame = packet.build();
  history.push_back(static_cast<uint8_t>(what | 0x20));
  history.push_back(static_cast<uint8_t>(frame.size()));
  history.push_back(static_cast<uint8_t>(frame.size() >> 8));
  history.insert(history.end(), frame.begin(), frame.end());
}
void pass(Bytes& history, unsigned ticks) {
  history.insert(history.end(), {2, static_cast<uint8_t>(ticks), static_cast<uint8_t>(ticks >> 8)});
}
void change(Bytes& history, unsigned what) { history.insert(history.end(), {3, static_cast<uint8_t>(what)}); }

constexpr unsigned kPort1In = 4, kOther = 8, kMore = 16;  // bits of a packet's record

const char* const kClient = "198.51.100.7:40000";

PacketBuilder client(unsigned flags, uint32_t seq, uint32_t ack) {
  return from_router(tcp(kClient, "192.0.2.10:80").flags(flags).seq(seq).ack(ack));
}
PacketBuilder instance(unsigned flags, uint32_t seq, uint32_t ack) {
  return from_instance(tcp("10.1.0.11:8080", kClient).flags(flags).seq(seq).ack(ack)).vlan(100);
}

Bytes connection() {
  Bytes h;
  add(h, 0, client(kSyn, 1000, 0));
  add(h, kPort1In, instance(kSyn | kAck, 5000, 1001));
  add(h, kOther, client(kAck, 1001, 5001));
  add(h, kOther | kMore, client(kAck | kPsh, 1001, 5001).payload("GET /"));
  add(h, kOther, client(kFin | kAck, 1006, 5001));
  add(h, kPort1In, instance(kFin | kAck, 5001, 1007));
  add(h, 0, client(kAck, 1007, 5002));
  pass(h, 100);
  add(h, 0, client(kSyn, 900'000, 0));
  add(h, kPort1In, instance(kRst | kAck, 0, 900'001));
  return h;
}

Bytes datagrams() {
  Bytes h;
  for (uint16_t n = 0; n < 8; ++n) {
    add(h, n % 2 == 0 ? kMore : 0,
        from_router(udp(kClient, "192.0.2.10:53")).ports(static_cast<uint16_t>(40000 + n), 53).payload("query"));
  }
  add(h, kPort1In, from_instance(udp("10.1.0.11:5353", kClient)).vlan(100).payload("answer"));
  add(h, 0, from_router(udp("[2001:db8:99::7]:40000", "[2001:db8::10]:53")).payload("query"));
  pass(h, 600);
  return h;
}

Bytes neighbours() {
  Bytes h;
  pass(h, 10);
  add(h, 0, arp_request(kStranger, "192.0.2.77", "192.0.2.2"));
  add(h, kPort1In, arp_reply(kInstance2, "10.1.0.12", kPort1, "10.1.0.2").vlan(100));
  add(h, 0, neighbour_solicitation(kStranger, "2001:db8::77", "2001:db8::2", kStranger));
  add(h, kPort1In | kOther,
      neighbour_advertisement(kInstance2, "2001:db8:1::12", "2001:db8:1::2", "2001:db8:1::12", kSolicited, kInstance2)
          .ether(kInstance2, kPort1)
          .vlan(100));
  add(h, 0, echo_request("198.51.100.7", "192.0.2.10", 1, 1).ether(kRouter, kPort0));
  add(h, kOther, echo_request("2001:db8:99::7", "2001:db8::2", 1, 1).ether(kRouter, kPort0));
  add(h, kPort1In | 0x40, echo_reply("10.1.0.2", "10.1.0.11", 1, 1).ether(kPort1, kInstance1));
  return h;
}

Bytes changes() {
  Bytes h;
  for (uint16_t n = 0; n < 12; ++n) {
    add(h, kMore, client(kSyn, 1000, 0).ports(static_cast<uint16_t>(50000 + n), 80));
  }
  add(h, 0, from_router(tcp(kClient, "192.0.2.20:80")).flags(kSyn));
  change(h, 2 << 3);  // unhealthy
  add(h, 0, client(kSyn, 1000, 0));
  change(h, 5 << 3 | 1);  // draining
  pass(h, 300);
  change(h, 7 << 3 | 2 << 6);  // two slots
  add(h, 0, client(kAck, 1, 1));
  change(h, 0);       // healthy
  change(h, 6 << 3);  // stopped
  add(h, 0, client(kSyn, 1000, 0));
  return h;
}

Bytes tunnels() {
  Bytes h;
  for (const char* sci : {"192.0.2.21:80", "192.0.2.22:80"}) {
    const auto open = from_router(tcp(kClient, sci)).flags(kSyn).seq(1000);
    for (uint16_t n = 0; n < 6; ++n) {
      add(h, kMore, open.ports(static_cast<uint16_t>(50000 + n), 80).tcp_options({1, 2, 4, 5, 0xb4}));
    }
    add(h, 0, open.flags(kAck).seq(1001).ack(1).ports(50000, 80).payload_size(1460));
    add(h, kOther, open.flags(kFin | kAck).seq(1001).ack(1).ports(50000, 80));
  }
  add(h, kPort1In, arp_reply(kInstance2, "10.1.0.11", kPort1, "10.1.0.2").vlan(100));
  pass(h, 600);
  return h;
}

std::vector<PacketBuilder> frames() {
  const auto open = tcp(kClient, "192.0.2.10:80").flags(kSyn);
  const auto open6 = tcp("[2001:db8:99::7]:40000", "[2001:db8::10]:80").flags(kSyn);
  return {open.tcp_options({2, 4, 5, 0xb4}),
          open6,
          open.vlan(100).ip_options(Bytes(8, 1)),
          udp(kClient, "192.0.2.10:53").payload("query"),
          udp("[2001:db8:99::7]:40000", "[2001:db8::10]:53").payload("query"),
          udp(kClient, "192.0.2.10:53").fragment(1, true),
          open6.fragment(0, true),
          open6.extension(0, Bytes(6)),
          echo_request("198.51.100.7", "192.0.2.10", 1, 1),
          echo_request("2001:db8:99::7", "2001:db8::10", 1, 1),
          arp_request(kStranger, "192.0.2.77", "192.0.2.2"),
          neighbour_solicitation(kStranger, "2001:db8::77", "2001:db8::2", kStranger)};
}

// Two SCIs of three instances each.
Bytes snapshot() {
  shared_table::Snapshot s;
  s.generation = 2;
  for (uint32_t k = 0; k < 2; ++k) {
    shared_table::SciRecord& sci = s.scis.emplace_back();
    sci.index = k;
    sci.policy.csci_id = "192.0.2.1" + std::to_string(k) + ":80";
    sci.policy.cs_id = "ARS";
    sci.policy.endpoints = {{*IpAddress::parse("192.0.2.1" + std::to_string(k)), 80, Protocol::kTcp}};
    for (uint32_t i = 3 * k; i < 3 * k + 3; ++i) {
      shared_table::InstanceRecord& instance = sci.instances.emplace_back();
      instance.index = i;
      instance.limit = 50;
      instance.config.id = "si-" + std::to_string(i);
      instance.config.address = *IpAddress::parse("10.1.0.1" + std::to_string(i));
      instance.config.port = 8080;
      instance.config.max_sessions = 100;
    }
  }
  Bytes bytes;
  for (const std::byte b : shared_table::encode(s)) bytes.push_back(std::to_integer<uint8_t>(b));
  return bytes;
}

Bytes behind(Bytes first, std::span<const std::byte> rest) {
  for (const std::byte b : rest) first.push_back(std::to_integer<uint8_t>(b));
  return first;
}

// As bindings_fuzz.cc reads them: a whole image, a saved table, and the bindings of five clients.
std::map<std::string, Bytes> bindings() {
  const dp::ImageShape shape{1, 4, 1024};
  PageBytes whole(shape.bytes());
  dp::BindingsImage image(whole.span(), shape, kBootId, SmallSite::secret(), 1);
  SmallSite site(short_lived_site(10));
  MARGAY_CHECK(image.save(*site.table));
  image.finish();
  uint64_t table_bytes = 0;
  std::memcpy(&table_bytes, whole.span().data() + 4096, sizeof table_bytes);
  KeptSite kept(short_lived_site(10), 2, 32);
  for (unsigned n = 1; n <= 5; ++n) {
    const std::string client = "198.51.100." + std::to_string(n) + ":40000";
    kept->send(0, tcp(client, "192.0.2.10:80").flags(kSyn).seq(1000).ether(kSiteRouter, kSitePort0));
  }
  return {{"image", behind({0, 0}, whole.span())},
          {"table", behind({1, 0}, whole.span().subspan(4112, table_bytes))},
          {"entries", behind({2, 2}, std::as_bytes(kept.entries(0)))}};
}

}  // namespace
}  // namespace margay::test

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const std::filesystem::path root = argv[1];
  int n = 0;
  for (const auto& frame : margay::test::frames()) {
    margay::test::write(root / "parse" / ("frame-" + std::to_string(n++)), margay::test::for_parser(frame));
  }
  margay::test::write(root / "fast_path" / "connection", margay::test::connection());
  margay::test::write(root / "fast_path" / "datagrams", margay::test::datagrams());
  margay::test::write(root / "fast_path" / "neighbours", margay::test::neighbours());
  margay::test::write(root / "fast_path" / "changes", margay::test::changes());
  margay::test::write(root / "fast_path" / "tunnels", margay::test::tunnels());
  margay::test::write(root / "snapshot" / "two-scis", margay::test::snapshot());
  for (const auto& [name, left] : margay::test::bindings()) margay::test::write(root / "bindings" / name, left);
  return 0;
}
