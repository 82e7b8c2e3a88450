// SPDX-License-Identifier: Apache-2.0
// explain csci, show audit, show reports-to
#include <fmt/format.h>

#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

using Steps = std::vector<std::vector<Cell>>;

void tell_report(const c_sma::CSma::LastReport& r, Nanoseconds now, Steps& steps) {
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : std::string("-"); };
  steps.push_back(
      {"report", seconds_of(now - r.at),
       fmt::format("{} {} by {}: epoch {}, sequence {}, GAS {}, Computing Time {} ms, {} healthy, {} degraded, "
                   "{} unhealthy",
                   name_of(r.trigger), r.full ? "full" : "delta", r.identity, r.order.epoch, r.order.sequence,
                   number(r.gas), number(r.computing_time_ms), r.health.healthy, r.health.degraded,
                   r.health.unhealthy)});
  steps.push_back(
      {"validation", seconds_of(now - r.at),
       fmt::format("{}{}{}{}{}", c_sma::name_of(r.judgement.verdict), r.judgement.reason().empty() ? "" : " ",
                   r.judgement.reason(), r.judgement.detail.empty() ? "" : ": ", r.judgement.detail)});
}

void tell_cache(const c_sma::CacheEntry& e, Nanoseconds now, Steps& steps) {
  steps.push_back({"cache", seconds_of(now - e.updated_at),
                   fmt::format("{}{}, GAS {}, STALE after {} s", northbound::name_of(e.state),
                               e.restored ? " (out of the state file)" : "",
                               e.metrics.gas ? std::to_string(*e.metrics.gas) : "-", seconds_of(e.ttl.gas))});
}

std::string words_of(const c_sma::Transformed& t) {
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : std::string("-"); };
  return fmt::format(
      "GAS {} added up, {} smoothed, {} with the margin, {} advertised{}; Computing Time {} ms within bounds",
      number(t.raw), number(t.smoothed), number(t.with_margin), number(t.metrics.gas),
      t.consistent ? "" : " for no SCI is HEALTHY (CSMA-52)", number(t.metrics.computing_time_ms));
}

void tell_row(const char* what, const c_sma::UpdateController::Explanation& x, Nanoseconds now, Steps& steps) {
  steps.push_back({std::string(what) + ": values", Cell(), words_of(x.steps)});
  if (!x.committed) return;
  const auto& gas = x.committed->metrics.gas;
  steps.push_back({std::string(what) + ": committed", seconds_of(now - x.at),
                   fmt::format("{}: GAS {}", c_sma::name_of(x.cause), gas ? std::to_string(*gas) : "-")});
}

}  // namespace

void add_explain(CommandTable& table, Service& service) {
  table.add(
      {"explain csci SOURCE", "an SCI's way from its report to what each C-PS has acked", "reads it",
       [&service](const Arguments& arguments, Reply& reply) -> CommandResult {
         const Agent& agent = *service.agent();
         const Nanoseconds now = read_clocks().monotonic;
         const std::string csci_id = arguments[0].text();
         const auto x = agent.core().explain(csci_id);
         if (!x) return arguments[0].error("this C-SMA does not accept reports of it");
         Steps steps;
         if (x->last_report) tell_report(*x->last_report, now, steps);
         if (x->waiting != nullptr) {
           steps.push_back({"quarantine", seconds_of(now - x->waiting->since), x->waiting->judgement.detail});
         }
         if (x->entry) tell_cache(*x->entry, now, steps);
         if (x->row) tell_row("row", *x->row, now, steps);
         if (x->site) tell_row("site row", *x->site, now, steps);
         reply.table("steps", {"step", "age_s", "what"});
         for (auto& step : steps) reply.row(std::move(step));
         if (!x->entry) return {};
         const std::string& cs_id = x->entry->id->cs_id;
         reply.table("c_ps", {"c_ps", "newest_commit", "sent", "all_acked"});
         for (const auto& link : agent.links()) {
           const auto sent = link->session().sent(cs_id);
           if (!sent) continue;
           reply.row({link->target().identity, agent.store().part(cs_id).newest, *sent, link->session().all_acked()});
         }
         return {};
       }});
}

void add_show_audit(CommandTable& table, Service& service) {
  table.add({"show audit", "where the audit log is, how long, and its head, by which lines cut off at its end show",
             "reads it", [&service](const Arguments&, Reply& reply) -> CommandResult {
               const AuditLog::Status s = service.agent()->audit_status();
               reply.field("file", s.path);
               reply.field("lines", s.lines);
               reply.field("head", s.head);
               reply.field("unsaid", s.unsaid);
               reply.field("fault", s.fault.empty() ? Cell() : Cell(s.fault));
               return {};
             }});
}

void add_show_reports_to(CommandTable& table, Service& service) {
  table.add({"show reports-to", "SCIs whose reports go to a C-SMA elsewhere, and its last verdict", "reads the streams",
             [&service](const Arguments&, Reply& reply) -> CommandResult {
               reply.table("reports_to", {"csci_id", "address", "open", "connections", "sent", "answered", "not_sent",
                                          "verdict", "reason", "why"});
               for (const auto& [csci_id, s] : service.streams().status()) {
                 const auto text = [](const std::string& t) { return t.empty() ? Cell() : Cell(t); };
                 reply.row({csci_id, s.address, s.open, s.connections, s.sent, s.answered, s.not_sent, text(s.verdict),
                            text(s.reason), text(s.why)});
               }
               return {};
             }});
}

}  // namespace margay::control
