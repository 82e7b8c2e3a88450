// SPDX-License-Identifier: Apache-2.0
// Any bytes as a snapshot of the control plane, and then as the next state of a site. Nothing may crash; what is
// refused says where; what is read is written as the same bytes, and what is applied can be told again.

#include <cstdint>
#include <span>

#include "common/check.h"
#include "dataplane/core/site_change.h"
#include "tests/fuzz/target.h"

namespace {

using margay::dp::SiteTable;

const margay::MacAddress kMacs[] = {margay::MacAddress{{2, 0, 0, 0, 0x0f, 0}}};

margay::dp::SiteConfig ports() {
  margay::dp::SiteConfig config;
  margay::dp::PortConfig& port = config.ports.emplace_back();
  port.name = "net0";
  port.addresses = {*margay::Prefix::parse("192.0.2.2/24"), *margay::Prefix::parse("10.1.0.2/16")};
  port.gateways = {*margay::IpAddress::parse("192.0.2.1")};
  return config;
}

}  // namespace

FUZZ_TARGET(snapshot) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  auto snapshot = margay::shared_table::decode(bytes);
  if (!snapshot) {
    MARGAY_CHECK(snapshot.error().message.find(": ") != std::string::npos);
    return 0;
  }
  const auto written = margay::shared_table::encode(*snapshot);
  MARGAY_CHECK(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()));
  static const margay::dp::SiteConfig config = ports();
  const margay::dp::SiteChange change{config, 1000, 100, [](margay::dp::InstanceIndex i) { return i % 3 == 0; },
                                      [](margay::Nanoseconds t) { return margay::dp::to_tick(t); }};
  const auto start = SiteTable::without_scis(config, kMacs);
  snapshot->base = 0;
  snapshot->removed.clear();
  const auto first = change.apply(*start, *snapshot);
  if (!first) return 0;
  MARGAY_CHECK(margay::dp::snapshot_of(**first).scis.size() == snapshot->scis.size());
  if (snapshot->generation == ~uint64_t{0}) return 0;
  // Half of it goes again: what stays keeps its indices.
  auto next = *snapshot;
  next.base = snapshot->generation;
  ++next.generation;
  next.scis.clear();
  for (size_t i = 0; i < snapshot->scis.size(); i += 2) next.removed.push_back(snapshot->scis[i].index);
  const auto second = change.apply(**first, next);
  MARGAY_CHECK(second.has_value());
  for (size_t i = 1; i < snapshot->scis.size(); i += 2) {
    for (const auto& record : snapshot->scis[i].instances) {
      MARGAY_CHECK((*second)->instances[record.index].endpoint == (*first)->instances[record.index].endpoint);
      MARGAY_CHECK((*second)->instances[record.index].next_hop == (*first)->instances[record.index].next_hop);
    }
  }
  return 0;
}
