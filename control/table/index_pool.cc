// SPDX-License-Identifier: Apache-2.0
#include "control/table/index_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace margay::control {

using shared_table::InstanceRecord;
using shared_table::SciRecord;

void IndexPool::connect(Counts counts) {
  counts_ = std::move(counts);
  scis_.resize(counts_.capacity.scis);
  instances_.resize(counts_.capacity.instances);
  for (Use& use : scis_) use = {};
  for (Use& use : instances_) use = {};
  acked_ = 0;
  fresh_sci_ = fresh_ = freed_ = 0;
}

void IndexPool::entered(const SciRecord& sci) {
  scis_[sci.index].in_table = scis_[sci.index].used = true;
  for (const InstanceRecord& i : sci.instances) {
    Instance& instance = instances_[i.index];
    instance.in_table = true;
    instance.generation = std::max(instance.generation, i.generation);
    instance.sci = sci.index;
  }
}

void IndexPool::left(const SciRecord& sci, uint64_t generation) {
  const auto leave = [generation](Use& use) {
    use.in_table = false;
    use.left_at = generation;
  };
  leave(scis_[sci.index]);
  for (const InstanceRecord& i : sci.instances) leave(instances_[i.index]);
}

void IndexPool::forget() {
  for (Use& use : scis_) use.wanted = false;
  for (Use& use : instances_) use.wanted = false;
}

uint16_t IndexPool::highest(uint32_t index) const {
  return std::max(instances_[index].generation, counts_.generation ? counts_.generation(index) : uint16_t{0});
}

bool IndexPool::sci_counted(uint32_t sci) const {
  for (uint32_t i = 0; i < instances_.size(); ++i) {
    if (instances_[i].sci == sci && instances_[i].generation > 0 && counted(i)) return true;
  }
  return false;
}

std::optional<uint32_t> IndexPool::take_sci() {
  const auto take = [this](uint32_t index) {
    scis_[index].wanted = scis_[index].used = true;
    return index;
  };
  while (fresh_sci_ < scis_.size()) {
    const uint32_t index = fresh_sci_++;
    if (free(scis_[index]) && !scis_[index].used) return take(index);
  }
  for (uint32_t index = 0; index < scis_.size(); ++index) {
    if (free(scis_[index]) && !sci_counted(index)) return take(index);
  }
  return std::nullopt;
}

std::optional<IndexPool::Place> IndexPool::take_instance(uint32_t sci) {
  const auto take = [this, sci](uint32_t index) {
    Instance& instance = instances_[index];
    instance.wanted = true;
    instance.sci = sci;
    instance.generation = static_cast<uint16_t>(highest(index) + 1);
    return Place{index, instance.generation};
  };
  while (fresh_ < instances_.size()) {
    const uint32_t index = fresh_++;
    if (free(instances_[index]) && highest(index) == 0 && !counted(index)) return take(index);
  }
  for (size_t n = 0; n < instances_.size(); ++n) {
    const uint32_t index = freed_;
    freed_ = freed_ + 1 < instances_.size() ? freed_ + 1 : 0;
    const bool can_rise = highest(index) < std::numeric_limits<uint16_t>::max();
    if (free(instances_[index]) && can_rise && !counted(index)) return take(index);
  }
  return std::nullopt;
}

}  // namespace margay::control
