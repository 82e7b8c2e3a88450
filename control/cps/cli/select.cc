// SPDX-License-Identifier: Apache-2.0
// select
#include <charconv>
#include <map>

#include "common/monotonic.h"
#include "control/cps/cli/commands.h"
#include "control/cps/core/select.h"

namespace margay::cps {
namespace {

// "CSCI-ID=MS", or "C-SMA=MS" for all that it tells of. Absent: it is no such list.
std::optional<std::map<std::string, uint32_t>> delays_of(std::string_view text) {
  std::map<std::string, uint32_t> delays;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const size_t equals = one.rfind('=');
    uint32_t ms = 0;
    const std::string_view digits = equals == std::string_view::npos ? "" : one.substr(equals + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ms);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    delays[std::string(one.substr(0, equals))] = ms;
  }
  return delays;
}

std::optional<uint32_t> number(const Arguments& arguments, const char* option) {
  const auto* given = arguments.option(option);
  return given == nullptr ? std::nullopt : std::optional(static_cast<uint32_t>(given->front().number()));
}

}  // namespace

void add_select(CommandTable& table, CpsService& service) {
  table.add({"select CS-ID [gas SLOTS] [within MS] [cost PRICE] [delays DELAYS]",
             "whom a request for this service would be sent to, and why the others are passed over",
             "slots, then Computing Time and network delay, then cost",
             [&service](const Arguments& arguments, Reply& reply) -> CommandResult {
               const auto* list = arguments.option("delays");
               const auto delays = delays_of(list == nullptr ? "" : list->front().text());
               if (!delays)
                 return list->front().error("expected delays in ms such as 192.0.2.10:80=12,c-sma.edge-1=30");
               SelectRequest request{.cs_id = arguments[0].text()};
               request.gas = number(arguments, "gas").value_or(1);
               request.delay_ms = number(arguments, "within");
               request.cost = number(arguments, "cost");
               const NetworkDelay network = [&](const std::string& c_sma, const northbound::RowKey& key) {
                 auto found = key.csci_id ? delays->find(*key.csci_id) : delays->end();
                 if (found == delays->end()) found = delays->find(c_sma);
                 return found == delays->end() ? std::nullopt : std::optional(found->second);
               };
               const auto choices = select(service.table(), request, network, monotonic_now());
               const bool any = !choices.empty() && choices.front().passed_over == PassedOver::kNot;
               reply.field("chosen",
                           any ? Cell(choices.front().row.key.csci_id.value_or(choices.front().c_sma)) : Cell());
               reply.table("candidates",
                           {"c_sma", "csci_id", "gas", "computing_time_ms", "delay_ms", "price", "passed_over"});
               for (const Choice& choice : choices) {
                 const northbound::Metrics& m = choice.row.metrics;
                 const auto cell = [](const auto& value) { return value ? Cell(*value) : Cell(); };
                 reply.row({choice.c_sma, cell(choice.row.key.csci_id), cell(m.gas), cell(m.computing_time_ms),
                            cell(choice.delay_ms), cell(m.price),
                            choice.passed_over == PassedOver::kNot ? Cell() : Cell(name_of(choice.passed_over))});
               }
               return {};
             }});
}

}  // namespace margay::cps
