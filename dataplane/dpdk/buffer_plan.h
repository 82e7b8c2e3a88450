// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many packet buffers the data plane needs and how large each is, known before anything is reserved: every
// place where a buffer may rest is counted full at once, so that a pool never runs dry for want of planning.
// Pure; any thread.

#include <cstddef>
#include <cstdint>

#include "dataplane/core/site_config.h"

namespace margay::dp {

inline constexpr uint16_t kRxDescriptors = 1024;  // asked for; the device may adjust it
inline constexpr uint16_t kTxDescriptors = 1024;
inline constexpr uint16_t kKernelDescriptors = 256;
inline constexpr uint32_t kRingPackets = 2048;   // of a ring between workers
inline constexpr uint32_t kCachedPackets = 256;  // of a pool, per lcore
inline constexpr uint16_t kMtuMax = 16000;       // one buffer holds a frame

struct BufferPlan {
  uint32_t count = 0;
  uint16_t room = 0;  // bytes of a buffer: headroom and frame
  size_t bytes() const;
};

BufferPlan plan_buffers(const SiteConfig& config);

}  // namespace margay::dp
