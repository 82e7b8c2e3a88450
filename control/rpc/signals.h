// SPDX-License-Identifier: Apache-2.0
#pragma once

// What gRPC's threads tell the loop. Any thread puts in, none of them waits; the loop takes out. Bounded by what puts
// in: a stream has at most one message, one write and its beginning and end in here.
//
// Urgent messages are a queue of their own, taken in turn with the rest: they wait for none of it, and cannot starve
// it.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/fd.h"
#include "common/result.h"
#include "common/units.h"
#include "control/rpc/stream.h"

namespace margay::rpc {

// A stream of gRPC. The loop's thread alone calls it, and only until it was told kDone; then it deletes it. None of
// these waits.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void read() = 0;                      // one message; kRead or kReadEnd comes
  virtual void write(std::string message) = 0;  // kWritten comes
  // Nothing more goes out. A server's stream: with this status, and kDone comes.
  virtual void finish(Code code, const std::string& why) = 0;
  // A client's stream: it has ended, and kDone may come.
  virtual void let_go() = 0;
  virtual void cancel() = 0;  // all that is under way ends soon
};

struct Signal {
  enum class Kind : uint8_t {
    kOpened,   // with `stream` where it is new to the loop; without `peer`: it failed, as `code` and `text` tell
    kRead,     // `text`
    kReadEnd,  // the other side sends no more, or the stream is broken
    kBroken,   // of a server's stream
    kWritten,  // `ok`
    kDone,     // `code`, `text`
    kRefused,  // `reason`, `text`
  };
  Kind kind{};
  StreamId id = 0;
  bool urgent = false;  // of kRead
  bool ok = true;
  Code code{};
  std::string text = {}, reason = {};
  std::shared_ptr<const security::Peer> peer = {};
  std::shared_ptr<const security::Trust> trust = {};  // that the peer was judged by
  std::unique_ptr<Stream> stream = {};
};

class Signals {
 public:
  static Result<std::shared_ptr<Signals>> open();

  void put(Signal signal);
  // Dropped when kRefusedMax wait already.
  void put_refused(std::string reason, std::string detail);

  // The loop's.
  std::optional<Signal> take();
  int fd() const { return poll_.get(); }  // can be read when there is something, or the time has come
  void wake_at(Nanoseconds time);         // monotonic; kNever: not
  void wait() const;                      // until fd() can be read

 private:
  Signals() = default;
  Fd poll_, event_, timer_;
  std::mutex mutex_;
  std::deque<Signal> waiting_, urgent_;
  bool urgent_next_ = true;
  std::atomic<size_t> refused_{0};
  Nanoseconds armed_ = kNever;
};

}  // namespace margay::rpc
