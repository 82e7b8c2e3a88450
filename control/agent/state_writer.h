// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a file of the state directory whole, by a thread of its own, which makes its bytes too: of several contents
// that wait, the newest. Its failures are told once in the log until one succeeds again.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace margay::control {

class StateWriter {
 public:
  StateWriter(std::string path, std::string what) : path_(std::move(path)), what_(std::move(what)) {}
  ~StateWriter();  // writes what waits
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  using Content = std::function<std::string()>;  // called in the writer's thread

  // Does not wait.
  void write(Content content);

 private:
  void run();

  const std::string path_, what_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Content> waiting_;
  bool stop_ = false;
  std::thread thread_{[this] { run(); }};
};

}  // namespace margay::control
