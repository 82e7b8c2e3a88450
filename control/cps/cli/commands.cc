// SPDX-License-Identifier: Apache-2.0
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
  add_shutdown(table, "end the daemon", [&service] { service.stop(); });
  add_quit(table);
  add_help(table);
  add_version(table, "margay-cps");
}

}  // namespace margay::cps
