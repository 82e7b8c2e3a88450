// SPDX-License-Identifier: Apache-2.0

#include "bench/traffic.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "common/check.h"
#include "dataplane/core/checksum.h"
#include "tests/support/seed.h"

namespace margay::bench {
namespace {

constexpr uint64_t kSeed = 20'000;
constexpr size_t kEthernet = 14, kTcp = 20, kPayloadMax = 10;
constexpr size_t ip_header(Family family) { return family == Family::kIpv4 ? 20 : 40; }

void put16(uint8_t* at, uint16_t host_value) {
  const uint16_t v = to_wire16(host_value);
  std::memcpy(at, &v, sizeof v);
}
void put32(uint8_t* at, uint32_t host_value) {
  const uint32_t v = to_wire32(host_value);
  std::memcpy(at, &v, sizeof v);
}

IpAddress parse_ip(const char* text) { return IpAddress::parse(text).value(); }

dp::SiteConfig site_config(const Setup& setup) {
  const bool v4 = setup.family == Family::kIpv4;
  dp::SiteConfig site;
  dp::PortConfig clients, servers;
  clients.name = "clients";
  clients.addresses = {Prefix::parse(v4 ? "192.0.2.2/24" : "2001:db8::2/64").value()};
  clients.gateways = {parse_ip(v4 ? "192.0.2.1" : "2001:db8::1")};
  clients.neighbours = {{clients.gateways[0], kForwarder}};
  servers.name = "instances";
  servers.addresses = {Prefix::parse(v4 ? "10.1.0.2/24" : "2001:db8:1::2/64").value()};
  site.ports = {clients, servers};
  dp::ForwarderConfig forwarder;
  forwarder.port = 0;
  forwarder.mac = kForwarder;
  site.forwarders = {forwarder};
  dp::SciConfig sci;
  sci.endpoints = {{service_address(setup.family), kServicePort, Protocol::kTcp}};
  sci.csci_id = sci.endpoints[0].format();
  sci.cs_id = "bench";
  sci.mode = setup.mode;
  sci.balance = dp::Balance::kRoundRobin;
  sci.provisional_share = 1;
  for (size_t i = 0; i < kInstances; ++i) {
    dp::InstanceConfig instance;
    instance.id = "si-" + std::to_string(i);
    instance.address = instance_address(setup.family, i);
    instance.port = setup.mode == dp::Mode::kNat ? kInstancePort : kServicePort;
    instance.mac = instance_mac(i);
    instance.max_sessions = setup.flows;
    sci.instances.push_back(instance);
  }
  site.scis = {sci};
  return site;
}

std::unique_ptr<dp::SiteTable> site_table(const Setup& setup) {
  const std::array<MacAddress, 2> macs{kClientSide, kInstanceSide};
  return dp::SiteTable::build(site_config(setup), macs);
}

dp::FastPathConfig fast_path_config(const Setup& setup) {
  dp::FastPathConfig config;
  config.flows = setup.flows;
  config.secret = bench_secret();
  return config;
}

std::vector<uint32_t> random_order(uint32_t n) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  test::Random random(kSeed);
  for (uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace

IpAddress service_address(Family family) { return parse_ip(family == Family::kIpv4 ? "192.0.2.10" : "2001:db8::10"); }
IpAddress instance_address(Family family, size_t i) {
  IpAddress address = parse_ip(family == Family::kIpv4 ? "10.1.0.16" : "2001:db8:1::16");
  address.bytes[15] = static_cast<uint8_t>(address.bytes[15] + i);
  return address;
}
MacAddress instance_mac(size_t i) { return {{2, 0, 0, 1, 0, static_cast<uint8_t>(i)}}; }

dp::FlowKey client_of(Family family, uint32_t flow) {
  static const IpAddress v4 = parse_ip("100.64.0.0"), v6 = parse_ip("2001:db8:c::");
  dp::FlowKey key;
  key.client = family == Family::kIpv4 ? v4 : v6;
  const uint32_t number = flow / 16;
  for (size_t i = 0; i < 3; ++i) {  // below 2^22 clients: no carry beyond the last three bytes
    key.client.bytes[15 - i] = static_cast<uint8_t>(key.client.bytes[15 - i] + (number >> 8 * i & 0xff));
  }
  key.client_port = to_wire16(static_cast<uint16_t>(10'000 + flow % 16 * 1000));
  key.service = 0;
  return key;
}

dp::HashSecret bench_secret() {
  dp::HashSecret secret;
  test::Random random(kSeed);
  for (uint64_t& word : secret.words) word = random.next();
  return secret;
}

Frames::Frames(Family family, size_t count)
    : family_(family),
      count_(count),
      length_(static_cast<uint16_t>(family == Family::kIpv4 ? 64 : kEthernet + ip_header(family) + kTcp + kPayloadMax)),
      stride_(family == Family::kIpv4 ? 64 : 128),
      arena_(count * stride_) {
  bytes_ = arena_.make<uint8_t>(count * stride_);
}

void Frames::write_from_client(size_t i, uint32_t flow, const Segment& segment) {
  const dp::FlowKey client = client_of(family_, flow);
  write(i,
        {kForwarder, kClientSide, client.client, service_address(family_), client.client_port, to_wire16(kServicePort)},
        segment);
}

void Frames::write_from_instance(size_t i, uint32_t flow, size_t instance, uint16_t port, const Segment& segment) {
  const dp::FlowKey client = client_of(family_, flow);
  write(i,
        {instance_mac(instance), kInstanceSide, instance_address(family_, instance), client.client, to_wire16(port),
         client.client_port},
        segment);
}

void Frames::write(size_t i, const Ends& ends, const Segment& segment) {
  uint8_t* frame = bytes_.data() + i * stride_;
  const auto l4_length = static_cast<uint16_t>(kTcp + segment.payload);
  std::memset(frame, 0, stride_);
  std::memcpy(frame, ends.mac_to.bytes.data(), 6);
  std::memcpy(frame + 6, ends.mac_from.bytes.data(), 6);
  put16(frame + 12, family_ == Family::kIpv4 ? 0x0800 : 0x86dd);
  uint8_t* ip = frame + kEthernet;
  if (family_ == Family::kIpv4) {
    put16(ip, 0x4500);
    put16(ip + 2, static_cast<uint16_t>(20 + l4_length));
    ip[8] = 64;
    ip[9] = 6;
    std::memcpy(ip + 12, &ends.from.bytes[12], 4);
    std::memcpy(ip + 16, &ends.to.bytes[12], 4);
    const uint16_t checksum = dp::fold(dp::sum_bytes({ip, 20}));
    std::memcpy(ip + 10, &checksum, 2);
  } else {
    put32(ip, 0x6000'0000);
    put16(ip + 4, l4_length);
    ip[6] = 6;
    ip[7] = 64;
    std::memcpy(ip + 8, ends.from.bytes.data(), 16);
    std::memcpy(ip + 24, ends.to.bytes.data(), 16);
  }
  uint8_t* tcp = ip + ip_header(family_);
  std::memcpy(tcp, &ends.port_from, 2);
  std::memcpy(tcp + 2, &ends.port_to, 2);
  put32(tcp + 4, segment.sequence);
  put32(tcp + 8, segment.acknowledgement);
  tcp[12] = 5 << 4;
  tcp[13] = segment.flags;
  put16(tcp + 14, 65'535);
  const uint16_t checksum =
      dp::fold(dp::sum_bytes({tcp, l4_length}, dp::sum_pseudo_header(ends.from, ends.to, 6, l4_length)));
  std::memcpy(tcp + 16, &checksum, 2);
}

void Buffers::receive(const Frames& frames, size_t first, size_t count, dp::PortIndex port, dp::Burst& burst) {
  const uint16_t length = frames.length();
  burst.count = static_cast<uint32_t>(count);
  for (uint32_t i = 0; i < burst.count; ++i) {
    uint8_t* data = buffers_[next_++ % kCount].bytes.data() + kHeadroom;
    std::memcpy(data, frames[first + i], length);
    burst.packets[i] = {data, nullptr, length, kHeadroom, static_cast<uint16_t>(kBytes - kHeadroom - length), port};
  }
}

size_t Site::bytes_for(const Setup& setup) {
  dp::Arena counting;
  dp::SharedState shared(counting, 1, kInstances, 1);
  // Two cache lines an entry and an index that is at least 42 % full, the wheels, the neighbours.
  return counting.used() + size_t{setup.flows} * 256 + (size_t{64} << 20);
}

Site::Site(const Setup& setup)
    : setup_(setup), table_(site_table(setup)), arena_(bytes_for(setup)), shared_(arena_, 1, kInstances, 1) {
  shared_.open_instances(*table_);
  fast_path_ = std::make_unique<dp::FastPath>(fast_path_config(setup), shared_, arena_, now_);
}

void Site::process(const Frames& frames, size_t first, size_t count, dp::PortIndex port,
                   std::span<dp::InstanceIndex> instances) {
  for (const size_t end = first + count; first < end; first += dp::kBurstMax) {
    buffers_.receive(frames, first, std::min(dp::kBurstMax, end - first), port, burst_);
    now_ += 2000;
    fast_path_->process(burst_, *table_, now_);
    for (uint32_t i = 0; i < burst_.count; ++i) {
      MARGAY_CHECK(burst_.outcomes[i].verdict == dp::Verdict::kTransmit);
      if (!instances.empty()) instances[first + i] = fast_path_->trace(i).instance;
    }
  }
}

Frames Site::establish() {
  constexpr uint32_t kPart = 4096;
  const std::vector<uint32_t> order = random_order(setup_.flows);
  Frames acknowledgements(setup_.family, setup_.flows);
  for (uint32_t i = 0; i < setup_.flows; ++i) {
    acknowledgements.write_from_client(i, order[i], {dp::kAck, 1001, 5001});
  }
  for (uint32_t first = 0; first < setup_.flows; first += kPart) {
    const uint32_t n = std::min(kPart, setup_.flows - first);
    Frames part(setup_.family, n);
    std::vector<dp::InstanceIndex> instances(n);
    for (uint32_t i = 0; i < n; ++i) part.write_from_client(i, order[first + i], {dp::kSyn, 1000});
    process(part, 0, n, 0, instances);
    if (setup_.mode != dp::Mode::kNat) continue;
    for (uint32_t i = 0; i < n; ++i) {
      part.write_from_instance(i, order[first + i], instances[i], instance_port(), {dp::kSyn | dp::kAck, 5000, 1001});
    }
    process(part, 0, n, 1);
  }
  process(acknowledgements, 0, setup_.flows, 0);
  return acknowledgements;
}

}  // namespace margay::bench
