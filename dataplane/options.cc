// SPDX-License-Identifier: Apache-2.0
#include "dataplane/options.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "common/command_line.h"
#include "dataplane/dpdk/eal_args.h"

namespace margay::dp {

std::variant<Options, int> read_options(int argc, char** argv) {
  char** const end = argv + argc;
  char** const separator = std::find(argv, end, std::string_view("--"));
  Options options;
  if (separator != end) options.eal_args.assign(separator + 1, end);

  CommandLine line("margay-dataplane", "Margay's data plane: the Service Contact Instance of a CATS service site.",
                   MARGAY_VERSION);
  line.text("--config", options.config, "the site file", CommandLine::Need::kRequired, "FILE");
  line.flag("--check", options.check, "validate the site file and exit");
  line.flag("-i,--interactive", options.interactive, "a shell in the foreground; its end ends the data plane");
  line.footer(
      "After `--`: arguments for DPDK's EAL, which stand over those worked out from the site file.\n"
      "margay-dataplane replay --help: run the fast path over captures.");
  if (const auto status = line.read(static_cast<int>(separator - argv), argv)) return *status;
  if (auto judged = check_eal_args(options.eal_args); !judged) {
    std::fprintf(stderr, "margay-dataplane: %s\n", judged.error().message.c_str());
    return 2;
  }
  return options;
}

}  // namespace margay::dp
