// SPDX-License-Identifier: Apache-2.0
#include "dataplane/cli/ask_workers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace margay::dp {

bool AskWorkers::run(WorkerIndex w, WorkerJob& job) {
  if (silent_[w]) return false;
  if (plane_.mailboxes[w].run(job, kPatience)) return true;
  silent_.set(w);
  return false;
}

void AskWorkers::show_unanswered(Reply& reply) const {
  std::vector<uint64_t> silent;
  for (size_t w = 0; w < count(); ++w) {
    if (silent_[w]) silent.push_back(w);
  }
  if (silent.empty()) return;
  reply.field("unanswered_workers", silent,
              fmt::format("worker {} did not answer within {} s: its part is missing", fmt::join(silent, ", "),
                          kPatience / kSecond));
}

}  // namespace margay::dp
