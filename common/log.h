// SPDX-License-Identifier: Apache-2.0
#pragma once

// The log of a daemon: spdlog's default logger, one structured line an event on standard error:
//   time=2026-01-02T03:04:05.678Z level=info msg="port ready" port=net0 ...
// Call sites write `msg="..." key=value`, with {:?} where a value may hold spaces. Any thread, never a worker.
// On a terminal it waits for nobody: what a terminal that is stopped does not take is lost.

namespace margay {

// Once, at the start of the program.
void start_log();

}  // namespace margay
