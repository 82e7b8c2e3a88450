// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/table.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/monotonic.h"

namespace margay::rpc {

std::string_view name_of(Code c) {
  switch (c) {
    case Code::kOk:
      return "OK";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kInvalid:
      return "INVALID_ARGUMENT";
    case Code::kDeadline:
      return "DEADLINE_EXCEEDED";
    case Code::kDenied:
      return "PERMISSION_DENIED";
    case Code::kExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "?";
}

security::Trust::Verdict Shared::judge(std::string_view certificate, std::string_view intermediates) {
  auto verdict = credentials->current()->judge(certificate, intermediates, side, expected);
  if (verdict.refusal) {
    refused[static_cast<size_t>(*verdict.refusal)].fetch_add(1, std::memory_order_relaxed);
    signals->put_refused(std::string(security::name_of(*verdict.refusal)), verdict.detail);
  }
  return verdict;
}

Table::Table(std::shared_ptr<Shared> shared, const Config& config)
    : shared_(std::move(shared)),
      config_(config),
      trust_(shared_->credentials->current()),
      next_look_(monotonic_now() + kLook),
      last_sweep_(monotonic_now()) {
  arm();
}

void Table::add(StreamId id, std::unique_ptr<Stream> stream, bool writing) {
  Entry& entry = entries_[id];
  entry.stream = std::move(stream);
  entry.writing = writing;
  deadlines_.emplace(monotonic_now() + config_.open, id);
  arm();
}

std::optional<RawEvent> Table::next() {
  look_at_time();
  while (auto signal = shared_->signals->take()) {
    if (auto event = handle(std::move(*signal))) return event;
  }
  return {};
}

bool Table::send(StreamId id, std::string message) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.stage != Stage::kOpen) return false;
  MARGAY_CHECK(!found->second.writing);
  found->second.writing = true;
  found->second.stream->write(std::move(message));
  return true;
}

void Table::close(StreamId id, Code code, const std::string& why) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.stage == Stage::kClosing) return;
  found->second.by_us = true;
  end(id, found->second, code, why);
}

void Table::end(StreamId id, Entry& entry, Code code, const std::string& why) {
  entry.stage = Stage::kClosing;
  entry.code = code;
  entry.why = why;
  deadlines_.emplace(monotonic_now() + config_.close, id);
  arm();
  if (!entry.writing) finish(entry);
}

void Table::finish(Entry& entry) {
  if (std::exchange(entry.finished, true)) return;
  entry.stream->finish(entry.code, entry.why);
}

std::optional<RawEvent> Table::handle(Signal signal) {
  using Kind = Signal::Kind;
  if (signal.kind == Kind::kRefused) return Refused{std::move(signal.reason), std::move(signal.text)};
  if (signal.kind == Kind::kOpened) return opened(signal);
  const auto found = entries_.find(signal.id);
  if (found == entries_.end() && signal.urgent) return {};  // its stream's end came in turn before it
  MARGAY_CHECK(found != entries_.end());
  Entry& entry = found->second;
  switch (signal.kind) {
    case Kind::kOpened:
    case Kind::kRefused:
      break;
    case Kind::kRead:
      // A server that has finished gets no more; a client reads on to the end.
      if (!config_.server || !entry.finished) entry.stream->read();
      if (entry.stage == Stage::kOpen) return Received<std::string>{signal.id, std::move(signal.text)};
      break;
    case Kind::kReadEnd:
      read_end(signal.id, entry);
      break;
    case Kind::kBroken:
      broken(entry);
      break;
    case Kind::kWritten:
      if (written(entry, signal.ok)) return WriteDone{signal.id};
      break;
    case Kind::kDone:
      Closed closed{signal.id, entry.by_us, entry.code, std::move(entry.why), entry.refusal};
      if (!entry.by_us && !config_.server) {
        closed.code = signal.code;
        closed.why = std::move(signal.text);
      }
      entries_.erase(found);
      return closed;
  }
  return {};
}

std::optional<RawEvent> Table::opened(Signal& signal) {
  Entry& entry = entries_[signal.id];
  if (signal.stream) entry.stream = std::move(signal.stream);
  if (!signal.peer) {
    if (signal.code != Code::kOk && entry.stage != Stage::kClosing) {
      entry.by_us = true;
      entry.code = signal.code;
      entry.why = std::move(signal.text);
    }
    entry.stream->cancel();
    read_end(signal.id, entry);
    return {};
  }
  entry.peer = std::move(signal.peer);
  entry.stream->read();
  if (entry.stage != Stage::kOpening) return {};
  entry.stage = Stage::kOpen;
  first_end_ = std::min(first_end_, entry.peer->not_after);
  // It was judged in another thread, and what it was judged by may have changed since.
  if (signal.trust != trust_) next_look_ = last_sweep_ = 0;
  return Opened{signal.id, entry.peer, std::move(signal.text)};
}

void Table::read_end(StreamId id, Entry& entry) {
  if (!config_.server) {
    entry.stage = Stage::kClosing;
    entry.finished = true;  // gRPC may forget the call from here on
    if (!std::exchange(entry.let_go, true)) entry.stream->let_go();
  } else if (!config_.single && entry.stage != Stage::kClosing) {
    end(id, entry, Code::kOk, "the peer ended the stream");
  }  // What is asked once has one answer, which still goes out.
}

void Table::broken(Entry& entry) {
  if (entry.stage != Stage::kClosing || !entry.by_us) {
    entry.code = Code::kCancelled;
    entry.why = "the stream or its connection broke";
  }
  entry.stage = Stage::kClosing;
  if (!entry.writing) finish(entry);
}

bool Table::written(Entry& entry, bool ok) {
  entry.writing = false;
  if (entry.stage == Stage::kClosing) {
    finish(entry);
    return false;
  }
  if (!ok) return false;  // its end comes by itself
  if (config_.single) {
    if (config_.server) entry.stage = Stage::kClosing;
    finish(entry);
  }
  return config_.server || entry.stage == Stage::kOpen;
}

void Table::look_at_time() {
  const Nanoseconds now = monotonic_now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const StreamId id = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.stage == Stage::kOpen) continue;
    Entry& entry = found->second;
    if (entry.stage == Stage::kOpening) {
      entry.by_us = true;
      entry.code = Code::kDeadline;
      entry.why = "the peer did not answer in time";
      entry.stage = Stage::kClosing;
    }
    ++cancelled_;
    entry.stream->cancel();
  }
  if (now >= next_look_) {
    if (must_sweep(now)) sweep();
    next_look_ = now + (sweeping_ ? kMillisecond : kLook);
  }
  arm();
}

void Table::arm() {
  shared_->signals->wake_at(deadlines_.empty() ? next_look_ : std::min(next_look_, deadlines_.begin()->first));
}

bool Table::must_sweep(Nanoseconds now) {
  if (sweeping_) return true;
  auto trust = shared_->credentials->current();
  if (trust == trust_ && time(nullptr) <= first_end_ && now - last_sweep_ < kSweep) return false;
  trust_ = std::move(trust);
  first_end_ = std::numeric_limits<int64_t>::max();
  swept_ = 0;
  sweeping_ = true;
  last_sweep_ = now;
  return true;
}

// Certificates run out, and lists of revoked ones change, while streams live. All peers are judged anew, a few a turn:
// each takes a signature check.
void Table::sweep() {
  size_t judged = 0;
  auto at = entries_.upper_bound(swept_);
  for (; at != entries_.end() && judged < kPeersATurn; ++at) {
    swept_ = at->first;
    const auto& peer = at->second.peer;
    if (!peer || at->second.stage != Stage::kOpen) continue;
    const auto [verdict, is_new] = judged_.try_emplace(peer);
    if (is_new) {
      verdict->second = trust_->still_good(*peer, shared_->side, shared_->expected);
      ++judged;
    }
    if (!verdict->second) {
      first_end_ = std::min(first_end_, peer->not_after);
      continue;
    }
    at->second.by_us = true;
    at->second.refusal = verdict->second;
    end(at->first, at->second, Code::kUnauthenticated, std::string(security::name_of(*verdict->second)));
  }
  sweeping_ = at != entries_.end();
  if (!sweeping_) judged_.clear();
}

void Table::shut_down() {
  shared_->stopping = true;
  for (auto& [id, entry] : entries_) close_now(entry);
  while (!entries_.empty() || shared_->streams > 0) {
    while (auto signal = shared_->signals->take()) {
      const bool fresh = signal->kind == Signal::Kind::kOpened && config_.server;
      const StreamId id = signal->id;
      (void)handle(std::move(*signal));
      if (fresh) close_now(entries_.at(id));
    }
    if (!entries_.empty() || shared_->streams > 0) shared_->signals->wait();
  }
}

void Table::close_now(Entry& entry) {
  entry.stage = Stage::kClosing;
  entry.stream->cancel();
  if (config_.server && !entry.writing) finish(entry);
}

}  // namespace margay::rpc
