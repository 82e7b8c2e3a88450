// SPDX-License-Identifier: Apache-2.0
#include "control/agent/state_writer.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "control/durable_file.h"

namespace margay::control {

StateWriter::~StateWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void StateWriter::write(Content content) {
  {
    const std::lock_guard lock(mutex_);
    waiting_ = std::move(content);
  }
  wake_.notify_one();
}

void StateWriter::run() {
  bool told = false;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || waiting_; });
    if (!waiting_) return;
    Content content = std::move(*std::exchange(waiting_, std::nullopt));
    lock.unlock();
    const auto written = write_checked(path_, what_, content());
    content = nullptr;  // a large site's state is not let go of under the lock
    if (!written && !told) spdlog::warn("msg=\"the state cannot be kept\" why={:?}", written.error().message);
    told = !written;
    lock.lock();
  }
}

}  // namespace margay::control
