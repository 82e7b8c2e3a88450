// SPDX-License-Identifier: Apache-2.0
#include "control/replay_main.h"

#include <cstdio>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "control/record/replay.h"
#include "control/site_reader.h"

namespace margay::control {
namespace {

Result<Replay::Counts> run(const std::string& config, const std::string& from, const std::string& to) {
  ReplaySite configs;
  if (!config.empty()) {
    auto site = read_site_file(config);
    if (!site) return site.error();
    configs.scis = std::move(site->scis);
    if (site->c_sma) configs.c_sma = std::move(site->c_sma->core);
  }
  return replay_file(from, to, std::move(configs));
}

}  // namespace

int replay_main(int argc, char** argv) {
  std::string config, from, to;
  CLI::App app("Runs recorded events through the control plane and writes what it wants done.",
               "margay-control replay");
  app.add_option("--config", config, "the site file, for starts without a config")->type_name("FILE");
  app.add_option("--in", from, "events, a JSON object a line")->required()->type_name("FILE");
  app.add_option("--out", to, "where actions go; overwritten")->required()->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "margay-control replay: %s (--help lists the options)\n", error.what());
    return 2;
  }
  const auto counts = run(config, from, to);
  if (!counts) {
    std::fprintf(stderr, "margay-control replay: %s\n", counts.error().message.c_str());
    return 1;
  }
  std::printf("%llu records: %llu events, %llu actions\n", static_cast<unsigned long long>(counts->records),
              static_cast<unsigned long long>(counts->events), static_cast<unsigned long long>(counts->actions));
  return 0;
}

}  // namespace margay::control
