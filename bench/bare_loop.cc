// SPDX-License-Identifier: Apache-2.0

#include "bench/bare_loop.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "dataplane/core/wire.h"

namespace margay::bench {
namespace {

class FlowTableLookup : public Lookup {
 public:
  explicit FlowTableLookup(const Setup& setup)
      : secret_(bench_secret()), arena_(bytes_for(setup)), table_(arena_, setup.flows) {
    for (uint32_t flow = 0; flow < setup.flows; ++flow) {
      const dp::FlowKey key = client_of(setup.family, flow);
      const dp::EntryIndex e = table_.allocate();
      MARGAY_CHECK(e == flow);  // the value is the entry
      dp::FlowEntry& entry = table_[e];
      entry.client = key.client;
      entry.client_port = key.client_port;
      entry.protocol = key.protocol;
      entry.frontend = key.service;
      MARGAY_CHECK(table_.insert(e, key.direction, hash(key)));
    }
  }

  void find(std::span<const dp::FlowKey> keys, std::span<uint32_t> flows) const override {
    std::array<uint64_t, dp::kBurstMax> hashes;
    for (size_t i = 0; i < keys.size(); ++i) hashes[i] = hash(keys[i]);
    table_.find_bulk(keys, hashes, {}, flows);
  }

 private:
  static size_t bytes_for(const Setup& setup) {
    dp::Arena counting;
    dp::FlowTable counted(counting, setup.flows);
    return counting.used();
  }
  uint64_t hash(const dp::FlowKey& key) const {
    return hash_key(secret_, hash_client(secret_, key.client, key.client_port, key.protocol), key.direction,
                    key.service);
  }

  dp::HashSecret secret_;
  dp::TestArena arena_;
  dp::FlowTable table_;
};

class RteHashLookup : public Lookup {
 public:
  explicit RteHashLookup(const Setup& setup) : hash_(setup.flows) {
    for (uint32_t flow = 0; flow < setup.flows; ++flow) {
      MARGAY_CHECK(hash_.insert(client_of(setup.family, flow), flow));
    }
  }
  void find(std::span<const dp::FlowKey> keys, std::span<uint32_t> flows) const override {
    hash_.find_bulk(keys, flows);
  }

 private:
  PeerHash hash_;
};

constexpr size_t kEthernet = 14;

// RFC 1624, equation 3.
class Delta {
 public:
  // Writes kBytes over others, at most 16, an even number.
  template <size_t kBytes>
  void replace(uint8_t* at, const uint8_t* with) {
    for (size_t i = 0; i < kBytes; i += 2) {
      sum_ += static_cast<uint16_t>(~dp::load16(at + i)) + uint32_t{dp::load16(with + i)};
    }
    std::memcpy(at, with, kBytes);
  }
  void apply(uint8_t* checksum) const {
    uint64_t sum = sum_ + static_cast<uint16_t>(~dp::load16(checksum));
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    dp::store16(checksum, static_cast<uint16_t>(~sum));
  }

 private:
  uint64_t sum_ = 0;
};

void set_macs(dp::Packet& packet, const MacAddress& to) {
  std::memcpy(packet.data, to.bytes.data(), 6);
  std::memcpy(packet.data + 6, kInstanceSide.bytes.data(), 6);
}

constexpr std::array<uint8_t, 2> kPortBytes{kInstancePort >> 8, kInstancePort & 0xff};

}  // namespace

std::unique_ptr<Lookup> flow_table_lookup(const Setup& setup) { return std::make_unique<FlowTableLookup>(setup); }
std::unique_ptr<Lookup> rte_hash_lookup(const Setup& setup) { return std::make_unique<RteHashLookup>(setup); }

BareLoop::BareLoop(const Setup& setup, std::unique_ptr<Lookup> lookup)
    : setup_(setup), lookup_(std::move(lookup)), service_(service_address(setup.family)) {
  for (size_t i = 0; i < kInstances; ++i) {
    addresses_[i] = instance_address(setup.family, i);
    macs_[i] = instance_mac(i);
  }
}

bool BareLoop::parse(dp::Packet& packet, dp::FlowKey& key) const {
  const bool v4 = setup_.family == Family::kIpv4;
  const size_t header = v4 ? 20 : 40;
  const uint8_t* ip = packet.data + kEthernet;
  if (packet.length < kEthernet + header + 20) return false;
  if (v4) {
    const size_t length = from_wire16(dp::load16(ip + 2));
    if (dp::load16(packet.data + 12) != to_wire16(0x0800) || ip[0] != 0x45 || ip[9] != 6 || ip[8] <= 1 ||
        length < header + 20 || length > packet.length - kEthernet) {
      return false;
    }
    uint32_t source;
    std::memcpy(&source, ip + 12, 4);
    key.client = IpAddress::v4(source);
    if (std::memcmp(ip + 16, &service_.bytes[12], 4) != 0) return false;
  } else {
    const size_t length = from_wire16(dp::load16(ip + 4));
    if (dp::load16(packet.data + 12) != to_wire16(0x86dd) || ip[0] >> 4 != 6 || ip[6] != 6 || ip[7] <= 1 ||
        length < 20 || length + header > packet.length - kEthernet) {
      return false;
    }
    std::memcpy(key.client.bytes.data(), ip + 8, 16);
    if (std::memcmp(ip + 24, service_.bytes.data(), 16) != 0) return false;
  }
  key.client_port = dp::load16(ip + header);
  key.service = 0;
  return dp::load16(ip + header + 2) == to_wire16(kServicePort);
}

void BareLoop::rewrite_v4(dp::Packet& packet, size_t instance) const {
  uint8_t* ip = packet.data + kEthernet;
  uint8_t* tcp = ip + 20;
  set_macs(packet, macs_[instance]);
  Delta header;
  if (setup_.mode == dp::Mode::kNat) {
    header.replace<4>(ip + 16, &addresses_[instance].bytes[12]);
    Delta transport = header;
    transport.replace<2>(tcp + 2, kPortBytes.data());
    transport.apply(tcp + 16);
  }
  const std::array<uint8_t, 2> ttl{static_cast<uint8_t>(ip[8] - 1), ip[9]};
  header.replace<2>(ip + 8, ttl.data());
  header.apply(ip + 10);
}

void BareLoop::rewrite_v6(dp::Packet& packet, size_t instance) const {
  uint8_t* ip = packet.data + kEthernet;
  uint8_t* tcp = ip + 40;
  set_macs(packet, macs_[instance]);
  --ip[7];
  if (setup_.mode != dp::Mode::kNat) return;
  Delta transport;
  transport.replace<16>(ip + 24, addresses_[instance].bytes.data());
  transport.replace<2>(tcp + 2, kPortBytes.data());
  transport.apply(tcp + 16);
}

void BareLoop::process(const Frames& frames, size_t first, size_t count) {
  std::array<dp::FlowKey, dp::kBurstMax> keys;
  std::array<uint32_t, dp::kBurstMax> flows;
  for (const size_t end = first + count; first < end; first += dp::kBurstMax) {
    buffers_.receive(frames, first, std::min(dp::kBurstMax, end - first), 0, burst_);
    for (uint32_t i = 0; i < burst_.count; ++i) MARGAY_CHECK(parse(burst_.packets[i], keys[i]));
    lookup_->find({keys.data(), burst_.count}, {flows.data(), burst_.count});
    for (uint32_t i = 0; i < burst_.count; ++i) {
      MARGAY_CHECK(flows[i] != dp::kNoIndex);
      const size_t instance = flows[i] % kInstances;
      if (setup_.family == Family::kIpv4) {
        rewrite_v4(burst_.packets[i], instance);
      } else {
        rewrite_v6(burst_.packets[i], instance);
      }
    }
  }
}

}  // namespace margay::bench
