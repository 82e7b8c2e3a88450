// SPDX-License-Identifier: Apache-2.0
// shutdown, and all the others
#include "control/cps/cli/commands.h"

#include <limits>
#include <set>

#include "common/cli/common_commands.h"

namespace margay::cps {
namespace {

std::vector<std::string> c_sma_names(const CpsService& service) {
  std::vector<std::string> names;
  for (const auto& [identity, c_sma] : service.c_smas()) names.push_back(identity);
  return names;
}

std::vector<std::string> cs_ids(const CpsService& service) {
  std::set<std::string> ids;
  for (const auto& [identity, c_sma] : service.c_smas()) {
    ids.insert(c_sma.trusted.cs_ids.begin(), c_sma.trusted.cs_ids.end());
  }
  return {ids.begin(), ids.end()};
}

void add_shutdown(CommandTable& table, CpsService& service) {
  table.add(
      {"shutdown", "end the daemon", "as SIGTERM does", [&service](const Arguments&, Reply& reply) -> CommandResult {
         service.stop();
         reply.field("shutdown", true, "the daemon ends");
         reply.end_session();
         return {};
       }});
}

}  // namespace

void register_commands(CommandTable& table, CpsService& service) {
  table.add_kind({.name = "C-SMA", .expected = "the identity of a C-SMA", .names = [&service](auto) {
                    return c_sma_names(service);
                  }});
  table.add_kind(
      {.name = "CS-ID", .expected = "a CS-ID of the site file", .names = [&service](auto) { return cs_ids(service); }});
  constexpr uint64_t kNumberMax = std::numeric_limits<uint32_t>::max();
  for (const char* name : {"SLOTS", "PRICE", "MS"}) {
    table.add_kind({.name = name, .expected = "a number", .type = ArgumentType::kNumber, .max = kNumberMax});
  }
  table.add_kind({.name = "DELAYS", .expected = "delays in ms such as 192.0.2.10:80=12,c-sma.edge-1=30"});
  add_show_table(table, service);
  add_show_sessions(table, service);
  add_select(table, service);
  add_sync(table, service);
  add_shutdown(table, service);
  add_quit(table);
  add_help(table);
  add_version(table, "margay-cps");
}

}  // namespace margay::cps
