// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/replay_main.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/command_line.h"
#include "common/site/site_reader.h"
#include "dataplane/replay/replay.h"

namespace margay::dp {
namespace {

constexpr int kFailed = 1;

struct Arguments {
  std::string config, out, table;
  std::vector<std::string> inputs;
  uint64_t workers = 0;  // 0: as the site file says
  uint64_t seed = 1;
  bool assume_neighbours = false, no_drain = false;
};

void add_options(CommandLine& line, Arguments& arguments) {
  using enum CommandLine::Need;
  line.text("--config", arguments.config, "site file", kRequired);
  line.texts("--in", arguments.inputs, "PORT=CAPTURE: what arrived on this port (pcap or pcapng)");
  line.whole("--workers", arguments.workers, "number of workers; the site file's otherwise", 1, kWorkersMax);
  line.whole("--seed", arguments.seed, "secrets come from it", 0, std::numeric_limits<uint64_t>::max());
  line.flag("--assume-neighbours", arguments.assume_neighbours, "give next hops that are not known a fixed MAC");
  line.flag("--no-drain", arguments.no_drain, "end with the last packet, not with the last timer");
  line.text("--table", arguments.table, "what `record table` wrote: the table changes as it did then");
  line.text("--out", arguments.out, "directory for the results; made if it is not there", kRequired);
}

Result<std::vector<ReplayInput>> find_inputs(const std::vector<std::string>& texts, const SiteConfig& site) {
  std::vector<ReplayInput> inputs;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return Error{"--in " + text + ": expected PORT=CAPTURE"};
    const std::string name = text.substr(0, equals);
    const auto port = std::find_if(site.ports.begin(), site.ports.end(), [&](const auto& p) { return p.name == name; });
    if (port == site.ports.end()) return Error{"--in " + text + ": " + site.file + " has no port " + name};
    const auto index = static_cast<PortIndex>(port - site.ports.begin());
    if (std::any_of(inputs.begin(), inputs.end(), [&](const auto& i) { return i.port == index; })) {
      return Error{"--in " + text + ": port " + name + " has a capture already"};
    }
    inputs.push_back({index, text.substr(equals + 1)});
  }
  return inputs;
}

Result<Account> run(const Arguments& arguments) {
  auto site = read_site_file(arguments.config);
  if (!site) return site.error();
  auto inputs = find_inputs(arguments.inputs, *site);
  if (!inputs) return inputs.error();
  ReplayOptions options;
  options.workers = static_cast<WorkerIndex>(arguments.workers > 0 ? arguments.workers : site->workers);
  options.site = std::move(*site);
  options.inputs = std::move(*inputs);
  options.seed = arguments.seed;
  options.assume_neighbours = arguments.assume_neighbours;
  options.table = arguments.table;
  options.drain = !arguments.no_drain;
  options.out = arguments.out;
  return replay(std::move(options));
}

}  // namespace

int replay_main(int argc, char** argv) {
  CommandLine line("margay-dataplane replay",
                   "Runs captures through the data plane and tells what it would have done, and why.");
  Arguments arguments;
  add_options(line, arguments);
  if (const auto status = line.read(argc, argv)) return *status;
  const auto account = run(arguments);
  if (!account) {
    fmt::print(stderr, "margay-dataplane replay: {}\n", account.error().message);
    return kFailed;
  }
  fmt::print("{} packets: {} forwarded, {} answered, {} consumed, {} to the kernel, {} dropped, {} held\n",
             account->input, account->forwarded, account->answered, account->consumed, account->kernel,
             account->dropped, account->held);
  return 0;
}

}  // namespace margay::dp
