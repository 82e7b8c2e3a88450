// SPDX-License-Identifier: Apache-2.0

#include "dataplane/core/flow_probe.h"

#include <cstring>

#include "common/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace margay::dp {
namespace {

using Kernel = void (*)(const std::byte* first, TagProbe& probe);

const std::byte* tags_of(const std::byte* first, uint32_t bucket) { return first + size_t{bucket} * kCacheLine; }

void match_scalar(const std::byte* first, TagProbe& probe) {
  for (uint32_t i = 0; i < probe.count; ++i) {
    std::array<uint16_t, kBucketSlots> tags;
    std::memcpy(tags.data(), tags_of(first, probe.buckets[i]), sizeof tags);
    uint32_t matches = 0;
    for (uint32_t slot = 0; slot < kBucketSlots; ++slot) matches |= uint32_t{tags[slot] == probe.tags[i]} << slot;
    probe.matches[i] = static_cast<uint8_t>(matches);
  }
}

#if defined(__x86_64__)

__attribute__((target("sse2"))) inline __m128i load_tags(const std::byte* first, uint32_t bucket) {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(tags_of(first, bucket)));
}

__attribute__((target("sse2"))) void match_sse2(const std::byte* first, TagProbe& probe) {
  for (uint32_t i = 0; i < probe.count; ++i) {
    const __m128i wanted = _mm_set1_epi16(static_cast<int16_t>(probe.tags[i]));
    const __m128i equal = _mm_cmpeq_epi16(load_tags(first, probe.buckets[i]), wanted);
    probe.matches[i] = static_cast<uint8_t>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
  }
}

// Two buckets at a time, one in each half of the register.
__attribute__((target("avx2"))) void match_avx2(const std::byte* first, TagProbe& probe) {
  static_assert(kBurstMax % 2 == 0);
  const __m256i spread = _mm256_broadcastsi128_si256(_mm_set1_epi16(0x0100));
  const __m256i second = _mm256_inserti128_si256(_mm256_setzero_si256(), _mm_set1_epi16(0x0202), 1);
  const __m256i order = _mm256_add_epi8(spread, second);
  for (uint32_t i = 0; i < probe.count; i += 2) {
    int32_t two_tags;
    std::memcpy(&two_tags, &probe.tags[i], sizeof two_tags);
    const __m256i wanted = _mm256_shuffle_epi8(_mm256_set1_epi32(two_tags), order);
    const __m256i tags = _mm256_inserti128_si256(_mm256_castsi128_si256(load_tags(first, probe.buckets[i])),
                                                 load_tags(first, probe.buckets[i + 1]), 1);
    const __m256i equal = _mm256_packs_epi16(_mm256_cmpeq_epi16(tags, wanted), _mm256_setzero_si256());
    const auto bits = static_cast<uint32_t>(_mm256_movemask_epi8(equal));
    probe.matches[i] = static_cast<uint8_t>(bits);
    probe.matches[i + 1] = static_cast<uint8_t>(bits >> 16);
  }
}

// Four buckets at a time; the comparison gives their four bytes of matches as they are stored.
__attribute__((target("avx512f,avx512bw"))) void match_avx512(const std::byte* first, TagProbe& probe) {
  static_assert(kBurstMax % 4 == 0);
  const __m512i order = _mm512_set_epi64(0x0003000300030003, 0x0003000300030003, 0x0002000200020002, 0x0002000200020002,
                                         0x0001000100010001, 0x0001000100010001, 0, 0);
  for (uint32_t i = 0; i < probe.count; i += 4) {
    const auto* four_tags = reinterpret_cast<const __m128i*>(&probe.tags[i]);
    const __m512i wanted = _mm512_permutexvar_epi16(order, _mm512_castsi128_si512(_mm_loadl_epi64(four_tags)));
    __m512i tags = _mm512_castsi128_si512(load_tags(first, probe.buckets[i]));
    tags = _mm512_inserti32x4(tags, load_tags(first, probe.buckets[i + 1]), 1);
    tags = _mm512_inserti32x4(tags, load_tags(first, probe.buckets[i + 2]), 2);
    tags = _mm512_inserti32x4(tags, load_tags(first, probe.buckets[i + 3]), 3);
    const uint32_t bits = _mm512_cmpeq_epi16_mask(tags, wanted);
    std::memcpy(&probe.matches[i], &bits, sizeof bits);
  }
}

#endif

// nullptr where this CPU or this build has no such kernel.
Kernel kernel_of(Isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  switch (isa) {
    case Isa::kScalar:
      return match_scalar;
    case Isa::kSse2:
      return match_sse2;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") ? match_avx2 : nullptr;
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512bw") ? match_avx512 : nullptr;
  }
  return nullptr;
#else
  return isa == Isa::kScalar ? match_scalar : nullptr;
#endif
}

Isa selected = best_isa();
Kernel kernel = kernel_of(selected);

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kSse2:
      return "sse2";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "";
}

bool has_isa(Isa isa) { return kernel_of(isa) != nullptr; }

Isa best_isa() {
  Isa best = Isa::kScalar;
  for (const Isa isa : kIsas) best = has_isa(isa) ? isa : best;
  return best;
}

Isa selected_isa() { return selected; }

void select_isa(Isa isa) {
  MARGAY_CHECK(has_isa(isa));
  selected = isa;
  kernel = kernel_of(isa);
}

void match_tags(const void* first, TagProbe& probe) { kernel(static_cast<const std::byte*>(first), probe); }

}  // namespace margay::dp
