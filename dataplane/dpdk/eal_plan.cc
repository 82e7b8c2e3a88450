// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/eal_plan.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <regex>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace margay::dp {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kOverhead = 64 * kMiB;  // EAL's and the drivers' own tables

// "--name", "--name=value", "-n", "-nvalue".
bool is_option(std::string_view arg, std::string_view option) {
  if (!arg.starts_with(option)) return false;
  const bool is_long = option.starts_with("--");
  return arg.size() == option.size() || !is_long || arg[option.size()] == '=';
}

bool has_any(std::span<const std::string> args, std::initializer_list<std::string_view> options) {
  return std::ranges::any_of(args, [&](const std::string& arg) {
    return std::ranges::any_of(options, [&](std::string_view option) { return is_option(arg, option); });
  });
}

// net_af_packet: one queue pair a worker, rings that outlast a scheduling delay, frames that hold the MTU.
std::string with_af_packet_defaults(std::string device, const PortConfig& port, size_t workers) {
  if (!device.starts_with("net_af_packet") && !device.starts_with("eth_af_packet")) return device;
  const auto add = [&](std::string_view key, size_t value) {
    if (device.find(fmt::format(",{}=", key)) == std::string::npos) device += fmt::format(",{}={}", key, value);
  };
  add("qpairs", workers);
  add("framecnt", 4096);
  const size_t frame = buffer_bytes(port.mtu);
  if (frame > 2048) {
    add("framesz", frame);
    add("blocksz", std::max<size_t>(frame, 4096));
  }
  return device;
}

Result<void> add_ports(EalPlan& plan, const SiteConfig& config) {
  std::set<std::string> names;
  bool any_pci = false;
  for (size_t i = 0; i < config.ports.size(); ++i) {
    const PortConfig& port = config.ports[i];
    if (!names.insert(device_name(port)).second) {
      return Error{fmt::format("port {}: device {} is another port's already", port.name, device_name(port))};
    }
    if (is_pci_address(port.device)) {
      any_pci = true;
      plan.args.insert(plan.args.end(), {"-a", port.device});
    } else {
      plan.args.push_back("--vdev=" + with_af_packet_defaults(port.device, port, config.workers));
    }
    if (!port.kernel.empty()) {
      const std::string name = kernel_device_name(static_cast<PortIndex>(i));
      plan.args.push_back(fmt::format("--vdev={},iface={}", name, port.kernel));
    }
  }
  if (!any_pci) plan.args.push_back("--no-pci");
  return {};
}

void add_cores(EalPlan& plan, size_t workers, const std::vector<int>& cpus) {
  const bool enough = cpus.size() > workers;
  std::string lcores =
      fmt::format("--lcores=0@{}", enough ? fmt::to_string(cpus[0]) : fmt::format("({})", fmt::join(cpus, ",")));
  for (size_t w = 0; w < workers; ++w) {
    lcores += fmt::format(",{}@{}", w + 1, enough ? cpus[w + 1] : cpus[w % cpus.size()]);
  }
  plan.args.push_back(lcores);
  if (enough) return;
  plan.warnings.push_back(fmt::format("{} workers and the control thread share {} cores; {} cores would do better",
                                      workers, cpus.size(), workers + 1));
}

void add_memory(EalPlan& plan, size_t bytes, size_t huge_free, std::span<const std::string> operator_args) {
  const size_t need = bytes + bytes / 16 + kOverhead;
  const size_t need_mib = (need + kMiB - 1) / kMiB;
  const bool asked_no_huge = has_any(operator_args, {"--no-huge"});
  const bool sized = has_any(operator_args, {"-m", "--socket-mem", "--legacy-mem", "--huge-dir"});
  if (!asked_no_huge && (sized || huge_free >= need)) {
    if (!has_any(operator_args, {"--legacy-mem", "--huge-dir"})) plan.args.push_back("--in-memory");
    return;
  }
  plan.args.push_back("--no-shconf");
  if (!has_any(operator_args, {"-m"})) plan.args.insert(plan.args.end(), {"-m", fmt::to_string(need_mib)});
  if (asked_no_huge) return;
  plan.args.push_back("--no-huge");
  plan.warnings.push_back(
      fmt::format("{} MiB of huge pages are free and {} MiB are needed: running on ordinary "
                  "pages, which is slower (set vm.nr_hugepages)",
                  huge_free / kMiB, need_mib));
}

}  // namespace

Host read_host() {
  Host host;
  host.process_id = getpid();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<size_t>(cpu), &set)) host.cpus.push_back(cpu);
    }
  }
  if (host.cpus.empty()) host.cpus.push_back(0);
  std::error_code none;
  for (const auto& size : std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", none)) {
    size_t kib = 0, free = 0;
    if (std::sscanf(size.path().filename().c_str(), "hugepages-%zukB", &kib) != 1) continue;
    std::ifstream(size.path() / "free_hugepages") >> free;
    host.huge_bytes_free += free * kib * 1024;
  }
  return host;
}

Result<EalPlan> plan_eal(const SiteConfig& config, size_t bytes, const Host& host,
                         std::span<const std::string> operator_args) {
  EalPlan plan;
  if (auto ports = add_ports(plan, config); !ports) return ports.error();
  if (!has_any(operator_args, {"-l", "--lcores", "-c", "-s", "-S"})) add_cores(plan, config.workers, host.cpus);
  add_memory(plan, bytes, host.huge_bytes_free, operator_args);
  if (!has_any(operator_args, {"--telemetry"})) plan.args.push_back("--no-telemetry");
  if (!has_any(operator_args, {"--iova-mode"})) plan.args.push_back("--iova-mode=va");
  if (!has_any(operator_args, {"--file-prefix"})) {
    plan.args.push_back(fmt::format("--file-prefix=margay-{}", host.process_id));
  }
  plan.args.push_back("--log-level=*:warning");
  plan.args.insert(plan.args.end(), operator_args.begin(), operator_args.end());
  return plan;
}

bool is_pci_address(const std::string& device) {
  static const std::regex form("([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]");
  return std::regex_match(device.substr(0, device.find(',')), form);
}

std::string device_name(const PortConfig& port) {
  const std::string name = port.device.substr(0, port.device.find(','));
  const bool no_domain = is_pci_address(name) && name.size() == std::string_view("3b:02.0").size();
  return no_domain ? "0000:" + name : name;
}

std::string kernel_device_name(PortIndex port) { return fmt::format("net_tap_margay{}", port); }

}  // namespace margay::dp
