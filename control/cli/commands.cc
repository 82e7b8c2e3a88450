// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands.h"

#include "common/cli/common_commands.h"
#include "control/cli/kinds.h"

namespace margay::control {

namespace {

void add_c_sma(CommandTable& table, Service& service) {
  add_show_sources(table, service);
  add_show_cache(table, service);
  add_show_site(table, service);
  add_show_updates(table, service);
  add_show_c_ps(table, service);
  add_show_quarantine(table, service);
  add_show_audit(table, service);
  add_explain(table, service);
  add_reconnect(table, service);
  add_quarantine(table, service);
}

}  // namespace

void register_commands(CommandTable& table, Service& service) {
  add_kinds(table, service);
  add_show_health(table, service);
  add_show_metrics(table, service);
  add_show_report(table, service);
  add_show_table(table, service);
  add_show_checks(table, service);
  add_show_reports_to(table, service);
  if (service.agent() != nullptr) add_c_sma(table, service);
  add_drain(table, service);
  add_reload(table, service);
  add_shutdown(table, "end the daemon after its last reports; the data plane goes on with the last table",
               [&service] { service.stop(); });
  add_quit(table);
  add_help(table);
  add_version(table, "margay-control");
}

}  // namespace margay::control
