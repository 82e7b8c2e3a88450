// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "common/cli/server.h"

namespace margay::control {

// The CLI's socket, served by a thread of its own until the end.
class CliThread {
 public:
  explicit CliThread(std::unique_ptr<CliServer> server)
      : server_(std::move(server)), thread_([this] {
          while (!stop_.load()) server_->poll(std::chrono::milliseconds(100));
        }) {}
  CliThread(const CliThread&) = delete;
  CliThread& operator=(const CliThread&) = delete;
  ~CliThread() {
    stop_.store(true);
    thread_.join();
  }

 private:
  std::unique_ptr<CliServer> server_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace margay::control
