// SPDX-License-Identifier: Apache-2.0
#pragma once

// What EAL is told at start, worked out from the site file, the machine and the operator's own arguments (after
// `--`), which stand over ours. Pure: no EAL, no system call but in read_host(), so that tests can ask for any
// machine. One thread, before EAL starts.
//
//   ports      -a for each PCI device, --no-pci when there is none; --vdev for the others; one net_tap for each
//              kernel interface
//   cores      worker i runs on lcore i + 1; lcore 0 is the control thread and does not poll. With fewer cores
//              than that they share, and a warning says so
//   memory     huge pages without files (--in-memory); ordinary pages (--no-huge -m) when too few huge ones are
//              free, with a warning. The two do not go together

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "dataplane/core/site_config.h"

namespace margay::dp {

struct Host {
  size_t huge_bytes_free = 0;
  std::vector<int> cpus;  // that this process may use, ascending
  int process_id = 0;
};
Host read_host();

struct EalPlan {
  std::vector<std::string> args;      // without the program's name
  std::vector<std::string> warnings;  // for the operator
};

// `bytes` is what the data plane will take from EAL's memory. The error names the port.
Result<EalPlan> plan_eal(const SiteConfig& config, size_t bytes, const Host& host,
                         std::span<const std::string> operator_args);

// Name under which EAL knows a port's device, and its kernel interface's.
std::string device_name(const PortConfig& port);
std::string kernel_device_name(PortIndex port);
bool is_pci_address(const std::string& device);

}  // namespace margay::dp
