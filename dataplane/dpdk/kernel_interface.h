// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel's end of a port's exception path: gives the interface the port's MAC, MTU and addresses and sets it
// up, through rtnetlink. Best effort: what fails is a warning in the log, the port works without. Control
// thread, once, after the device has started.

#include "common/net.h"
#include "dataplane/core/site_config.h"

namespace margay::dp {

void set_up_kernel_interface(const PortConfig& port, const MacAddress& mac);

}  // namespace margay::dp
