// SPDX-License-Identifier: Apache-2.0
// Any bytes as a frame. Nothing is read behind it (the block is exactly as long, ASan watches), and what is accepted
// has its headers and payload within it. The IPv4 header checksum is mended first when the first byte is odd, or
// hardly anything would get past it.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "common/check.h"
#include "dataplane/core/parse.h"
#include "tests/fuzz/mend.h"
#include "tests/fuzz/target.h"

namespace {

using margay::DropReason;
using margay::dp::Layer;

void check(const margay::dp::Parsed& p, size_t length) {
  if (p.error != DropReason::kNone || p.layer == Layer::kOther) return;
  if (p.layer == Layer::kArp) {
    MARGAY_CHECK(p.l3_offset + size_t{28} <= length);
    return;
  }
  const size_t end = p.l3_offset + size_t{p.ip_length};
  MARGAY_CHECK(end <= length && p.l3_offset < p.l4_offset && p.l4_offset <= end);
  MARGAY_CHECK(p.is_v4 == p.source.is_v4() && p.is_v4 == p.destination.is_v4());
  MARGAY_CHECK(!p.source.is_multicast() && p.source != p.destination);
  if (p.layer == Layer::kTcp) MARGAY_CHECK(p.l4_offset + size_t{20} + p.l4_payload <= end);
  if (p.layer == Layer::kUdp) MARGAY_CHECK(p.l4_offset + size_t{8} + p.l4_payload <= end);
  if (p.layer == Layer::kIcmp) MARGAY_CHECK(p.l4_offset + size_t{8} <= end);
  if (p.layer == Layer::kTcp || p.layer == Layer::kUdp) MARGAY_CHECK(p.source_port != 0 && p.destination_port != 0);
}

}  // namespace

FUZZ_TARGET(parse) {
  if (size == 0 || size > 65535) return 0;
  const bool mend = (data[0] & 1) != 0;
  const size_t length = size - 1;
  const auto frame = std::make_unique<uint8_t[]>(length);
  std::copy(data + 1, data + size, frame.get());
  if (mend) margay::test::mend_checksums({frame.get(), length});
  margay::dp::Packet packet;
  packet.data = frame.get();
  packet.length = static_cast<uint16_t>(length);
  check(margay::dp::parse(packet), length);
  return 0;
}
