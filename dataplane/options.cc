// SPDX-License-Identifier: Apache-2.0
#include "dataplane/options.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <CLI/CLI.hpp>

#include "dataplane/dpdk/eal_args.h"

namespace margay::dp {

std::variant<Options, int> read_options(int argc, char** argv) {
  char** const end = argv + argc;
  char** const separator = std::find(argv, end, std::string_view("--"));
  Options options;
  if (separator != end) options.eal_args.assign(separator + 1, end);

  CLI::App app("Margay's data plane: the Service Contact Instance of a CATS service site.", "margay-dataplane");
  app.add_option("--config", options.config, "the site file")->required()->type_name("FILE");
  app.add_flag("--check", options.check, "validate the site file and exit");
  app.add_flag("-i,--interactive", options.interactive, "a shell in the foreground; its end ends the data plane");
  app.set_version_flag("--version", std::string("margay-dataplane " MARGAY_VERSION));
  app.footer(
      "After `--`: arguments for DPDK's EAL, which stand over those worked out from the site file.\n"
      "margay-dataplane replay --help: run the fast path over captures.");
  try {
    app.parse(static_cast<int>(separator - argv), argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "margay-dataplane: %s (--help lists the options)\n", error.what());
    return 2;
  }
  if (auto judged = check_eal_args(options.eal_args); !judged) {
    std::fprintf(stderr, "margay-dataplane: %s\n", judged.error().message.c_str());
    return 2;
  }
  return options;
}

}  // namespace margay::dp
