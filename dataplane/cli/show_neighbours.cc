// SPDX-License-Identifier: Apache-2.0
// show neighbours
#include <algorithm>
#include <array>

#include "dataplane/cli/ask_workers.h"
#include "dataplane/cli/commands.h"
#include "dataplane/cli/names.h"

namespace margay::dp {
namespace {

// Copies those in use out of the next kEntriesPerJob.
class NeighbourScan : public WorkerJob {
 public:
  void begin_worker() { next_ = 0; }
  bool at_end() const { return next_ != 0 && next_ >= capacity_; }
  std::span<const Neighbour> found() const { return std::span(found_).first(count_); }

  void run(FastPath& fast_path, const SiteTable&) override {
    const Neighbours& neighbours = fast_path.neighbours();
    capacity_ = neighbours.count();
    count_ = 0;
    for (uint32_t n = 0; n < kEntriesPerJob && next_ < capacity_; ++n, ++next_) {
      const Neighbour& neighbour = neighbours.at(static_cast<uint32_t>(next_));
      if (neighbour.state != NeighbourState::kUnused) found_[count_++] = neighbour;
    }
  }

 private:
  size_t next_ = 0, capacity_ = 0, count_ = 0;
  std::array<Neighbour, kEntriesPerJob> found_;
};

void show(const DataPlane& plane, size_t worker, const Neighbour& n, Reply& reply) {
  const auto& ports = plane.config.ports;
  const bool heard = n.state == NeighbourState::kKnown;
  reply.row({worker, n.port < ports.size() ? Cell(ports[n.port].name) : Cell(), n.address.format(),
             n.mac.is_zero() ? Cell() : Cell(n.mac.format()), name_of(n.state),
             heard ? Cell(seconds_between(n.confirmed, to_tick(plane.now()))) : Cell(), n.attempts, n.waiting});
}

// Claims to our addresses, as the worker that defends them has seen them.
class ClaimScan : public WorkerJob {
 public:
  void run(FastPath& fast_path, const SiteTable&) override {
    const std::span<const AddressClaim> claims = fast_path.defence().claims();
    count_ = claims.size();
    std::copy(claims.begin(), claims.end(), found_.begin());
  }
  std::span<const AddressClaim> found() const { return std::span(found_).first(count_); }

 private:
  std::array<AddressClaim, Defence::kClaimsMax> found_;
  size_t count_ = 0;
};

void show_conflicts(const DataPlane& plane, AskWorkers& ask, Reply& reply) {
  reply.table("conflicts", {"port", "address", "claimed_by", "claims", "last_seconds_ago"});
  const auto scan = std::make_unique<ClaimScan>();
  if (!reply.wanted() || !ask.run(FastPath::kDefender, *scan)) return;
  for (const AddressClaim& c : scan->found()) {
    const Tick age = to_tick(plane.now()) - c.seen;
    reply.row({plane.config.ports[c.port].name, c.address.format(), c.mac.format(), c.count,
               age * static_cast<double>(kTickLength) / static_cast<double>(kSecond)});
  }
}

CommandResult show_neighbours(DataPlane& plane, Reply& reply) {
  AskWorkers ask(plane);
  const auto scan = std::make_unique<NeighbourScan>();
  reply.table("neighbours",
              {"worker", "port", "address", "mac", "state", "confirmed_seconds_ago", "attempts", "waiting_packets"});
  for (size_t w = 0; w < ask.count(); ++w) {
    scan->begin_worker();
    while (!scan->at_end() && reply.wanted() && ask.run(static_cast<WorkerIndex>(w), *scan)) {
      for (const Neighbour& n : scan->found()) show(plane, w, n, reply);
    }
  }
  show_conflicts(plane, ask, reply);
  ask.show_unanswered(reply);
  return {};
}

}  // namespace

void add_show_neighbours(CommandTable& table, DataPlane& plane) {
  table.add({"show neighbours", "next hops and hosts on link, as each worker knows them; who claims an address of ours",
             "jobs in workers, 256 entries each",
             [&plane](const Arguments&, Reply& reply) { return show_neighbours(plane, reply); }});
}

}  // namespace margay::dp
