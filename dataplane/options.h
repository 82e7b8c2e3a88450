// SPDX-License-Identifier: Apache-2.0
#pragma once

// The command line of margay-dataplane:
//   margay-dataplane --config FILE [--check] [-i] [-- EAL arguments]
//   margay-dataplane replay ...        (dataplane/replay/replay_main.h reads that one)

#include <string>
#include <variant>
#include <vector>

namespace margay::dp {

struct Options {
  std::string config;
  bool check = false;
  bool interactive = false;
  std::vector<std::string> eal_args;
};

// The options, or the exit status when there is nothing more to do: 0 after --help and --version, 2 after a line
// on standard error about what is wrong.
std::variant<Options, int> read_options(int argc, char** argv);

}  // namespace margay::dp
