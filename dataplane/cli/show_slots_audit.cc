// SPDX-License-Identifier: Apache-2.0
// show slots audit: three counts of the same slots, which agree when nothing is lost (SCI-90, SCI-92).
#include "dataplane/cli/ask_workers.h"
#include "dataplane/cli/commands.h"
#include "dataplane/cli/totals.h"

namespace margay::dp {
namespace {

// Counts the slot bits of the next kEntriesPerJob entries into the command's own memory.
class SlotCount : public WorkerJob {
 public:
  explicit SlotCount(size_t instances) : held_(instances), provisional_(instances) {}

  void begin_worker() { next_ = 0; }
  bool at_end() const { return next_ != 0 && next_ >= capacity_; }
  uint64_t held(InstanceIndex i) const { return held_[i]; }
  uint64_t provisional(InstanceIndex i) const { return provisional_[i]; }

  void run(FastPath& fast_path, const SiteTable&) override {
    const FlowTable& flows = fast_path.table();
    capacity_ = flows.capacity();
    for (uint32_t n = 0; n < kEntriesPerJob && next_ < capacity_; ++n, ++next_) {
      const FlowEntry& e = flows[static_cast<EntryIndex>(next_)];
      if (e.state == FlowState::kFree || e.instance >= held_.size()) continue;
      held_[e.instance] += (e.flags & kHoldsSlot) != 0;
      provisional_[e.instance] += (e.flags & kHoldsProvisional) != 0;
    }
  }

 private:
  std::vector<uint64_t> held_, provisional_;  // by instance
  size_t next_ = 0, capacity_ = 0;
};

class Nothing : public WorkerJob {
 public:
  void run(FastPath&, const SiteTable&) override {}
};

// A proof gives a provisional slot back while its session goes on; between two equal counts of sessions opened nothing
// takes one, so that each proof shows as one less.
struct Moves {
  uint64_t opened = 0, ended = 0, provisional = 0;
  friend bool operator==(const Moves&, const Moves&) = default;
};

std::vector<Moves> moves_of(const DataPlane& plane) {
  std::vector<Moves> moves;
  for (InstanceIndex i = 0; i < plane.table().instances.size(); ++i) {
    const InstanceTotals t = totals_of(plane.shared, i);
    moves.push_back({t.opened, t.ended_in_all(), plane.shared.provisional.view(i).active});
  }
  return moves;
}

// A job that has run in every worker parts what was before it from what comes after.
bool pass_through_all(AskWorkers& ask) {
  Nothing nothing;
  bool all = true;
  for (size_t w = 0; w < ask.count(); ++w) all = ask.run(static_cast<WorkerIndex>(w), nothing) && all;
  return all;
}

bool count_all(AskWorkers& ask, SlotCount& count, const Reply& reply) {
  for (size_t w = 0; w < ask.count(); ++w) {
    count.begin_worker();
    while (!count.at_end()) {
      if (!reply.wanted() || !ask.run(static_cast<WorkerIndex>(w), count)) return false;
    }
  }
  return true;
}

// One instance's slots, counted in each way.
struct Counted {
  uint64_t ledger = 0, counter = 0, provisional_ledger = 0;
  uint64_t entries = 0, provisional_entries = 0;
  bool moved = false;  // a session began, was proven or ended meanwhile: the counts belong to different moments

  static int64_t difference(uint64_t a, uint64_t b) { return static_cast<int64_t>(a) - static_cast<int64_t>(b); }
  int64_t by_ledger() const { return difference(ledger, entries); }
  int64_t by_counter() const { return difference(counter, entries); }
  int64_t by_provisional() const { return difference(provisional_ledger, provisional_entries); }
  bool differs() const { return !moved && (by_ledger() != 0 || by_counter() != 0 || by_provisional() != 0); }
};

// Nothing when not every worker answered to the end.
std::optional<std::vector<Counted>> count_slots(DataPlane& plane, AskWorkers& ask, const Reply& reply) {
  const size_t instances = plane.table().instances.size();
  SlotCount entries(instances);
  if (!pass_through_all(ask)) return std::nullopt;
  const std::vector<Moves> before = moves_of(plane);
  if (!count_all(ask, entries, reply)) return std::nullopt;
  std::vector<Counted> counted;
  for (InstanceIndex i = 0; i < instances; ++i) {
    counted.push_back({plane.shared.slots.view(i).active, plane.shared.active(i),
                       plane.shared.provisional.view(i).active, entries.held(i), entries.provisional(i)});
  }
  if (!pass_through_all(ask)) return std::nullopt;
  const std::vector<Moves> after = moves_of(plane);
  for (InstanceIndex i = 0; i < instances; ++i) counted[i].moved = before[i] != after[i];
  return counted;
}

void show(const DataPlane& plane, InstanceIndex i, const Counted& c, Reply& reply) {
  const Instance& instance = plane.table().instances[i];
  const auto judged = [&](int64_t difference) { return c.moved ? Cell() : Cell(difference); };
  reply.row({plane.table().scis[instance.sci].csci_id, instance.si_id, c.ledger, c.counter, c.entries,
             judged(c.by_ledger()), judged(c.by_counter()), c.provisional_ledger, c.provisional_entries,
             judged(c.by_provisional()), c.moved});
}

// What the workers' own audit has found; returns how many differences.
uint64_t show_running_audit(const DataPlane& plane, Reply& reply) {
  uint64_t differences = 0;
  reply.table("running_audit", {"worker", "passes", "differences"});
  for (size_t w = 0; w < plane.shared.workers; ++w) {
    const WorkerCounters& c = plane.shared.worker_counters[w];
    reply.row({w, c.audit_passes.get(), c.audit_differences.get()});
    differences += c.audit_differences.get();
  }
  return differences;
}

CommandResult audit(DataPlane& plane, Reply& reply) {
  AskWorkers ask(plane);
  const std::optional<std::vector<Counted>> counted = count_slots(plane, ask, reply);
  uint64_t differences = 0;
  reply.table("instances",
              {"csci_id", "si_id", "ledger_active", "counter_active", "entries", "ledger_difference",
               "counter_difference", "provisional_active", "provisional_entries", "provisional_difference", "moved"});
  for (const Sci& sci : plane.table().scis) {
    for (const InstanceIndex i : sci.instances) {
      if (!counted) continue;
      show(plane, i, (*counted)[i], reply);
      differences += (*counted)[i].differs();
    }
  }
  differences += show_running_audit(plane, reply);
  reply.field("differences", differences);
  reply.field("complete", counted.has_value(),
              counted ? "every entry was counted; instances that moved meanwhile are not judged"
                      : "not every entry could be counted");
  ask.show_unanswered(reply);
  return {};
}

}  // namespace

void add_show_slots_audit(CommandTable& table, DataPlane& plane) {
  table.add({"show slots audit", "each instance's slots by ledger, by counter and by entries, and their differences",
             "jobs in workers over every entry, 256 each; exact for instances on which nothing moves meanwhile",
             [&plane](const Arguments&, Reply& reply) { return audit(plane, reply); }});
}

}  // namespace margay::dp
