// SPDX-License-Identifier: Apache-2.0
// margay-dataplane: reads the site file, puts the data plane together, and lets the control thread run until it is
// told to end. Exit status: 0 after an orderly end, 1 after an error that standard error tells in one line, 2 for
// wrong usage.

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/log.h"
#include "common/site/site_reader.h"
#include "dataplane/assemble.h"
#include "dataplane/control_loop.h"
#include "dataplane/options.h"
#include "dataplane/replay/replay_main.h"

namespace margay::dp {
namespace {

int fail(const Error& error) {
  std::fprintf(stderr, "margay-dataplane: %s\n", error.message.c_str());
  return 1;
}

std::string counted(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// What was read is checked already: sums it up.
int check(const SiteConfig& config) {
  size_t instances = 0;
  for (const SciConfig& sci : config.scis) instances += sci.instances.size();
  fmt::print("{}: ok (site {}: {}, {}, {}, {}, {}, {})\n", config.file, config.site,
             counted(config.ports.size(), "port"), counted(config.forwarders.size(), "forwarder"),
             counted(config.scis.size(), "SCI"), counted(instances, "instance"), counted(config.workers, "worker"),
             counted(config.flows, "flow"));
  return 0;
}

int run(SiteConfig config, const Options& options) {
  hold_signals();
  start_log();
  auto assembly = Assembly::build(std::move(config), options.eal_args);
  if (!assembly) return fail(assembly.error());
  if (auto started = (*assembly)->start(); !started) return fail(started.error());
  DataPlane& data_plane = (*assembly)->data_plane();
  spdlog::info("msg=\"forwarding\" site={} workers={} cli={}", data_plane.config.site, data_plane.config.workers,
               data_plane.config.cli_socket);
  const auto controlled = run_control(data_plane, options.interactive);
  (*assembly).reset();
  if (!controlled) return fail(controlled.error());
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
  auto config = read_site_file(chosen.config);
  if (!config) return fail(config.error());
  return chosen.check ? check(*config) : run(std::move(*config), chosen);
}

}  // namespace
}  // namespace margay::dp

int main(int argc, char** argv) { return margay::dp::main(argc, argv); }
