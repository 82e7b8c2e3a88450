// SPDX-License-Identifier: Apache-2.0
// show c-ps, reconnect
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

std::string_view word_of(const CpsLink& link) {
  switch (link.session().state()) {
    case northbound::SenderSession::State::kApart:
      return "away";
    case northbound::SenderSession::State::kAwaitsHello:
      return "greeting";
    case northbound::SenderSession::State::kEstablished:
      return link.session().all_acked() ? "in step" : "sending";
  }
  return "?";
}

}  // namespace

void add_show_c_ps(CommandTable& table, Service& service) {
  table.add({"show c-ps", "each C-PS: its session, and what was wrong with its messages", "reads the sessions",
             [&service](const Arguments&, Reply& reply) -> CommandResult {
               const Agent& agent = *service.agent();
               const Nanoseconds now = read_clocks().monotonic;
               reply.table("c_ps", {"c_ps", "address", "cs_ids", "state", "connections", "sent", "received", "unacked",
                                    "rows_refused", "next_try_s", "why"});
               for (const auto& link : agent.links()) {
                 const CpsLink::Status& s = link->status();
                 const bool away = link->session().state() == northbound::SenderSession::State::kApart;
                 const Nanoseconds at = link->session().connect_at();
                 reply.row({link->target().identity, link->target().address, link->target().cs_ids, word_of(*link),
                            s.connections, s.sent, s.received, link->session().unacked(), link->session().refused(),
                            away ? Cell(at > now ? seconds_of(at - now) : uint64_t{0}) : Cell(),
                            s.why.empty() ? Cell() : Cell(s.why)});
               }
               reply.table("faults", {"c_ps", "reason", "count", "meaning"});
               for (const auto& link : agent.links()) {
                 for (size_t f = 0; f < northbound::kFaults; ++f) {
                   const auto fault = static_cast<northbound::Fault>(f);
                   const uint64_t count = link->session().peer().faults.of(fault);
                   if (count > 0) {
                     reply.row({link->target().identity, northbound::name_of(fault), count,
                                northbound::text_of(fault).meaning});
                   }
                 }
               }
               return {};
             }});
}

void add_reconnect(CommandTable& table, Service& service) {
  table.add({"reconnect", "call every C-PS that is away now, without waiting", "the next turn does it",
             [&service](const Arguments&, Reply& reply) -> CommandResult {
               uint64_t called = 0;
               for (const auto& link : service.agent()->links()) {
                 if (link->session().state() != northbound::SenderSession::State::kApart) continue;
                 link->call_now();
                 ++called;
               }
               reply.field("called", called);
               return {};
             }});
}

}  // namespace margay::control
