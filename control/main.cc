// SPDX-License-Identifier: Apache-2.0
// margay-control: reads the site file and runs the control plane of its SCIs until it is told to end. Exit status: 0
// after an orderly end, 1 after an error that standard error tells in one line, 2 for wrong usage.

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/log.h"
#include "control/control_loop.h"
#include "control/options.h"
#include "control/replay_main.h"
#include "control/site_reader.h"
#include "control/waker.h"

namespace margay::control {
namespace {

int fail(const Error& error) {
  std::fprintf(stderr, "margay-control: %s\n", error.message.c_str());
  return 1;
}

// What was read is checked already: sums it up.
int check(const SiteSpec& spec) {
  size_t instances = 0;
  for (const SciSpec& sci : spec.scis) instances += sci.instances.size();
  fmt::print("{}: ok (site {}: {} SCI{}, {} instance{})\n", spec.site.file, spec.site.site, spec.scis.size(),
             spec.scis.size() == 1 ? "" : "s", instances, instances == 1 ? "" : "s");
  return 0;
}

int run(SiteSpec spec, const Options& options) {
  hold_signals();
  start_log();
  if (auto controlled = run_control(std::move(spec), options); !controlled) {
    return fail(controlled.error());
  }
  spdlog::info("msg=\"ended\"");
  // The foreground shell's thread may stand in a write to its terminal, and the end of stdio would wait for that.
  if (options.interactive) std::_Exit(0);
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "replay") return replay_main(argc - 1, argv + 1);
  auto options = read_options(argc, argv);
  if (const int* status = std::get_if<int>(&options)) return *status;
  const auto& chosen = std::get<Options>(options);
  auto spec = read_site_file(chosen.config);
  if (!spec) return fail(spec.error());
  return chosen.check ? check(*spec) : run(std::move(*spec), chosen);
}

}  // namespace
}  // namespace margay::control

int main(int argc, char** argv) { return margay::control::main(argc, argv); }
