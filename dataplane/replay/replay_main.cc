// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/replay_main.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/site/site_reader.h"
#include "dataplane/replay/replay.h"

namespace margay::dp {
namespace {

constexpr int kFailed = 1, kWrongUsage = 2;

struct Arguments {
  std::string config, out, table;
  std::vector<std::string> inputs;
  unsigned workers = 0;  // 0: as the site file says
  uint64_t seed = 1;
  bool assume_neighbours = false, no_drain = false;
};

// A whole number of 64 bits: the option's own conversion would take -1 for the largest.
std::string judge_seed(const std::string& text) {
  uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  return error == std::errc{} && stop == end ? "" : "expected 0 to 18446744073709551615, got \"" + text + '"';
}

void add_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--config", arguments.config, "site file")->required();
  app.add_option("--in", arguments.inputs, "PORT=CAPTURE: what arrived on this port (pcap or pcapng)")
      ->required()
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--workers", arguments.workers, "number of workers; the site file's otherwise")
      ->check(CLI::Range(size_t{1}, kWorkersMax));
  app.add_option("--seed", arguments.seed, "secrets come from it")->capture_default_str()->check(judge_seed, "");
  app.add_flag("--assume-neighbours", arguments.assume_neighbours, "give next hops that are not known a fixed MAC");
  app.add_flag("--no-drain", arguments.no_drain, "end with the last packet, not with the last timer");
  app.add_option("--table", arguments.table, "what `record table` wrote: the table changes as it did then");
  app.add_option("--out", arguments.out, "directory for the results; made if it is not there")->required();
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
  CLI::App app("Runs captures through the data plane and tells what it would have done, and why.",
               "margay-dataplane replay");
  Arguments arguments;
  add_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    fmt::print(stderr, "margay-dataplane replay: {} (--help tells the options)\n", e.what());
    return kWrongUsage;
  }
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
