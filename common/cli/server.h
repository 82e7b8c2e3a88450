// SPDX-License-Identifier: Apache-2.0
#pragma once

// The daemon's end of the CLI: a Unix stream socket that answers the protocol of protocol.h through an Executor.
//
// No thread of its own: whoever owns it calls poll() again and again. Commands run inside poll(), one after the
// other. Bounds: kClientsMax clients (one that said nothing for a patience makes room for another, else the newcomer is
// told so and closed), kRequestMax bytes a request, kQueueMax bytes of answers that a client has not read yet. A
// command whose answer is longer waits for its reader, all commands of one poll() together at most `patience`; a reader
// that is slower than that, or reads nothing for kIdleReader, is dropped. So clients cannot hold the daemon for longer
// than one patience, not even one after the other.

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "common/cli/executor.h"
#include "common/result.h"
#include "common/unix_socket.h"

namespace margay {

class CliServer {
 public:
  static constexpr size_t kClientsMax = 16;
  static constexpr size_t kQueueMax = 1u << 20;
  static constexpr std::chrono::seconds kIdleReader{30};

  // REQUIRES: the executor outlives the server.
  static Result<std::unique_ptr<CliServer>> open(const std::string& path, Executor& executor,
                                                 std::chrono::milliseconds patience = std::chrono::seconds(2));
  CliServer(const CliServer&) = delete;
  CliServer& operator=(const CliServer&) = delete;

  // Serves whoever is there; waits for at most `timeout` when nobody is. The caller's only thread for this server.
  void poll(std::chrono::milliseconds timeout);

  size_t clients() const { return clients_.size(); }
  const std::string& path() const { return listener_.path(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    Fd fd;
    std::string in;
    std::string out;
    Clock::time_point progress;  // last time that bytes went either way
    bool gone = false;
    bool closing = false;  // to be closed once `out` is sent
  };

  CliServer(UnixListener listener, Executor& executor, std::chrono::milliseconds patience)
      : listener_(std::move(listener)), executor_(executor), patience_(patience) {}
  void accept_all();
  void receive(Client& client);
  void serve_requests(Client& client);
  void answer(Client& client, std::string_view request);
  void run(Client& client, const std::string& line, bool json);
  bool queue(Client& client, std::string_view text);
  static void send_some(Client& client);
  void drop_gone();
  void drop_longest_idle();

  UnixListener listener_;
  Executor& executor_;
  std::chrono::milliseconds patience_;
  std::list<Client> clients_;
  Clock::duration waited_{};  // for readers, in this poll()
};

}  // namespace margay
