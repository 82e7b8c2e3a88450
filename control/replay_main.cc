// SPDX-License-Identifier: Apache-2.0
#include "control/replay_main.h"

#include <cstdio>
#include <string>
#include <utility>

#include "common/command_line.h"
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
  CommandLine line("margay-control replay",
                   "Runs recorded events through the control plane and writes what it wants done.");
  line.text("--config", config, "the site file, for starts without a config", CommandLine::Need::kOptional, "FILE");
  line.text("--in", from, "events, a JSON object a line", CommandLine::Need::kRequired, "FILE");
  line.text("--out", to, "where actions go; overwritten", CommandLine::Need::kRequired, "FILE");
  if (const auto status = line.read(argc, argv)) return *status;
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
