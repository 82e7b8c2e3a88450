// SPDX-License-Identifier: Apache-2.0
// An image of bindings: each kind of damage is refused by its name, and no bytes crash the one who looks. Offsets as
// bindings_image.cc lays its header out: they are part of the format.
#include "dataplane/core/bindings_image.h"

#include <gtest/gtest.h>

#include "tests/support/kept_site.h"
#include "tests/support/seed.h"

namespace margay::test {
namespace {

constexpr size_t kMagicAt = 0, kVersionAt = 8, kLayoutAt = 12, kBootAt = 16, kProcessAt = 52, kSecretAt = 56;
constexpr size_t kTableBytesAt = 184, kWorkersAt = 192, kEntriesAt = 196, kChecksumAt = 200, kTableAt = 212;
constexpr size_t kStateAt = 216, kSavedAt = 4096, kSavedChecksumAt = 4104, kSavedTextAt = 4112;

dp::SiteConfig site() { return small_site(2, 10); }

std::string refusal(std::span<const std::byte> bytes, std::string_view boot = kBootId) {
  const auto image = dp::open_image(bytes, boot);
  return image ? "" : image.error().message;
}

template <class T>
void put(std::span<std::byte> bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class T>
T get(std::span<std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

TEST(BindingsImage, ComesBackAsItWas) {
  KeptSite kept(site(), 3, 64);
  kept.image().set_clock(77);
  kept.entries(2)[5].client_port = 99;
  PageBytes bytes = kept.bytes();
  const auto image = dp::open_image(bytes.span(), kBootId);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->process, 4711u);
  EXPECT_EQ(image->clock, 77u);
  EXPECT_EQ(image->secret.words, SmallSite::secret().words);
  ASSERT_EQ(image->entries.size(), 3u * 64);
  EXPECT_EQ(image->entries[2 * 64 + 5].client_port, 99);
  ASSERT_EQ(image->table.snapshot.scis.size(), 1u);
  EXPECT_EQ(image->table.snapshot.scis[0].instances[1].config.id, "si-2");
  ASSERT_EQ(image->table.frontends.size(), 1u);
  EXPECT_EQ(image->table.frontends.at(0).format(), "192.0.2.10:80/tcp");
}

TEST(BindingsImage, EachFieldOfTheHeader) {
  struct Row {
    size_t at;
    const char* said;
  };
  const Row rows[] = {
      {kMagicAt, "is no image of bindings"},
      {kVersionAt, "has version 254, expected 1"},
      {kLayoutAt, "has the layout of another build"},
      {kBootAt, "is of another boot, whose clock is not this one's"},
      {kBootAt + 35, "is of another boot, whose clock is not this one's"},
      {kProcessAt, "has a header with a wrong checksum"},
      {kSecretAt, "has a header with a wrong checksum"},
      {kSecretAt + 127, "has a header with a wrong checksum"},
      {kTableBytesAt, "has a header with a wrong checksum"},
      {kWorkersAt, "has a header with a wrong checksum"},
      {kEntriesAt, "has a header with a wrong checksum"},
      {kChecksumAt, "has a header with a wrong checksum"},
      {kTableAt, "names saved table 254, expected 1 or 2"},
      {kStateAt, "has state"},
      {kSavedAt + 6, "has a saved table of"},
      {kSavedAt, "has a saved table with a wrong checksum"},
      {kSavedChecksumAt, "has a saved table with a wrong checksum"},
      {kSavedTextAt + 20, "has a saved table with a wrong checksum"},
  };
  KeptSite kept(site());
  ASSERT_EQ(refusal(kept.bytes().span()), "");
  for (const Row& row : rows) {
    PageBytes bytes = kept.bytes();
    bytes.span()[row.at] ^= std::byte{0xff};
    EXPECT_EQ(refusal(bytes.span()).rfind(row.said, 0), 0u) << row.at << ": " << refusal(bytes.span());
  }
}

TEST(BindingsImage, OtherBoot) {
  KeptSite kept(site());
  EXPECT_EQ(refusal(kept.bytes().span(), "6d5c2f7e-2f83-4a4e-9a2b-0123456789ac"),
            "is of another boot, whose clock is not this one's");
}

TEST(BindingsImage, CutOffAnywhere) {
  KeptSite kept(site());
  PageBytes whole = kept.bytes();
  const size_t size = whole.span().size();
  for (const size_t bytes : {size_t{0}, size_t{1}, kStateAt, size_t{4095}}) {
    PageBytes cut(whole.span().first(bytes));
    EXPECT_EQ(refusal(cut.span()), "has " + std::to_string(bytes) + " bytes, expected at least 4096");
  }
  for (const size_t bytes : {size_t{4096}, kSavedTextAt, size / 2, size - 1}) {
    PageBytes cut(whole.span().first(bytes));
    EXPECT_EQ(refusal(cut.span()), "has " + std::to_string(bytes) + " bytes, expected " + std::to_string(size));
  }
}

TEST(BindingsImage, Zeros) {
  PageBytes zeros(1 << 20);
  EXPECT_EQ(refusal(zeros.span()), "is no image of bindings");
}

// A process that ends before its image is whole leaves none.
TEST(BindingsImage, NeverFinished) {
  const dp::ImageShape shape{1, 64, dp::table_bytes_for(1, 4)};
  PageBytes bytes(shape.bytes());
  dp::BindingsImage image(bytes.span(), shape, kBootId, SmallSite::secret(), 1);
  EXPECT_EQ(refusal(bytes.span()), "was never finished");
  image.finish();
  EXPECT_EQ(refusal(bytes.span()), "holds no saved table");
}

// What waits for a control plane's first snapshot binds nothing: its indices mean nothing yet.
TEST(BindingsImage, TableThatWaitsForControl) {
  KeptSite kept(site());
  const MacAddress macs[] = {kSitePort0, kSitePort1};
  ASSERT_TRUE(kept.image().save(*dp::SiteTable::waiting_for_control(site(), macs)));
  PageBytes bytes = kept.bytes();
  const auto image = dp::open_image(bytes.span(), kBootId);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_TRUE(image->table.snapshot.scis.empty());
}

// Two saved tables by turns: the one that does not hold may be half written.
TEST(BindingsImage, SavedTablesTakeTurns) {
  KeptSite kept(site());
  PageBytes bytes = kept.bytes();
  EXPECT_EQ(get<uint32_t>(bytes.span(), kTableAt), 1u);
  ASSERT_TRUE(kept.image().save(*kept->table));
  bytes = kept.bytes();
  EXPECT_EQ(get<uint32_t>(bytes.span(), kTableAt), 2u);
  put<uint64_t>(bytes.span(), kSavedAt, 0);
  put<uint64_t>(bytes.span(), kSavedTextAt, ~uint64_t{0});
  EXPECT_EQ(refusal(bytes.span()), "");
  ASSERT_TRUE(kept.image().save(*kept->table));
  bytes = kept.bytes();
  EXPECT_EQ(get<uint32_t>(bytes.span(), kTableAt), 1u);
}

// Better none than one that does not say what the bindings mean.
TEST(BindingsImage, TableThatDoesNotFit) {
  const dp::ImageShape shape{1, 64, 64};
  PageBytes bytes(shape.bytes());
  dp::BindingsImage image(bytes.span(), shape, kBootId, SmallSite::secret(), 1);
  SmallSite small(site());
  const auto saved = image.save(*small.table);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message.rfind("table of ", 0), 0u) << saved.error().message;
  image.finish();
  EXPECT_EQ(refusal(bytes.span()), "holds no saved table");
}

// Saved tables whose checksum is right and which are wrong all the same.
TEST(BindingsImage, SavedTableOfNonsense) {
  KeptSite kept(site());
  const auto with = [&](std::span<const std::byte> table) {
    PageBytes bytes = kept.bytes();
    put<uint64_t>(bytes.span(), kSavedAt, table.size());
    put<uint64_t>(bytes.span(), kSavedChecksumAt, shared_table::checksum(table));
    std::copy(table.begin(), table.end(), bytes.span().begin() + kSavedTextAt);
    return refusal(bytes.span());
  };
  std::vector<std::byte> nothing;
  EXPECT_EQ(with(nothing), "saved table ends early");
  for (const uint64_t frontends : {uint64_t{1}, uint64_t{1} << 60, ~uint64_t{0}}) {
    std::vector<std::byte> table(24);
    put(std::span(table), 0, frontends);
    EXPECT_EQ(with(table), "saved table ends early") << frontends;
  }
  std::vector<std::byte> zeros(4096);
  EXPECT_EQ(with(zeros).rfind("saved table: ", 0), 0u) << with(zeros);
}

TEST(BindingsImage, AnyBytesFlipped) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  KeptSite kept(site());
  const size_t looked_at = kSavedTextAt + get<uint64_t>(kept.bytes().span(), kSavedAt);
  for (int n = 0; n < 2000; ++n) {
    PageBytes bytes = kept.bytes();
    for (uint32_t flips = 1 + random.below(8); flips > 0; --flips) {
      bytes.span()[random.below(looked_at)] ^= static_cast<std::byte>(1 + random.below(255));
    }
    (void)refusal(bytes.span());  // returns; under sanitizers, cleanly
  }
}

}  // namespace
}  // namespace margay::test
