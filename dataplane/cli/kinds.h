// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data plane's kinds of arguments: names that its table and site file know, numbers, times. Control thread.

#include "common/cli/command_table.h"
#include "dataplane/data_plane.h"

namespace margay::dp {

// PORT, CSCI-ID, SI-ID (after a CSCI-ID), ADDRESS, PORT-NUMBER, FLOW-STATE, PROTOCOL, WORKER, ROWS, MAX-SESSIONS,
// WEIGHT, FILE, DEADLINE.
void add_kinds(CommandTable& table, const DataPlane& plane);

// By an argument that was checked against its kind; an error that points to it when it is gone since.
std::optional<PortIndex> port_of(const DataPlane& plane, const Argument& name);
std::optional<FlowState> flow_state_of(std::string_view name);

}  // namespace margay::dp
