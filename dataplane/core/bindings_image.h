// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bindings as bytes that outlive the process: what lies where, how it is written, and how it is checked again. Offsets
// only. A later process of the same boot and build believes nothing of it: open_image() checks the header, the sizes
// and the saved table; each binding is looked at when it is adopted (dataplane/core/adoption.h).
//
//   header          of which build, boot and process; the hash secret; the sizes; a checksum of these. Then what
//                   changes while the image is in use: the clock, which saved table holds, and the state, written last
//   saved tables    two, by turns: what the indices in bindings mean, and the control plane's last snapshot
//   bindings        FlowEntry, by worker
//
// Threads: one at a time. The entries are the workers' own.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

#include "common/result.h"
#include "common/shared_table/snapshot.h"
#include "dataplane/core/flow_entry.h"
#include "dataplane/core/flow_table.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

struct ImageShape {
  uint32_t workers = 1;
  uint32_t entries = 0;      // of each worker
  uint64_t table_bytes = 0;  // room for a saved table

  size_t bytes() const;  // of the image
};

// Room for any saved table of a site of so many SCIs and instances.
uint64_t table_bytes_for(size_t scis, size_t instances);

// What the indices in bindings mean.
struct SavedTable {
  std::unordered_map<FrontendIndex, Endpoint> frontends;
  shared_table::Snapshot snapshot;
};

class BindingsImage {
 public:
  BindingsImage() = default;
  // Begins an image that is refused until finish(). REQUIRES: shape.bytes() of zeros on a page; 36 characters of boot
  // id, as the kernel tells it.
  BindingsImage(std::span<std::byte> bytes, const ImageShape& shape, std::string_view boot_id, const HashSecret& secret,
                uint32_t process);

  std::span<FlowEntry> entries(WorkerIndex w) const;
  // From its return on the table is the saved one. When it does not fit, none is: the image is refused then.
  Result<void> save(const SiteTable& table);
  // The workers' clock: what a binding's age is told by, when this is the last that was said.
  void set_clock(Tick now);
  void finish();

 private:
  std::span<std::byte> bytes_;
  ImageShape shape_;
};

struct OpenedImage {
  HashSecret secret;
  uint32_t process = 0;  // that wrote it
  Tick clock = 0;        // as set_clock() said last
  SavedTable table;
  std::span<const FlowEntry> entries;  // of all workers
};

// The error says what is wrong, as "is of another boot". REQUIRES: bytes begin on a cache line.
Result<OpenedImage> open_image(std::span<const std::byte> bytes, std::string_view boot_id);

}  // namespace margay::dp
