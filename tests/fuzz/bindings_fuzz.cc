// SPDX-License-Identifier: Apache-2.0
// Any bytes as what an earlier process left behind. The first byte says where they stand: 0, as the whole image;
// 1, as the saved table of an image whose checksums are right; else as its bindings, which are then adopted by another
// number of workers. Nothing may crash; what is adopted is counted as it is, and ends as any other binding.

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "tests/fuzz/target.h"
#include "tests/support/kept_site.h"

namespace {

using margay::test::KeptSite;
using margay::test::PageBytes;

constexpr size_t kSavedTable = 4096, kSavedText = kSavedTable + 16;  // as bindings_image.cc lays them out

void open_anything(std::span<std::byte> bytes) {
  const auto image = margay::dp::open_image(bytes, margay::test::kBootId);
  MARGAY_CHECK(image || !image.error().message.empty());
}

void adopt(KeptSite& before, uint8_t workers) {
  KeptSite after(margay::test::short_lived_site(3), static_cast<margay::dp::WorkerIndex>(1 + workers % 4), 32);
  const auto adopted = after.adopt(before);
  MARGAY_CHECK(adopted.sessions <= adopted.bindings);
  MARGAY_CHECK(after.agrees());
  MARGAY_CHECK(after.audited());
  after->pass(6 * margay::kSecond);
  MARGAY_CHECK(after->empty());
}

}  // namespace

FUZZ_TARGET(bindings) {
  if (size < 2) return 0;
  const uint8_t where = data[0], workers = data[1];
  const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
  if (where == 0) {
    PageBytes image(bytes);
    open_anything(image.span());
    return 0;
  }
  KeptSite before(margay::test::short_lived_site(10), 2, 32);
  if (where == 1) {
    PageBytes image = before.bytes();
    const auto table = bytes.first(std::min(bytes.size(), size_t{32768}));
    const uint64_t header[] = {table.size(), margay::shared_table::checksum(table)};
    std::memcpy(image.span().data() + kSavedTable, header, sizeof header);
    std::copy(table.begin(), table.end(), image.span().begin() + kSavedText);
    open_anything(image.span());
    return 0;
  }
  const auto entries = std::as_writable_bytes(before.entries(0));
  std::copy_n(bytes.begin(), std::min(bytes.size(), entries.size()), entries.begin());
  adopt(before, workers);
  return 0;
}
