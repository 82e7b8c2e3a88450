// SPDX-License-Identifier: Apache-2.0
#pragma once

// The command line of margay-control:
//   margay-control --config FILE [--check] [-i] [--record FILE]

#include <string>
#include <variant>

namespace margay::control {

struct Options {
  std::string config;
  bool check = false;
  bool interactive = false;
  std::string record = {};  // empty: nothing is recorded
};

// The options, or the exit status when there is nothing more to do: 0 after --help and --version, 2 after a line
// on standard error about what is wrong.
std::variant<Options, int> read_options(int argc, char** argv);

}  // namespace margay::control
