// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small site whose bindings lie in an image (dataplane/core/bindings_image.h), and which takes over the bindings of
// another one that has ended. Test code only, one thread.

#include <algorithm>
#include <span>
#include <vector>

#include "dataplane/core/adoption.h"
#include "tests/support/small_site.h"

namespace margay::test {

inline constexpr std::string_view kBootId = "6d5c2f7e-2f83-4a4e-9a2b-0123456789ab";

// Two instances, and every binding without packets ends within six seconds.
inline dp::SiteConfig short_lived_site(uint32_t max_sessions) {
  dp::SiteConfig site = small_site(2, max_sessions);
  site.scis[0].affinity_timeout = site.scis[0].timers.time_wait = dp::kSecond;
  site.scis[0].timers.closing = dp::kSecond;
  return site;
}

// Bytes that begin on a page.
class PageBytes {
 public:
  explicit PageBytes(size_t size) : pages_((size + sizeof(Page) - 1) / sizeof(Page)), size_(size) {}
  explicit PageBytes(std::span<const std::byte> from) : PageBytes(from.size()) {
    std::copy(from.begin(), from.end(), span().begin());
  }
  std::span<std::byte> span() { return {reinterpret_cast<std::byte*>(pages_.data()), size_}; }

 private:
  struct alignas(4096) Page {
    std::byte bytes[4096]{};
  };
  std::vector<Page> pages_;
  size_t size_;
};

class KeptSite {
 public:
  explicit KeptSite(const dp::SiteConfig& config, dp::WorkerIndex workers = 1, uint32_t flows = 64,
                    dp::Nanoseconds now = 1000 * dp::kSecond)
      : shape_{workers, flows, dp::table_bytes_for(1, 4)},
        memory_(shape_.bytes()),
        image_(memory_.span(), shape_, kBootId, SmallSite::secret(), 4711),
        site_(config, flows, workers, &image_, now) {
    MARGAY_CHECK(image_.save(*site_.table));
    image_.finish();
  }

  // What a process that is killed now leaves behind.
  PageBytes bytes() { return PageBytes(memory_.span()); }
  dp::BindingsImage& image() { return image_; }
  SmallSite& operator*() { return site_; }
  SmallSite* operator->() { return &site_; }
  std::span<dp::FlowEntry> entries(dp::WorkerIndex w = 0) { return image_.entries(w); }

  // REQUIRES: nothing is bound yet.
  dp::Adopted adopt(const dp::OpenedImage& found) {
    std::vector<dp::FastPath*> workers;
    for (const auto& f : site_.fast_paths) workers.push_back(f.get());
    return dp::adopt_bindings(found, *site_.table, site_.shared, workers, dp::to_tick(site_.now));
  }
  // REQUIRES: `before` left a good image.
  dp::Adopted adopt(KeptSite& before) {
    before.image().set_clock(dp::to_tick(before->now));
    PageBytes left = before.bytes();
    const auto found = dp::open_image(left.span(), kBootId);
    MARGAY_CHECK(found);
    return adopt(*found);
  }

  // Whether counters and ledgers say what the bindings say.
  bool agrees() {
    std::vector<uint64_t> bindings(site_.table->instances.size()), held(bindings), unproven(bindings);
    for (const auto& f : site_.fast_paths) {
      for (const dp::FlowEntry& e : entries(f->self())) {
        if (e.state == dp::FlowState::kFree) continue;
        ++bindings[e.instance];
        held[e.instance] += (e.flags & dp::kHoldsSlot) != 0;
        unproven[e.instance] += (e.flags & dp::kHoldsProvisional) != 0;
      }
    }
    for (dp::InstanceIndex i = 0; i < bindings.size(); ++i) {
      const dp::SlotView s = site_.slots(i), p = site_.shared.provisional.view(i);
      if (site_.shared.bindings(i) != bindings[i] || site_.active(i) != held[i]) return false;
      if (s.active != held[i] || p.active != unproven[i]) return false;
      uint64_t counted = 0;
      for (const auto& f : site_.fast_paths) counted += site_.shared.counters(f->self(), i).provisional.get();
      if (counted != unproven[i]) return false;
    }
    return true;
  }
  // Lets the audit go round; false when it met a difference.
  bool audited() {
    site_.pass(dp::kSecond / 2);
    for (const auto& f : site_.fast_paths) {
      const auto& counters = site_.shared.worker_counters[f->self()];
      if (counters.audit_passes.get() == 0 || counters.audit_differences.get() != 0) return false;
    }
    return true;
  }

 private:
  dp::ImageShape shape_;
  PageBytes memory_;
  dp::BindingsImage image_;
  SmallSite site_;
};

}  // namespace margay::test
