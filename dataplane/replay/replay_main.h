// SPDX-License-Identifier: Apache-2.0
#pragma once

// `margay-dataplane replay ...`: reads the command line, runs the replay, and tells the outcome in one line on
// standard output, or what is wrong in one line on standard error. No EAL.

namespace margay::dp {

// `argv[0]` is the word "replay". Returns the exit status: 0, 1 after an error, 2 for wrong usage.
int replay_main(int argc, char** argv);

}  // namespace margay::dp
