// SPDX-License-Identifier: Apache-2.0
#include "common/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <mutex>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace margay {
namespace {

// A terminal by an open file of our own, so that only our writes do not block. It lives as long as the process.
class TerminalSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit TerminalSink(int fd) : fd_(fd) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    (void)!::write(fd_, line.data(), line.size());
  }
  void flush_() override {}

  int fd_;
};

std::shared_ptr<spdlog::sinks::sink> standard_error() {
  char name[64];
  const bool terminal = ::ttyname_r(STDERR_FILENO, name, sizeof name) == 0;
  const int fd = terminal ? ::open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
  if (fd >= 0) return std::make_shared<TerminalSink>(fd);
  return std::make_shared<spdlog::sinks::stderr_sink_mt>();
}

}  // namespace

void start_log() {
  auto logger = std::make_shared<spdlog::logger>("margay", standard_error());
  logger->set_pattern("time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace margay
