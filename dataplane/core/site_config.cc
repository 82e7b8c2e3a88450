// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/site_config.h"

#include <algorithm>
#include <bit>

namespace margay::dp {

size_t buffer_bytes(uint16_t mtu) {
  constexpr size_t kFrameOverhead = 96;  // Ethernet header, two tags, and af_packet's own header
  return std::max<size_t>(2048, std::bit_ceil(mtu + kFrameOverhead));
}

size_t buffer_bytes(const SiteConfig& site) {
  size_t bytes = buffer_bytes(0);
  for (const PortConfig& port : site.ports) bytes = std::max(bytes, buffer_bytes(port.mtu));
  return bytes;
}

}  // namespace margay::dp
