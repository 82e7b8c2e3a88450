// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sites for a TablePlan, and a model of the data plane after the contract of common/shared_table/snapshot.h: whole
// SCIs, base and generation, an index that another instance had only with a higher generation and out of use.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/table/table_plan.h"

namespace margay::control {

using shared_table::CountersShape;
using shared_table::InstanceRecord;
using shared_table::SciRecord;
using shared_table::Snapshot;

inline InstanceConfig instance(const std::string& id, uint16_t port) {
  InstanceConfig i;
  i.id = id;
  i.address.bytes[15] = 7;
  i.port = port;
  i.max_sessions = 100;
  return i;
}

inline SciConfig sci(const std::string& name, std::vector<InstanceConfig> instances) {
  SciConfig s;
  s.csci_id = name;
  s.cs_id = "cs";
  s.endpoints = {Endpoint{IpAddress{}, 80, Protocol::kTcp}};
  s.instances = std::move(instances);
  return s;
}

inline TableChanged health_of(const std::string& id, HealthState state, uint32_t limit, Nanoseconds since = 5) {
  return {.changed = {{.id = id, .health = state, .health_since = since, .limit = limit, .weight = 1}}, .removed = {}};
}

inline const InstanceRecord& record(const TablePlan& plan, const std::string& name, const std::string& id) {
  for (const InstanceRecord& i : plan.scis().at(name).instances) {
    if (i.config.id == id) return i;
  }
  ADD_FAILURE() << name << " has no " << id;
  static const InstanceRecord kNone;
  return kNone;
}

// A data plane as the plan may know it.
struct DataPlane {
  std::map<uint32_t, SciRecord> scis;
  struct Seen {
    std::string who;
    uint16_t generation = 0;
    bool in_use = false;
  };
  std::map<uint32_t, Seen> instances;
  uint64_t generation = 0;

  static std::string who(const SciRecord& s, const InstanceRecord& i) {
    return std::to_string(s.index) + s.policy.csci_id + "/" + i.config.id + ":" + std::to_string(i.config.port);
  }

  std::string refusal(const Snapshot& s) const {
    if (s.generation <= generation) return "generation";
    if (s.base != 0 && s.base != generation) return "base";
    for (const uint32_t index : s.removed) {
      if (scis.count(index) == 0) return "removed";
    }
    for (const SciRecord& sci : s.scis) {
      for (const InstanceRecord& i : sci.instances) {
        const auto seen = instances.find(i.index);
        if (seen == instances.end()) continue;
        const bool same = seen->second.who == who(sci, i);
        if (same && seen->second.generation == i.generation) continue;
        if (i.generation <= seen->second.generation) return "generation of " + i.config.id;
        if (seen->second.in_use) return i.config.id + " in use";
      }
    }
    return {};
  }

  void apply(const Snapshot& s) {
    generation = s.generation;
    if (s.base == 0) scis.clear();
    for (const uint32_t index : s.removed) scis.erase(index);
    for (const SciRecord& sci : s.scis) {
      scis[sci.index] = sci;
      for (const InstanceRecord& i : sci.instances) {
        Seen& seen = instances[i.index];
        seen = {who(sci, i), i.generation, seen.who == who(sci, i) && seen.in_use};
      }
    }
  }

  Snapshot running() const {
    Snapshot s{.generation = generation, .base = 0, .scis = {}, .removed = {}};
    for (const auto& [index, sci] : scis) s.scis.push_back(sci);
    return s;
  }

  IndexPool::Counts counts(CountersShape capacity = {.workers = 1, .instances = 64, .scis = 16}) const {
    return {capacity, [this](uint32_t i) { return instances.count(i) > 0 && instances.at(i).in_use; },
            [this](uint32_t i) { return instances.count(i) > 0 ? instances.at(i).generation : uint16_t{0}; }};
  }
};

inline std::map<uint32_t, SciRecord> complete(const TablePlan& plan) {
  std::map<uint32_t, SciRecord> all;
  for (const auto& [name, sci] : plan.scis()) all[sci.index] = sci;
  return all;
}

}  // namespace margay::control
