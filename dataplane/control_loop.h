// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the control thread does while the workers forward: serves the CLI socket, heeds SIGTERM, SIGINT and SIGHUP,
// names workers that stall and links that go down. With a shell in the foreground, that shell runs on a thread of its
// own and one mutex makes the two take turns.

#include "common/result.h"
#include "dataplane/data_plane.h"

namespace margay::dp {

// Blocks SIGTERM, SIGINT and SIGHUP for this thread and all that it makes; run_control() takes them. First thing in
// main.
void hold_signals();

// Until `shutdown`, a signal, or the end of the foreground shell.
Result<void> run_control(DataPlane& data_plane, bool interactive);

}  // namespace margay::dp
