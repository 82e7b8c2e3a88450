// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares a burst of tags with the tags of a bucket each: the only code of the core that exists once per
// instruction set. All of them give the same answers. They are compiled in one file under function attributes, so
// that no instruction beyond the binary's baseline gets into a function that other files share.
//
// The best one that the CPU has is taken at start; select_isa() takes another for tests and benches, while no
// worker runs. match_tags() may be called by any thread, once a burst.

#include <array>
#include <cstdint>
#include <string_view>

#include "dataplane/core/units.h"

namespace margay::dp {

enum class Isa : uint8_t { kScalar, kSse2, kAvx2, kAvx512 };
inline constexpr std::array<Isa, 4> kIsas{Isa::kScalar, Isa::kSse2, Isa::kAvx2, Isa::kAvx512};
std::string_view name_of(Isa isa);  // "avx2"

bool has_isa(Isa isa);  // of this CPU, and built in
Isa best_isa();
Isa selected_isa();
void select_isa(Isa isa);  // REQUIRES: has_isa(isa)

inline constexpr size_t kBucketSlots = 8;

// The buckets to be probed for a burst. Kernels work on several at once: what stands behind `count` is probed
// too, so every bucket number must be a valid one (0 is).
struct TagProbe {
  std::array<uint32_t, kBurstMax> buckets{};
  std::array<uint16_t, kBurstMax> tags{};
  std::array<uint8_t, kBurstMax> matches;  // out: bit i of an element says that tag i of the bucket is equal
  uint32_t count = 0;
};

// `first` is bucket 0; buckets are kCacheLine bytes apart and begin with their kBucketSlots tags.
void match_tags(const void* first, TagProbe& probe);

}  // namespace margay::dp
