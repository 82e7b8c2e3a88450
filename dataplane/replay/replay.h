// SPDX-License-Identifier: Apache-2.0
#pragma once

// Deterministic replay: the real fast path and the real poll loop over captures, all workers stepped in one thread,
// the captures' time stamps as the clock. Same input, site file, workers and seed give the same bytes: secrets come
// from the seed, nothing reads a clock, an address or the order of a hash map.
//
// A step: frames of one port with one time stamp (at most kBurstMax) arrive together, then all workers are polled in
// turn until nothing moves any more. Between steps the clock goes on in ticks of 10 ms for as long as any binding or
// held packet is there, so that every timer fires in its own time; else it jumps. A recorded change of the table comes
// before the packets of its time, by the running data plane's own code (core/live_site.h), and all workers use it at
// once.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/result.h"
#include "dataplane/core/site_config.h"
#include "dataplane/replay/replay_io.h"

namespace margay::dp {

struct ReplayInput {
  PortIndex port = kNoPort;
  std::string file;
};

struct ReplayOptions {
  SiteConfig site;
  std::vector<ReplayInput> inputs;
  WorkerIndex workers = 1;  // 1..kWorkersMax
  uint64_t seed = 1;
  bool assume_neighbours = false;
  std::string table;          // recorded changes of the site table; empty: the site file's all along
  bool drain = true;          // go on after the last packet until every timer has run out
  std::filesystem::path out;  // directory; made, and its files of an earlier replay overwritten
};

// Writes PORT.pcap, PORT-kernel.pcap, decisions.jsonl and counters.json into `out`. After an error these are
// incomplete.
Result<Account> replay(ReplayOptions options);

}  // namespace margay::dp
