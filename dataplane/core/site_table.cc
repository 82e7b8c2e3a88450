// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/site_table.h"

#include "common/check.h"
#include "dataplane/core/layout_builder.h"
#include "dataplane/core/site_change.h"

namespace margay::dp {
namespace {

// The site file's SCIs as a control plane would send them that found every instance in this state.
shared_table::Snapshot snapshot_of(const SiteConfig& config, HealthState health, uint16_t generation) {
  shared_table::Snapshot snapshot;
  snapshot.generation = 1;
  uint32_t instance_index = 0;
  for (const SciConfig& sci : config.scis) {
    shared_table::SciRecord& record = snapshot.scis.emplace_back();
    record.index = static_cast<uint32_t>(snapshot.scis.size() - 1);
    record.policy = sci;
    for (const InstanceConfig& instance : sci.instances) {
      shared_table::InstanceRecord& to = record.instances.emplace_back();
      to.index = instance_index++;
      to.generation = generation;
      to.health = health;
      to.limit = limit_of(health, instance.max_sessions, Share(sci.degradation_factor));
      to.config = instance;
    }
  }
  return snapshot;
}

std::unique_ptr<SiteTable> table_of(const SiteConfig& config, std::span<const MacAddress> port_macs,
                                    const shared_table::Snapshot& snapshot) {
  const auto bare = SiteTable::without_scis(config, port_macs);
  SiteChange change{config, shared_table::kInstancesMax, shared_table::kScisMax, [](InstanceIndex) { return false; },
                    [](Nanoseconds) { return Tick{0}; }};
  auto table = change.apply(*bare, snapshot);
  MARGAY_CHECK(table);
  (*table)->version = 1;
  (*table)->generation = 0;
  return std::move(*table);
}

}  // namespace

std::unique_ptr<SiteTable> SiteTable::without_scis(const SiteConfig& config, std::span<const MacAddress> port_macs) {
  std::unique_ptr<SiteTable> table(new SiteTable);
  table->set_layout(LayoutBuilder(config, port_macs, nullptr, 0).finish());
  return table;
}

std::unique_ptr<SiteTable> SiteTable::build(const SiteConfig& config, std::span<const MacAddress> port_macs) {
  return table_of(config, port_macs, snapshot_of(config, HealthState::kHealthy, 1));
}

std::unique_ptr<SiteTable> SiteTable::waiting_for_control(const SiteConfig& config,
                                                          std::span<const MacAddress> port_macs) {
  auto table = table_of(config, port_macs, snapshot_of(config, HealthState::kUnknown, 0));
  table->waiting = true;
  return table;
}

std::unique_ptr<SiteTable> SiteTable::without_scis() const {
  auto table = clone();
  for (SciIndex s = 0; s < scis.size(); ++s) table->scis.edit(s) = {};
  for (InstanceIndex i = 0; i < instances.size(); ++i) {
    table->instances.edit(i) = {};
    table->instances.edit(i).gone = true;
  }
  table->waiting = false;
  return table;
}

void SiteTable::set_layout(SiteLayout layout) {
  layout_ = std::make_shared<const SiteLayout>(std::move(layout));
  ports = layout_->ports;
  frontends = layout_->frontends;
  endpoints = layout_->endpoints;
  endpoint_of_instance = layout_->endpoint_of_instance;
  next_hops = layout_->next_hops;
}

SciIndex SiteTable::sci_by_name(std::string_view csci_id) const {
  for (size_t i = 0; i < scis.size(); ++i) {
    if (!scis[i].gone() && scis[i].csci_id == csci_id) return static_cast<SciIndex>(i);
  }
  return kNoIndex;
}

InstanceIndex SiteTable::instance_by_name(std::string_view csci_id, std::string_view si_id) const {
  const SciIndex sci = sci_by_name(csci_id);
  if (sci == kNoIndex) return kNoIndex;
  for (const InstanceIndex i : scis[sci].instances) {
    if (instances[i].si_id == si_id) return i;
  }
  return kNoIndex;
}

}  // namespace margay::dp
