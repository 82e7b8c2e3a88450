// SPDX-License-Identifier: Apache-2.0
#include "control/options.h"

#include <cstdio>

#include <CLI/CLI.hpp>

namespace margay::control {

std::variant<Options, int> read_options(int argc, char** argv) {
  Options options;
  CLI::App app("Margay's control plane: health, metrics and reports of a CATS service site.", "margay-control");
  app.add_option("--config", options.config, "the site file")->required()->type_name("FILE");
  app.add_flag("--check", options.check, "validate the site file and exit");
  app.add_flag("-i,--interactive", options.interactive, "a shell in the foreground; its end ends the control plane");
  app.add_option("--record", options.record,
                 "write what the cores are told and want, for replay; goes on behind what is there")
      ->type_name("FILE");
  app.set_version_flag("--version", std::string("margay-control " MARGAY_VERSION));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "margay-control: %s (--help lists the options)\n", error.what());
    return 2;
  }
  return options;
}

}  // namespace margay::control
