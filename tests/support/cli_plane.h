// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small data plane for the CLI's tests and fuzzing: the site of small_site(), two workers whose fast paths are fed
// packet by packet, ports without a device, a clock that stands at kNow. A thread serves the mailboxes as workers do
// between two polls, unless it is told to leave one out.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/cli/executor.h"
#include "dataplane/data_plane.h"
#include "tests/support/packet_builder.h"
#include "tests/support/test_arena.h"

namespace margay::test {

// Ports net0 and "odd port"; SCI 192.0.2.10:80 with si-1 and si-2, SCI [2001:db8::10]:53 (UDP) with si-1.
dp::SiteConfig small_site();

class FakePorts : public dp::PortInspector {
 public:
  dp::PortInfo info(dp::PortIndex port) const override;
  dp::PortStats stats(dp::PortIndex port) const override;
  std::vector<std::pair<std::string, uint64_t>> xstats(dp::PortIndex port) const override;
  Result<void> clear_stats(dp::PortIndex port) override;
  std::vector<dp::LinkChange> follow_links() override { return {}; }

  std::array<bool, 2> cleared{};
  bool fails = false;  // clear_stats
};

class CliPlane {
 public:
  static constexpr size_t kWorkers = 2;
  static constexpr uint32_t kFlows = 600;  // of a worker: more than two jobs of a scan
  static constexpr dp::Nanoseconds kNow = 1000 * dp::kSecond;

  // `waiting`: for a control plane's first snapshot.
  explicit CliPlane(bool waiting = false);
  ~CliPlane();
  CliPlane(const CliPlane&) = delete;
  CliPlane& operator=(const CliPlane&) = delete;

  // Text or JSON of a command; "POSITION: MESSAGE" if it fails, behind what it wrote until then.
  std::string run(std::string_view line, bool json = false);
  // REQUIRES: serve() has not been called, or this is its `between`. Returns the worker that took it.
  size_t receive(dp::PortIndex port, const PacketBuilder& frame);
  // Starts the thread. Worker `silent` does not answer; `between` is what else happens in the workers' thread, again
  // and again.
  void serve(
      size_t silent = kWorkers, std::function<void()> between = [] {});

  FakePorts ports;
  CommandTable table;

 private:
  void serve_all(size_t silent, const std::function<void()>& between);

  dp::TestArena arena_;
  std::vector<dp::Mailbox> mailboxes_;
  std::mutex control_;
  std::atomic<bool> stop_{false};
  std::thread thread_;

 public:
  dp::SharedState shared;
  dp::DataPlane plane;
  std::vector<std::unique_ptr<dp::FastPath>> fast_paths;
  LocalExecutor executor;
};

}  // namespace margay::test
