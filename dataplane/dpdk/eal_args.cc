// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/eal_args.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace margay::dp {
namespace {

// DPDK 22.11, "EAL parameters", but for its help.
constexpr std::string_view kWithValue[] = {"-a",
                                           "-b",
                                           "-c",
                                           "-d",
                                           "-l",
                                           "-m",
                                           "-n",
                                           "-r",
                                           "-s",
                                           "-S",
                                           "--allow",
                                           "--base-virtaddr",
                                           "--block",
                                           "--file-prefix",
                                           "--force-max-simd-bitwidth",
                                           "--huge-dir",
                                           "--iova-mode",
                                           "--lcores",
                                           "--log-level",
                                           "--main-lcore",
                                           "--mbuf-pool-ops-name",
                                           "--proc-type",
                                           "--socket-limit",
                                           "--socket-mem",
                                           "--syslog",
                                           "--trace",
                                           "--trace-bufsz",
                                           "--trace-dir",
                                           "--trace-mode",
                                           "--vdev",
                                           "--vfio-intr",
                                           "--vfio-vf-token"};
constexpr std::string_view kWithOrWithout[] = {"--huge-unlink", "--huge-worker-stack"};  // a value behind '=' only
constexpr std::string_view kAlone[] = {"-v",
                                       "--create-uio-dev",
                                       "--in-memory",
                                       "--legacy-mem",
                                       "--match-allocations",
                                       "--no-hpet",
                                       "--no-huge",
                                       "--no-pci",
                                       "--no-shconf",
                                       "--no-telemetry",
                                       "--single-file-segments",
                                       "--telemetry",
                                       "--vmware-tsc-map"};

bool is_one_of(std::span<const std::string_view> options, std::string_view name) {
  return std::ranges::find(options, name) != options.end();
}

}  // namespace

Result<void> check_eal_args(std::span<const std::string> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string_view arg = args[i];
    const bool is_long = arg.starts_with("--");
    const std::string_view name = arg.substr(0, is_long ? arg.find('=') : 2);
    if (!arg.starts_with('-')) return Error{fmt::format("after --: expected an option of EAL, got \"{}\"", arg)};
    const bool joined = arg.size() > name.size();
    std::string_view value = joined ? arg.substr(name.size() + (is_long ? 1 : 0)) : std::string_view();
    if (is_one_of(kWithValue, name)) {
      if (!joined && ++i == args.size()) return Error{fmt::format("after --: {} needs a value", name)};
      if (!joined) value = args[i];
    } else if (is_one_of(kAlone, name)) {
      if (joined) return Error{fmt::format("after --: {} takes no value, got \"{}\"", name, arg)};
    } else if (!is_one_of(kWithOrWithout, name)) {
      return Error{fmt::format("after --: EAL has no option \"{}\"", name)};
    }
    if (name == "--proc-type" && value != "primary") {
      return Error{
          fmt::format("after --: --proc-type {}: this is always EAL's primary process, expected primary", value)};
    }
  }
  return {};
}

}  // namespace margay::dp
