// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/decisions.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace margay::dp {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(Layer layer) {
  switch (layer) {
    case Layer::kOther:
      return "other";
    case Layer::kArp:
      return "arp";
    case Layer::kIp:
      return "ip";
    case Layer::kFragment:
      return "fragment";
    case Layer::kExtension:
      return "extension";
    case Layer::kIcmp:
      return "icmp";
    case Layer::kTcp:
      return "tcp";
    case Layer::kUdp:
      return "udp";
  }
  return "";
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTransmit:
      return "transmit";
    case Verdict::kKernel:
      return "kernel";
    case Verdict::kHandOver:
      return "hand-over";
    case Verdict::kHeld:
      return "held";
    case Verdict::kConsumed:
      return "consumed";
    case Verdict::kDrop:
      return "drop";
  }
  return "";
}

std::string format_flags(uint8_t flags) {
  static constexpr std::pair<TcpFlag, char> kLetters[] = {{kFin, 'F'}, {kSyn, 'S'}, {kRst, 'R'},
                                                          {kPsh, 'P'}, {kAck, 'A'}, {kUrg, 'U'}};
  std::string text;
  for (const auto& [flag, letter] : kLetters) {
    if ((flags & flag) != 0) text += letter;
  }
  return text;
}

Json to_json(const Parsed& p) {
  if (p.error != DropReason::kNone) return {{"error", text_of(p.error).name}};
  Json json = {{"layer", name_of(p.layer)}};
  if (p.tagged) json["vlan"] = p.vlan;
  if (p.layer == Layer::kOther) json["ethertype"] = p.ethertype;
  if (p.layer < Layer::kIp) return json;
  json["source"] = p.source.format();
  json["destination"] = p.destination.format();
  if (p.layer != Layer::kTcp && p.layer != Layer::kUdp) {
    json["protocol"] = p.protocol;
    return json;
  }
  json["source_port"] = from_wire16(p.source_port);
  json["destination_port"] = from_wire16(p.destination_port);
  if (p.layer == Layer::kTcp) {
    json["flags"] = format_flags(p.tcp_flags);
    json["sequence"] = p.sequence;
    json["acknowledgement"] = p.acknowledgement;
  }
  json["payload"] = p.l4_payload;
  return json;
}

// The address that ARP or Neighbour Discovery is about.
std::optional<IpAddress> target_of(const Frame& frame, const Parsed& p) {
  constexpr uint8_t kSolicitation = 135, kAdvertisement = 136;
  IpAddress target;
  if (p.layer == Layer::kArp) {
    uint32_t wire;
    std::memcpy(&wire, frame.bytes.data() + p.l3_offset + 24, sizeof wire);
    return IpAddress::v4(wire);
  }
  if (p.layer != Layer::kIcmp || p.is_v4 || frame.length < p.l4_offset + 24) return std::nullopt;
  const uint8_t* message = frame.bytes.data() + p.l4_offset;
  if (message[0] != kSolicitation && message[0] != kAdvertisement) return std::nullopt;
  std::memcpy(target.bytes.data(), message + 8, target.bytes.size());
  return target;
}

// Site files may hold names that are not UTF-8; JSON may not.
std::string to_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n'; }

Json open_line(const InputPacket& packet, const SiteConfig& site) {
  return {{"packet", packet.number},
          {"port", site.ports[packet.port].name},
          {"time", format_time(packet.time)},
          {"length", packet.length}};
}

void add_outcome(Json& json, const Outcome& outcome, const SiteConfig& site) {
  json["verdict"] = name_of(outcome.verdict);
  if (outcome.verdict == Verdict::kTransmit || outcome.verdict == Verdict::kKernel) {
    json["target"] = site.ports[outcome.target].name;
  }
  if (outcome.reason != DropReason::kNone) json["reason"] = text_of(outcome.reason).name;
}

void add_binding(Json& json, const PacketTrace& trace, const SiteTable& table) {
  if (trace.sci == kNoIndex) return;
  json["direction"] = trace.direction == Direction::kFromClient ? "from-client" : "from-instance";
  json["sci"] = table.scis[trace.sci].csci_id;
  json["binding"] = trace.new_binding ? "new" : trace.entry != kNoIndex ? "entry" : "none";
  if (trace.instance != kNoIndex) json["instance"] = table.instances[trace.instance].si_id;
  json["state_before"] = name_of(trace.state_before);
  json["state_after"] = name_of(trace.state_after);
  json["slot_change"] = trace.slot_change;
}

}  // namespace

bool is_answer(const PacketTrace& trace, const Outcome& outcome) {
  return outcome.verdict == Verdict::kTransmit && (trace.refused != Refusal::kNone || trace.instance == kNoIndex);
}

std::string format_time(Nanoseconds time) { return fmt::format("{}.{:09}", time / kSecond, time % kSecond); }

Result<DecisionLog> DecisionLog::create(const std::string& file, const SiteConfig& site, const SiteTable& table) {
  DecisionLog log(file, site, table);
  if (!log.out_) return Error{file + ": cannot write: " + std::strerror(errno)};
  return log;
}

void DecisionLog::decided(const InputPacket& packet, std::span<const WorkerIndex> workers, const Parsed& parsed,
                          const PacketTrace& trace, const Outcome& outcome) {
  Json json = open_line(packet, *site_);
  json["workers"] = workers;
  json["parsed"] = to_json(parsed);
  add_binding(json, trace, *table_);
  add_outcome(json, outcome, *site_);
  if (is_answer(trace, outcome)) json["verdict"] = "answer";
  if (trace.refused != Refusal::kNone) json["reason"] = text_of(trace.refused).name;
  packets_[packet.number] = to_line(json);
  if (trace.slot_change != 0) ++slot_changes_;
}

void DecisionLog::refused(const InputPacket& packet, std::string_view reason) {
  Json json = open_line(packet, *site_);
  json["workers"] = Json::array();
  json["verdict"] = "drop";
  json["reason"] = reason;
  packets_[packet.number] = to_line(json);
}

void DecisionLog::later(uint64_t number, Nanoseconds now, WorkerIndex worker, const Outcome& outcome) {
  Json json = {{"later", number}, {"time", format_time(now)}, {"worker", worker}};
  add_outcome(json, outcome, *site_);
  others_.push_back(to_line(json));
}

void DecisionLog::own(Nanoseconds now, WorkerIndex worker, const Frame& frame, const Parsed& parsed) {
  Json json = {{"own", ++own_}, {"time", format_time(now)}, {"worker", worker}, {"parsed", to_json(parsed)}};
  if (const auto target = target_of(frame, parsed)) json["target_address"] = target->format();
  add_outcome(json, frame.outcome, *site_);
  others_.push_back(to_line(json));
}

void DecisionLog::ended(Nanoseconds now, WorkerIndex worker, InstanceIndex instance, EndReason why, uint64_t slots) {
  const Instance& i = table_->instances[instance];
  others_.push_back(to_line({{"ended", slots},
                             {"time", format_time(now)},
                             {"worker", worker},
                             {"sci", table_->scis[i.sci].csci_id},
                             {"instance", i.si_id},
                             {"reason", name_of(why)}}));
}

void DecisionLog::end_step() {
  for (const auto& [number, line] : packets_) out_ << line;
  for (const std::string& line : others_) out_ << line;
  packets_.clear();
  others_.clear();
}

Result<void> DecisionLog::close() {
  out_.close();
  if (!out_) return Error{file_ + ": cannot write all of it: " + std::strerror(errno)};
  return {};
}

}  // namespace margay::dp
