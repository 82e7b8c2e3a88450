// SPDX-License-Identifier: Apache-2.0
#pragma once

// margay-control's commands, each in a small file of its own, named after it. Handlers run in whoever's turn it is
// (common/cli/executor.h): they may read and tell the service whatever they like, and must not wait.

#include "common/cli/command_table.h"
#include "control/service.h"

namespace margay::control {

// Adds every command. REQUIRES: table and service outlive each other's use.
void register_commands(CommandTable& table, Service& service);

// One function a file, in the order of `help`.
void add_show_health(CommandTable& table, Service& service);
void add_show_metrics(CommandTable& table, Service& service);
void add_show_report(CommandTable& table, Service& service);
void add_show_table(CommandTable& table, Service& service);
void add_show_checks(CommandTable& table, Service& service);
void add_show_reports_to(CommandTable& table, Service& service);
// REQUIRES, up to quarantine: a C-SMA runs here
void add_show_sources(CommandTable& table, Service& service);
void add_show_cache(CommandTable& table, Service& service);
void add_show_site(CommandTable& table, Service& service);
void add_show_updates(CommandTable& table, Service& service);
void add_show_c_ps(CommandTable& table, Service& service);
void add_show_quarantine(CommandTable& table, Service& service);
void add_show_audit(CommandTable& table, Service& service);
void add_explain(CommandTable& table, Service& service);
void add_reconnect(CommandTable& table, Service& service);
void add_quarantine(CommandTable& table, Service& service);
void add_drain(CommandTable& table, Service& service);
void add_reload(CommandTable& table, Service& service);

}  // namespace margay::control
