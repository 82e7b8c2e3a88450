// SPDX-License-Identifier: Apache-2.0
#pragma once

// Jobs in workers, for commands: each bounded, each waited for at most kPatience. A worker that does not answer is
// left alone for the rest of the command and named in its reply. Control thread.

#include <bitset>
#include <vector>

#include "common/cli/reply.h"
#include "dataplane/data_plane.h"

namespace margay::dp {

inline constexpr Nanoseconds kPatience = kSecond;
// Entries that one job looks at: some 20 us of a worker's time when none is in its cache.
inline constexpr uint32_t kEntriesPerJob = 256;

class AskWorkers {
 public:
  explicit AskWorkers(DataPlane& plane) : plane_(plane) {}

  size_t count() const { return plane_.mailboxes.size(); }
  // False when the worker does not answer, now or earlier.
  [[nodiscard]] bool run(WorkerIndex w, WorkerJob& job);
  // A field that names those that did not answer; nothing when all did.
  void show_unanswered(Reply& reply) const;

 private:
  DataPlane& plane_;
  std::bitset<kWorkersMax> silent_;
};

}  // namespace margay::dp
