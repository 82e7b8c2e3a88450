// SPDX-License-Identifier: Apache-2.0
#pragma once

// decisions.jsonl: what the fast path did and why, one JSON object a line, fields in a fixed order (docs/replay.md
// lists them). Four kinds, told apart by their first field:
//   "packet"  an input packet and its first outcome: exactly one line for each, in input order
//   "later"   what became of a packet that had been held (its next hop was not known yet)
//   "own"     a frame that the data plane made itself
//   "ended"   sessions whose slots were released: how many, of which instance, why (after the packet that did it,
//             or when a timer did)
// Lines of one step (packets that arrive together) are kept until the step is over: input packets stand first, the
// rest in the order in which it happened. No line depends on anything but the input, the site file, the number of
// workers and the seed. One thread.

#include <cstdint>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/core/packet.h"
#include "dataplane/core/site_config.h"
#include "dataplane/core/site_table.h"

namespace margay::dp {

// An input packet as its lines name it.
struct InputPacket {
  uint64_t number = 0;  // from 1, over all ports in the order of time
  PortIndex port = kNoPort;
  Nanoseconds time = 0;
  uint32_t length = 0;  // on the wire
};

// Sent, but not forwarded: the packet was turned into a reset or an ICMP message in place, and goes back.
bool is_answer(const PacketTrace& trace, const Outcome& outcome);

class DecisionLog {
 public:
  // REQUIRES: site and table outlive this.
  static Result<DecisionLog> create(const std::string& file, const SiteConfig& site, const SiteTable& table);

  // `workers`: the path, the owner last.
  void decided(const InputPacket& packet, std::span<const WorkerIndex> workers, const Parsed& parsed,
               const PacketTrace& trace, const Outcome& outcome);
  // A packet that no worker saw; `reason` is the replay's own.
  void refused(const InputPacket& packet, std::string_view reason);
  void later(uint64_t number, Nanoseconds now, WorkerIndex worker, const Outcome& outcome);
  void own(Nanoseconds now, WorkerIndex worker, const Frame& frame, const Parsed& parsed);
  void ended(Nanoseconds now, WorkerIndex worker, InstanceIndex instance, EndReason why, uint64_t slots);

  uint64_t slot_changes() const { return slot_changes_; }  // packets that took or released a slot, so far

  // Lines name SCIs and instances by this table from here on. REQUIRES: it outlives their use.
  void follow(const SiteTable& table) { table_ = &table; }
  void end_step();
  Result<void> close();

 private:
  DecisionLog(const std::string& file, const SiteConfig& site, const SiteTable& table)
      : file_(file), site_(&site), table_(&table), out_(file, std::ios::binary | std::ios::trunc) {}

  std::string file_;
  const SiteConfig* site_;
  const SiteTable* table_;
  std::ofstream out_;
  uint64_t own_ = 0;
  uint64_t slot_changes_ = 0;
  std::map<uint64_t, std::string> packets_;  // of this step, by number
  std::vector<std::string> others_;
};

// "1700000000.000000123"
std::string format_time(Nanoseconds time);

}  // namespace margay::dp
