// SPDX-License-Identifier: Apache-2.0
#include "control/options.h"

#include "common/command_line.h"

namespace margay::control {

std::variant<Options, int> read_options(int argc, char** argv) {
  Options options;
  CommandLine line("margay-control", "Margay's control plane: health, metrics and reports of a CATS service site.",
                   MARGAY_VERSION);
  line.text("--config", options.config, "the site file", CommandLine::Need::kRequired, "FILE");
  line.flag("--check", options.check, "validate the site file and exit");
  line.flag("-i,--interactive", options.interactive, "a shell in the foreground; its end ends the control plane");
  line.text("--record", options.record,
            "write what the cores are told and want, for replay; goes on behind what is there",
            CommandLine::Need::kOptional, "FILE");
  if (const auto status = line.read(argc, argv)) return *status;
  return options;
}

}  // namespace margay::control
