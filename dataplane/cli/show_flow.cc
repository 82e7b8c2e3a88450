// SPDX-License-Identifier: Apache-2.0
// show flow [filters] [limit N]
#include <array>

#include <fmt/format.h>

#include "dataplane/cli/ask_workers.h"
#include "dataplane/cli/commands.h"
#include "dataplane/cli/kinds.h"
#include "dataplane/cli/names.h"

namespace margay::dp {
namespace {

constexpr uint64_t kRowsDefault = 100;

struct Filter {
  std::optional<IpAddress> client;
  std::optional<uint16_t> client_port;  // wire order
  std::optional<Protocol> protocol;
  std::optional<FlowState> state;
  std::optional<WorkerIndex> worker;
  SciIndex sci = kNoIndex;
  InstanceIndex instance = kNoIndex;

  bool wants(const FlowEntry& e, const SiteTable& table) const {
    return e.state != FlowState::kFree && (!client || e.client == *client) &&
           (!client_port || e.client_port == *client_port) && (!protocol || e.protocol == *protocol) &&
           (!state || e.state == *state) && (instance == kNoIndex || e.instance == instance) &&
           (sci == kNoIndex || table.frontends[e.frontend].sci == sci);
  }
};

// Copies what the filter wants out of the next kEntriesPerJob entries.
class FlowScan : public WorkerJob {
 public:
  explicit FlowScan(const Filter& filter) : filter_(filter) {}

  void begin_worker() { next_ = 0; }
  bool at_end() const { return next_ != 0 && next_ >= capacity_; }
  std::span<const FlowEntry> found() const { return std::span(found_).first(count_); }

  void run(FastPath& fast_path, const SiteTable& table) override {
    const FlowTable& flows = fast_path.table();
    capacity_ = flows.capacity();
    count_ = 0;
    for (uint32_t n = 0; n < kEntriesPerJob && next_ < capacity_; ++n, ++next_) {
      const FlowEntry& e = flows[static_cast<EntryIndex>(next_)];
      if (filter_.wants(e, table)) found_[count_++] = e;
    }
  }

 private:
  const Filter& filter_;
  size_t next_ = 0, capacity_ = 0, count_ = 0;
  std::array<FlowEntry, kEntriesPerJob> found_;
};

std::string_view slot_of(const FlowEntry& e) {
  if ((e.flags & kHoldsSlot) == 0) return "none";
  return (e.flags & kHoldsProvisional) != 0 ? "provisional" : "held";
}

// The tick at which the binding ends if no packet comes.
Tick end_of(const FlowEntry& e, const Instance& instance, const Sci& sci) {
  const Tick idle = e.last_seen + FastPath::timeout(e, sci);
  const bool drained = instance.admin == Admin::kDraining && tick_after(idle, instance.drain_deadline);
  return drained ? instance.drain_deadline : idle;
}

void show(const DataPlane& plane, WorkerIndex w, const FlowEntry& e, Reply& reply) {
  const SiteTable& table = plane.table();
  const Instance& instance = table.instances[e.instance];
  const Sci& sci = table.scis[instance.sci];
  const Tick now = to_tick(plane.now());
  reply.row({w, AddressPort{e.client, from_wire16(e.client_port)}.format(),
             table.frontends[e.frontend].endpoint.format(), sci.csci_id, instance.si_id, address_of(instance),
             name_of(e.state), slot_of(e), (e.flags & kAdopted) != 0, seconds_between(e.last_seen, now),
             seconds_between(now, end_of(e, instance, sci))});
}

Filter read_filter(const DataPlane& plane, const Arguments& arguments) {
  const SiteTable& table = plane.table();
  Filter filter;
  if (const auto* o = arguments.option("client")) filter.client = o->front().address();
  if (const auto* o = arguments.option("client-port")) {
    filter.client_port = to_wire16(static_cast<uint16_t>(o->front().number()));
  }
  if (const auto* o = arguments.option("sci")) filter.sci = table.sci_by_name(o->front().text());
  if (const auto* o = arguments.option("instance")) {
    filter.instance = table.instance_by_name(o->at(0).text(), o->at(1).text());
  }
  if (const auto* o = arguments.option("state")) filter.state = flow_state_of(o->front().text());
  if (const auto* o = arguments.option("protocol")) {
    filter.protocol = o->front().text() == "tcp" ? Protocol::kTcp : Protocol::kUdp;
  }
  if (const auto* o = arguments.option("worker")) filter.worker = static_cast<WorkerIndex>(o->front().number());
  return filter;
}

// Shows a worker's flows as long as `rows` lasts; true when there are more.
bool show_worker(DataPlane& plane, AskWorkers& ask, WorkerIndex w, FlowScan& scan, uint64_t& rows, Reply& reply) {
  scan.begin_worker();
  while (!scan.at_end() && reply.wanted() && ask.run(w, scan)) {
    for (const FlowEntry& e : scan.found()) {
      if (rows == 0) return true;
      show(plane, w, e, reply);
      --rows;
    }
  }
  return false;
}

CommandResult show_flow(DataPlane& plane, const Arguments& arguments, Reply& reply) {
  const Filter filter = read_filter(plane, arguments);
  const auto* limit = arguments.option("limit");
  const uint64_t rows_wanted = limit != nullptr ? limit->front().number() : kRowsDefault;
  uint64_t rows = rows_wanted;
  const auto scan = std::make_unique<FlowScan>(filter);
  AskWorkers ask(plane);
  reply.table("flows", {"worker", "client", "endpoint", "csci_id", "si_id", "instance", "state", "slot", "adopted",
                        "idle_seconds", "ends_in_seconds"});
  bool more = false;
  for (size_t w = 0; w < ask.count() && !more; ++w) {
    if (filter.worker && *filter.worker != w) continue;
    more = show_worker(plane, ask, static_cast<WorkerIndex>(w), *scan, rows, reply);
  }
  reply.field("more", more,
              more ? fmt::format("more than {} match: raise the limit or filter", rows_wanted)
                   : fmt::format("{} in all", rows_wanted - rows));
  ask.show_unanswered(reply);
  return {};
}

}  // namespace

void add_show_flow(CommandTable& table, DataPlane& plane) {
  table.add(
      {"show flow [client ADDRESS] [client-port PORT-NUMBER] [sci CSCI-ID] [instance CSCI-ID SI-ID] "
       "[state FLOW-STATE] [protocol PROTOCOL] [worker WORKER] [limit ROWS]",
       "bindings of flows to instances, 100 unless a limit is given",
       "jobs in workers, 256 entries each; the list is not one moment's",
       [&plane](const Arguments& arguments, Reply& reply) { return show_flow(plane, arguments, reply); }});
}

}  // namespace margay::dp
