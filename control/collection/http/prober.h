// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks instances: HTTP GET, or a TCP connect where there is no URL (SCI-27, SCI-46). Hundreds at once on one thread, by
// libcurl's multi interface; one that hangs holds up nobody else. Every question opens a connection of its own, follows
// no redirection, uses no proxy, and ends by its own time limit. And asks SCIs for their reports, by HTTPS (CSMA-30).
//
// One thread at a time; only poll() waits.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/units.h"
#include "control/security/handshake.h"

namespace margay::control {

class Prober {
 public:
  struct Question {
    uint64_t ticket = 0;   // comes back with the answer
    std::string url = {};  // empty: connect to address and port
    std::string address = {};
    uint16_t port = 0;
    Nanoseconds timeout = kSecond;  // at least a millisecond is given
    bool keep_body = true;          // else it is thrown away as it arrives
    // With it the URL is https://, who answers is judged by it and stands in it afterwards, and a compressed answer is
    // a failure.
    std::shared_ptr<security::Handshake> handshake = {};
  };
  // Refused, reset, timed out, a status that is not 2xx: the instance's failure. No socket, no route from here, a URL
  // that is none, a time-out while this thread stood still: the prober's own error, which says nothing of the instance
  // (D-54, D-51).
  enum class Verdict : uint8_t { kOk, kFailed, kOwnError };
  struct Answer {
    uint64_t ticket = 0;
    Verdict verdict{};
    // One line, empty when kOk. By HTTPS it begins with the refusal's name where the certificate was refused, and holds
    // the first line of an answer that is an error.
    std::string detail = {};
    bool silent = false;  // kFailed: no answer within the time limit
    Nanoseconds took = 0;
    std::string body = {};
  };

  static constexpr size_t kBodyMax = size_t{4} << 20;  // a longer body is the instance's failure

  Prober();
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  void ask(const Question& question);
  // What was answered since the last call; waits for at most `timeout` when nothing was, or until `wake` can be read.
  std::vector<Answer> poll(std::chrono::milliseconds timeout, int wake = -1);
  size_t asking() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace margay::control
