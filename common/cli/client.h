// SPDX-License-Identifier: Apache-2.0
#pragma once

// A connection to a daemon's CLI socket, as an Executor. What the daemon sends is taken off the socket as fast as it
// comes and kept until the sink has taken it: a pager that waits for its reader does not hold the daemon up.
// Bounded by the answer's length alone, in this process. One thread.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/cli/executor.h"
#include "common/cli/protocol.h"
#include "common/fd.h"
#include "common/result.h"

namespace margay {

class Client : public Executor {
 public:
  static Result<std::unique_ptr<Client>> connect(const std::string& path);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Answer run(std::string_view line, bool json, const Reply::Sink& sink) override;
  Completion complete(std::string_view line) override;

 private:
  Client(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Result<void> send(const std::string& request);
  Result<std::string> receive_line();
  Result<nlohmann::json> receive();
  Answer receive_answer(const std::function<void(std::string)>& put);

  Fd fd_;
  std::string path_;
  std::string in_;
  size_t read_ = 0;  // bytes of in_ that were used
};

}  // namespace margay
