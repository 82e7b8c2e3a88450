// SPDX-License-Identifier: Apache-2.0
#include "control/table/ledger_reader.h"

#include <algorithm>
#include <limits>

namespace margay::control {

using shared_table::InstanceRecord;
using shared_table::OperatorSetting;
using shared_table::SciRecord;

namespace {

constexpr uint64_t kCountMax = std::numeric_limits<uint32_t>::max();

void add(uint32_t& sum, const Counter& counter) {
  sum = static_cast<uint32_t>(std::min(kCountMax, sum + std::min(kCountMax, counter.get())));
}

}  // namespace

LedgerSample LedgerReader::read(const SciRecord& sci) {
  LedgerSample sample;
  sample.instances.reserve(sci.instances.size());
  for (const InstanceRecord& i : sci.instances) {
    sample.instances.push_back({.id = i.config.id, .counts = counts_of(i), .responses = responses_of(i)});
  }
  return sample;
}

LedgerCounts LedgerReader::counts_of(const InstanceRecord& record) const {
  LedgerCounts counts;
  for (uint32_t w = 0; w < shape().workers; ++w) {
    const InstanceCounters& c = counters(w, record.index);
    if (c.generation.get() != record.generation) continue;
    add(counts.active, c.active);
    add(counts.provisional, c.provisional);
  }
  const auto setting = OperatorSetting::unpack(view_.settings()[record.index].get());
  if (setting.generation == record.generation) {
    counts.max_sessions = setting.max_sessions;
    counts.admin = setting.admin;
    counts.weight = setting.weight;
  }
  return counts;
}

// Where no flow ever began the pages of its times are left untouched.
std::optional<Histogram> LedgerReader::responses_of(const InstanceRecord& record) {
  const auto times_of = [&](uint32_t w) -> const DurationCounters* {
    if (counters(w, record.index).generation.get() != record.generation) return nullptr;
    return &view_.times()[size_t{w} * shape().instances + record.index].responses;
  };
  uint64_t sum = 0;
  for (uint32_t w = 0; w < shape().workers; ++w) {
    if (const DurationCounters* times = times_of(w)) sum += times->sum.get();
  }
  Responses& last = responses_[record.index];
  if (last.generation == record.generation && last.sum == sum) return std::nullopt;
  last = {.generation = record.generation, .sum = sum};
  Histogram all;
  for (uint32_t w = 0; w < shape().workers; ++w) {
    if (const DurationCounters* times = times_of(w)) times->add_to(all);
  }
  return all;
}

bool LedgerReader::in_use(uint32_t instance) const {
  for (uint32_t w = 0; w < shape().workers; ++w) {
    const InstanceCounters& c = counters(w, instance);
    if (c.active.get() != 0 || c.bindings.get() != 0) return true;
  }
  return false;
}

uint16_t LedgerReader::generation(uint32_t instance) const {
  uint16_t highest = OperatorSetting::unpack(view_.settings()[instance].get()).generation;
  for (uint32_t w = 0; w < shape().workers; ++w) {
    highest = std::max(highest, static_cast<uint16_t>(counters(w, instance).generation.get()));
  }
  return highest;
}

}  // namespace margay::control
