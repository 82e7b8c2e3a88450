// SPDX-License-Identifier: Apache-2.0
// show sessions
#include "common/monotonic.h"
#include "control/cps/cli/commands.h"

namespace margay::cps {

void add_show_sessions(CommandTable& table, CpsService& service) {
  table.add({"show sessions", "the C-SMAs, their sessions, and what was refused by reason", "reads what was counted",
             [&service](const Arguments&, Reply& reply) -> CommandResult {
               const Nanoseconds now = monotonic_now();
               reply.table("c_smas", {"c_sma", "state", "address", "since_s", "sessions", "messages", "snapshots",
                                      "mismatches", "rows", "rows_refused", "why"});
               for (const auto& [identity, c_sma] : service.c_smas()) {
                 const CpsService::Session* live = nullptr;
                 for (const auto& [id, session] : service.sessions()) {
                   if (session.c_sma == identity && !session.closing) live = &session;
                 }
                 const auto site = service.table().sites().find(identity);
                 uint64_t rows = 0, refused = 0;
                 if (site != service.table().sites().end()) {
                   rows = site->second.rows;
                   for (const auto& [cs_id, part] : site->second.parts) refused += part.refused.size();
                 }
                 const char* state = live == nullptr ? "away" : live->core.established() ? "established" : "greeting";
                 reply.row({identity, state, live ? Cell(live->address) : Cell(),
                            live ? Cell((now - live->since) / kSecond) : Cell(), c_sma.sessions, c_sma.messages,
                            live ? Cell(live->core.snapshots()) : Cell(), live ? Cell(live->core.mismatches()) : Cell(),
                            rows, refused, live || c_sma.why.empty() ? Cell() : Cell(c_sma.why)});
               }
               reply.table("refused", {"c_sma", "reason", "count", "meaning"});
               for (const auto& [identity, c_sma] : service.c_smas()) {
                 for (size_t f = 0; f < northbound::kFaults; ++f) {
                   const auto fault = static_cast<northbound::Fault>(f);
                   const uint64_t count = c_sma.peer.faults.of(fault);
                   if (count > 0) reply.row({identity, name_of(fault), count, text_of(fault).meaning});
                 }
               }
               reply.table("turned_away", {"reason", "count"});
               for (const auto& [reason, count] : service.turned_away()) reply.row({reason, count});
               return {};
             }});
}

}  // namespace margay::cps
