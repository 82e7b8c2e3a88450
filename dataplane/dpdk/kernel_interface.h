// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interfaces of the kernel, through rtnetlink. Control thread.

#include "common/net.h"
#include "dataplane/core/site_config.h"

namespace margay::dp {

// The kernel's end of a port's exception path: gives the interface the port's MAC, MTU and addresses and sets it
// up. Best effort: what fails is a warning in the log, the port works without. Once, after the device has started.
void set_up_kernel_interface(const PortConfig& port, const MacAddress& mac);

// Up: it is set up and has a carrier, or the kernel cannot be asked. Gone: deleted, or moved to another namespace.
enum class InterfaceState { kUp, kDown, kGone };
InterfaceState interface_state(unsigned index);

}  // namespace margay::dp
