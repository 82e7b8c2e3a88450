// SPDX-License-Identifier: Apache-2.0
#include "common/shared_table/heartbeat_watch.h"

namespace margay::shared_table {

std::vector<HeartbeatWatch::News> HeartbeatWatch::look(Nanoseconds now) {
  std::vector<News> news;
  for (size_t w = 0; w < workers_.size(); ++w) {
    Seen& seen = seen_[w];
    const uint64_t heartbeat = workers_[w].polls.get();
    const Nanoseconds stood_still = now - seen.since;
    const bool stalled = heartbeat == seen.heartbeat && stood_still >= kPatience;
    if (stalled != seen.stalled) {
      news.push_back({static_cast<uint32_t>(w), stalled, stood_still});
      seen.stalled = stalled;
    }
    if (heartbeat != seen.heartbeat) seen = {.heartbeat = heartbeat, .since = now, .stalled = false};
  }
  return news;
}

}  // namespace margay::shared_table
