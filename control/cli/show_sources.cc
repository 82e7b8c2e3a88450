// SPDX-License-Identifier: Apache-2.0
// show sources, show cache
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

// A copy of what the Metric Cache holds, by CSCI-ID.
std::map<std::string, c_sma::CacheEntry> entries_of(const Agent& agent) {
  std::map<std::string, c_sma::CacheEntry> entries;
  agent.core().cache().for_each([&](const c_sma::CacheEntry& e) { entries.emplace(e.id->csci_id, e); });
  return entries;
}

const northbound::RowStore::Entry* committed(const Agent& agent, const std::string& cs_id, const std::string& csci_id) {
  const auto& entries = agent.store().part(cs_id).entries;
  const auto found = entries.find(csci_id);
  return found == entries.end() ? nullptr : &found->second;
}

// By which ways its reports come; empty: none is open now.
std::string ways_of(const Agent& agent, const std::string& csci_id, bool has_stream, const PullPlan::Pull* pull) {
  std::string ways = agent.is_co_located(csci_id) ? "process" : has_stream ? "stream" : "";
  if (pull != nullptr)
    ways += std::string(ways.empty() ? "" : ", ") + (pull->target.url.empty() ? "grpc" : "http") + " pull";
  return ways;
}

const PullPlan::Pull* pull_of(const Agent& agent, const std::string& csci_id) {
  if (agent.puller() == nullptr) return nullptr;
  const auto& pulls = agent.puller()->plan().pulls();
  const auto found = pulls.find(csci_id);
  return found == pulls.end() ? nullptr : &found->second;
}

}  // namespace

void add_show_sources(CommandTable& table, Service& service) {
  table.add({"show sources", "each SCI that may report: who does, by which way, and what became of the last report",
             "reads the Metric Cache", [&service](const Arguments&, Reply& reply) -> CommandResult {
               const Agent& agent = *service.agent();
               const Nanoseconds now = read_clocks().monotonic;
               const auto entries = entries_of(agent);
               reply.table("sources", {"csci_id", "cs_id", "state", "since_s", "heard_s", "identity", "by", "stream",
                                       "skew_ms", "epoch", "sequence", "trigger", "verdict", "reason", "pulled",
                                       "pull_failed", "pull_fault"});
               for (const c_sma::AcceptedSci& accepted : agent.spec().core.accept) {
                 if (!reply.wanted()) return {};
                 const auto found = entries.find(accepted.csci_id);
                 const c_sma::CacheEntry* e = found == entries.end() ? nullptr : &found->second;
                 const auto told = agent.core().explain(accepted.csci_id);
                 const auto* last = told && told->last_report ? &*told->last_report : nullptr;
                 const auto stream = agent.core().stream_of(accepted.csci_id);
                 const bool has_stream = stream && *stream != 0;
                 const auto* pull = pull_of(agent, accepted.csci_id);
                 const std::string ways = ways_of(agent, accepted.csci_id, has_stream, pull);
                 const auto skew = last ? agent.core().clocks().estimate(last->identity) : std::nullopt;
                 reply.row({accepted.csci_id, accepted.cs_id, e ? Cell(northbound::name_of(e->state)) : Cell(),
                            e ? Cell(seconds_of(now - e->state_since)) : Cell(),
                            e ? Cell(seconds_of(now - e->heard_at)) : Cell(), last ? Cell(last->identity) : Cell(),
                            ways.empty() ? Cell() : Cell(ways), has_stream ? Cell(*stream) : Cell(),
                            skew ? Cell(*skew) : Cell(), last ? Cell(last->order.epoch) : Cell(),
                            last ? Cell(last->order.sequence) : Cell(), last ? Cell(name_of(last->trigger)) : Cell(),
                            last ? Cell(c_sma::name_of(last->judgement.verdict)) : Cell(),
                            last && !last->judgement.reason().empty() ? Cell(last->judgement.reason()) : Cell(),
                            pull ? Cell(pull->answered) : Cell(), pull ? Cell(pull->failed) : Cell(),
                            pull && !pull->fault.empty() ? Cell(pull->fault) : Cell()});
               }
               return {};
             }});
}

void add_show_cache(CommandTable& table, Service& service) {
  table.add({"show cache", "the Metric Cache, and the version under which each SCI was advertised last",
             "reads the Metric Cache", [&service](const Arguments&, Reply& reply) -> CommandResult {
               const Agent& agent = *service.agent();
               const Nanoseconds now = read_clocks().monotonic;
               reply.table("cache",
                           {"csci_id", "cs_id", "gas", "computing_time_ms", "price", "reputation", "security_level",
                            "health", "admin", "state", "restored", "age_s", "ttl_s", "sequence", "epoch", "commit"});
               for (const auto& [csci_id, e] : entries_of(agent)) {
                 if (!reply.wanted()) return {};
                 const auto* row = committed(agent, e.id->cs_id, csci_id);
                 const bool out = row != nullptr && row->row;
                 reply.row({csci_id, e.id->cs_id, cell_of(e.metrics.gas), cell_of(e.metrics.computing_time_ms),
                            cell_of(e.metrics.price), cell_of(e.metrics.reputation), cell_of(e.metrics.security_level),
                            name_of(e.health.sci_health()), name_of(e.admin), northbound::name_of(e.state), e.restored,
                            seconds_of(now - e.updated_at), seconds_of(e.ttl.gas), e.sequence,
                            out ? Cell(row->row->version.epoch) : Cell(),
                            out ? Cell(row->row->version.commit) : Cell()});
               }
               return {};
             }});
}

}  // namespace margay::control
