// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace margay::control {

// `margay-control replay ...` (docs/replay.md). The exit status: 1 after an error told in one line, 2 for wrong usage.
int replay_main(int argc, char** argv);

}  // namespace margay::control
