// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/replay_io.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataplane/core/checksum.h"
#include "dataplane/core/parse.h"

namespace margay::dp {
namespace {

constexpr uint8_t kAddressMarkV4 = 0x04, kAddressMarkV6 = 0x06;

class Fnv1a {
 public:
  void add(const void* bytes, size_t n) {
    const auto* at = static_cast<const uint8_t*>(bytes);
    for (size_t i = 0; i < n; ++i) hash_ = (hash_ ^ at[i]) * 0x100000001b3u;
  }
  uint32_t fold() const { return static_cast<uint32_t>(hash_ ^ (hash_ >> 32)); }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

bool is_arp_request(std::span<const uint8_t> l3) {
  return l3.size() >= 28 && l3[6] == 0 && l3[7] == 1 && std::memcmp(&l3[14], &l3[24], 4) != 0;  // not gratuitous
}

bool is_solicitation(std::span<const uint8_t> frame, const Parsed& p) {
  return p.layer == Layer::kIcmp && !p.is_v4 && frame[p.l4_offset] == 135 && frame.size() >= p.l4_offset + 24u;
}

// Turns a request into its reply (RFC 826).
void write_arp_reply(std::span<uint8_t> l3, const MacAddress& mac) {
  std::array<uint8_t, 10> asker;
  std::copy_n(&l3[8], 10, asker.data());
  l3[7] = 2;
  std::copy_n(mac.bytes.data(), 6, &l3[8]);
  std::copy_n(&l3[24], 4, &l3[14]);
  std::copy_n(asker.data(), 10, &l3[18]);
}

// Turns a solicitation of at least an option's length into a solicited advertisement (RFC 4861 §4.4).
void write_advertisement(std::span<uint8_t> l3, const IpAddress& asker, const IpAddress& target,
                         const MacAddress& mac) {
  constexpr uint16_t kMessage = 32;  // with the option that holds the MAC
  const uint16_t wire_length = to_wire16(kMessage);
  std::memcpy(&l3[4], &wire_length, 2);
  std::copy_n(target.bytes.data(), 16, &l3[8]);
  std::copy_n(asker.bytes.data(), 16, &l3[24]);
  const std::span<uint8_t> icmp = l3.subspan(40, kMessage);
  std::fill(icmp.begin(), icmp.begin() + 8, uint8_t{0});
  icmp[0] = 136;
  icmp[4] = 0x60;  // solicited, override
  icmp[24] = 2;    // target link-layer address, one unit of eight bytes
  icmp[25] = 1;
  std::copy_n(mac.bytes.data(), 6, &icmp[26]);
  const uint16_t sum =
      fold(sum_bytes(icmp, sum_pseudo_header(target, asker, static_cast<uint8_t>(Protocol::kIcmpv6), kMessage)));
  std::memcpy(&icmp[2], &sum, 2);
}

}  // namespace

uint32_t receive_hash(const Parsed& parsed) {
  if (parsed.error != DropReason::kNone || parsed.layer < Layer::kIp) return 0;
  Fnv1a hash;
  hash.add(parsed.source.bytes.data(), 16);
  hash.add(parsed.destination.bytes.data(), 16);
  if (parsed.layer == Layer::kTcp || parsed.layer == Layer::kUdp) {
    hash.add(&parsed.source_port, 2);
    hash.add(&parsed.destination_port, 2);
  }
  hash.add(&parsed.protocol, 1);
  return hash.fold();
}

MacAddress assumed_mac(const IpAddress& address) {
  MacAddress mac{{0x02, address.is_v4() ? kAddressMarkV4 : kAddressMarkV6}};
  for (size_t i = address.is_v4() ? 12 : 0; i < 16; ++i) mac.bytes[2 + i % 4] ^= address.bytes[i];
  return mac;
}

void Account::add(Verdict verdict, bool answer) {
  switch (verdict) {
    case Verdict::kTransmit:
      ++(answer ? answered : forwarded);
      break;
    case Verdict::kKernel:
      ++kernel;
      break;
    case Verdict::kHeld:
      ++held;
      break;
    case Verdict::kConsumed:
      ++consumed;
      break;
    case Verdict::kDrop:
      ++dropped;
      break;
    case Verdict::kHandOver:
      break;
  }
}

ReplayNet::ReplayNet(const Config& config, size_t ports, std::vector<PortOutput> outputs, DecisionLog& log)
    : config_(config),
      outputs_(std::move(outputs)),
      log_(log),
      receive_(config.workers, std::vector<Queue>(ports)),
      rings_(config.workers) {}

ReplayPacket& ReplayNet::fresh(PortIndex port, std::span<const uint8_t> bytes) {
  if (free_.empty()) {
    packets_.push_back(std::make_unique<ReplayPacket>());
    packets_.back()->buffer.resize(ReplayPacket::kHeadroom + config_.frame_bytes_max);
    free_.push_back(packets_.back().get());
  }
  ReplayPacket& packet = *free_.back();
  free_.pop_back();
  packet.input = {};
  packet.workers.clear();
  packet.held = false;
  packet.packet.data = packet.buffer.data() + ReplayPacket::kHeadroom;
  packet.packet.handle = &packet;
  packet.packet.length = static_cast<uint16_t>(bytes.size());
  packet.packet.headroom = ReplayPacket::kHeadroom;
  packet.packet.tailroom = static_cast<uint16_t>(config_.frame_bytes_max - bytes.size());
  packet.packet.port = port;
  std::copy(bytes.begin(), bytes.end(), packet.packet.data);
  return packet;
}

void ReplayNet::recycle(ReplayPacket& packet) { free_.push_back(&packet); }

void ReplayNet::put(Queue& queue, ReplayPacket& packet) {
  queue.push_back(&packet);
  ++in_flight_;
}

void ReplayNet::take(Queue& queue, WorkerIndex worker, Burst& burst) {
  burst.count = 0;
  while (!queue.empty() && burst.count < kBurstMax) {
    ReplayPacket& packet = *queue.front();
    queue.pop_front();
    --in_flight_;
    packet.workers.push_back(worker);
    burst.packets[burst.count++] = packet.packet;
  }
}

void ReplayNet::arrive(const InputPacket& input, std::span<const uint8_t> bytes, WorkerCounters& first_worker) {
  ++account_.input;
  if (bytes.size() < input.length) {
    ++account_.dropped;
    ++account_.truncated;
    log_.refused(input, "truncated_in_capture");
    return;
  }
  if (bytes.size() > config_.frame_bytes_max) {
    ++account_.dropped;
    first_worker.drop(DropReason::kMultiSegment);
    log_.refused(input, text_of(DropReason::kMultiSegment).name);
    return;
  }
  ReplayPacket& packet = fresh(input.port, bytes);
  packet.input = input;
  const size_t queue = receive_hash(parse(packet.packet)) % config_.workers;
  put(receive_[queue][input.port], packet);
}

void ReplayNet::answer(PortIndex port, std::span<const uint8_t> question, const Parsed& parsed) {
  if (parsed.error != DropReason::kNone) return;
  const bool arp = parsed.layer == Layer::kArp && is_arp_request(question.subspan(parsed.l3_offset));
  if (!arp && !is_solicitation(question, parsed)) return;
  constexpr size_t kAdvertisement = 72;  // IPv6 header, message, option
  std::vector<uint8_t> frame(question.begin(), question.end());
  if (!arp) frame.resize(parsed.l3_offset + kAdvertisement);
  const std::span<uint8_t> l3 = std::span(frame).subspan(parsed.l3_offset);
  IpAddress target;
  if (arp) {
    uint32_t wire;
    std::memcpy(&wire, &l3[24], 4);
    target = IpAddress::v4(wire);
    write_arp_reply(l3, assumed_mac(target));
  } else {
    std::copy_n(&l3[48], 16, target.bytes.data());
    write_advertisement(l3, parsed.source, target, assumed_mac(target));
  }
  std::copy_n(&frame[6], 6, &frame[0]);
  std::copy_n(assumed_mac(target).bytes.data(), 6, &frame[6]);
  ++account_.assumed_answers;
  put(receive_[0][port], fresh(port, frame));
}

Result<void> ReplayNet::close_outputs() {
  for (PortOutput& output : outputs_) {
    if (auto closed = output.wire.close(); !closed) return closed;
    if (!output.kernel) continue;
    if (auto closed = output.kernel->close(); !closed) return closed;
  }
  return {};
}

void ReplayIo::receive(PortIndex port, Burst& burst, WorkerCounters&) {
  net_.take(net_.receive_[self()][port], self(), burst);
}

void ReplayIo::receive_handed_over(Burst& burst, WorkerCounters& counters) {
  net_.take(net_.rings_[self()], self(), burst);
  counters.taken_over.add(burst.count);
}

void ReplayIo::carry_out(Burst& burst, WorkerCounters& counters) {
  for (uint32_t i = 0; i < burst.count; ++i) {
    ReplayPacket& packet = *static_cast<ReplayPacket*>(burst.packets[i].handle);
    packet.packet = burst.packets[i];
    if (burst.outcomes[i].verdict == Verdict::kHandOver) {
      counters.handed_over.add();
      net_.put(net_.rings_[burst.outcomes[i].target], packet);
    } else {
      if (packet.input.number != 0) end(packet, i, burst.outcomes[i], counters);
      if (!packet.held) net_.recycle(packet);
    }
  }
}

// An input packet has its outcome, or its last one after it was held.
void ReplayIo::end(ReplayPacket& packet, uint32_t place, const Outcome& outcome, WorkerCounters& counters) {
  write(outcome, {packet.packet.data, packet.packet.length}, counters);
  if (packet.held) {
    net_.log_.later(packet.input.number, net_.now(), self(), outcome);
    --net_.account_.held;
    net_.account_.add(outcome.verdict, false);
  } else {
    const PacketTrace& trace = fast_path_.trace(place);
    net_.log_.decided(packet.input, packet.workers, fast_path_.parsed(place), trace, outcome);
    net_.account_.add(outcome.verdict, is_answer(trace, outcome));
  }
  packet.held = outcome.verdict == Verdict::kHeld;
}

void ReplayIo::write(const Outcome& outcome, std::span<const uint8_t> frame, WorkerCounters& counters) {
  if (outcome.verdict == Verdict::kTransmit) {
    counters.transmitted.add();
    net_.outputs_[outcome.target].wire.write(net_.now(), frame);
  } else if (outcome.verdict == Verdict::kKernel) {
    counters.to_kernel.add();
    net_.outputs_[outcome.target].kernel->write(net_.now(), frame);
  }
}

void ReplayIo::send(const Outbox& outbox, const SiteTable&, WorkerCounters& counters) {
  for (const Frame& frame : outbox) {
    if (frame.outcome.verdict != Verdict::kHandOver) {
      send_own(frame, counters);
      continue;
    }
    counters.handed_over.add();
    ++net_.account_.copies;
    net_.put(net_.rings_[frame.outcome.target], net_.fresh(frame.port, {frame.bytes.data(), frame.length}));
  }
}

void ReplayIo::send_own(const Frame& frame, WorkerCounters& counters) {
  Packet view;
  view.data = const_cast<uint8_t*>(frame.bytes.data());  // parse() never writes
  view.length = frame.length;
  const Parsed parsed = parse(view);
  const std::span<const uint8_t> bytes(frame.bytes.data(), frame.length);
  counters.own_frames.add();
  ++net_.account_.own_frames;
  net_.log_.own(net_.now(), self(), frame, parsed);
  write(frame.outcome, bytes, counters);
  if (net_.config_.assume_neighbours) net_.answer(frame.outcome.target, bytes, parsed);
}

}  // namespace margay::dp
