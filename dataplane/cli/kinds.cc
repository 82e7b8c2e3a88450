// SPDX-License-Identifier: Apache-2.0
#include "dataplane/cli/kinds.h"

#include "dataplane/core/slot_ledger.h"

namespace margay::dp {
namespace {

using Names = std::vector<std::string>;
constexpr uint64_t kRowsMax = 100'000'000;
constexpr uint64_t kDeadlineMax = 30 * 24 * 3600 * kSecond;  // far below half the range of a Tick

Names port_names(const DataPlane& plane) {
  Names names;
  for (const PortConfig& port : plane.config.ports) names.push_back(port.name);
  return names;
}

Names sci_names(const DataPlane& plane) {
  Names names;
  for (const Sci& sci : plane.table().scis) {
    if (!sci.gone()) names.push_back(sci.csci_id);
  }
  return names;
}

// Of the SCI that the word before names.
Names instance_names(const DataPlane& plane, std::span<const Word> before) {
  Names names;
  const SiteTable& table = plane.table();
  const SciIndex sci = before.empty() ? kNoIndex : table.sci_by_name(before.back().text);
  if (sci == kNoIndex) return names;
  for (const InstanceIndex i : table.scis[sci].instances) names.push_back(table.instances[i].si_id);
  return names;
}

Names flow_state_names() {
  Names names;
  for (size_t s = 1; s < kFlowStates; ++s) names.emplace_back(name_of(static_cast<FlowState>(s)));
  return names;
}

}  // namespace

void add_kinds(CommandTable& table, const DataPlane& plane) {
  using enum ArgumentType;
  const auto add = [&](ArgumentKind kind) { table.add_kind(std::move(kind)); };
  add({.name = "PORT", .expected = "the name of a port", .names = [&](auto) { return port_names(plane); }});
  add({.name = "CSCI-ID", .expected = "the CSCI-ID of an SCI", .names = [&](auto) { return sci_names(plane); }});
  add({.name = "SI-ID", .expected = "the SI-ID of an instance of that SCI", .names = [&](auto before) {
         return instance_names(plane, before);
       }});
  add({.name = "FLOW-STATE", .expected = "the state of a flow", .names = [](auto) { return flow_state_names(); }});
  add({.name = "PROTOCOL", .expected = "tcp or udp", .names = [](auto) { return Names{"tcp", "udp"}; }});
  add({.name = "ADDRESS", .expected = "an IPv4 or IPv6 address", .type = kAddress});
  add({.name = "PORT-NUMBER", .expected = "a TCP or UDP port", .type = kNumber, .min = 1, .max = 65535});
  add({.name = "WORKER", .expected = "the number of a worker", .type = kNumber, .max = plane.mailboxes.size() - 1});
  add({.name = "ROWS", .expected = "how many rows to show", .type = kNumber, .min = 1, .max = kRowsMax});
  add({.name = "MAX-SESSIONS", .expected = "a number of sessions", .type = kNumber, .max = SlotLedger::kLimitMax});
  add({.name = "WEIGHT", .expected = "a weight", .type = kNumber, .max = 65535});
  add({.name = "FILE", .expected = "the absolute path of a new file", .type = kName});
  add({.name = "DEADLINE", .expected = "a duration such as 600s or 10m", .type = kDuration, .max = kDeadlineMax});
}

std::optional<PortIndex> port_of(const DataPlane& plane, const Argument& name) {
  for (size_t p = 0; p < plane.config.ports.size(); ++p) {
    if (plane.config.ports[p].name == name.text()) return static_cast<PortIndex>(p);
  }
  return std::nullopt;
}

std::optional<FlowState> flow_state_of(std::string_view name) {
  for (size_t s = 1; s < kFlowStates; ++s) {
    if (name_of(static_cast<FlowState>(s)) == name) return static_cast<FlowState>(s);
  }
  return std::nullopt;
}

}  // namespace margay::dp
