// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/replay.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "dataplane/core/arena.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/core/live_site.h"
#include "dataplane/mailbox.h"
#include "dataplane/replay/first_table.h"
#include "dataplane/replay/output_files.h"
#include "dataplane/replay/recording.h"
#include "dataplane/replay/report.h"
#include "dataplane/worker.h"

namespace margay::dp {
namespace {

// RCU for a single thread: what is published is used from the next poll on.
struct ReplayRcu {
  template <class T>
  class Pointer {
   public:
    explicit Pointer(T* first) : now_(first) {}
    T* read() const { return now_; }
    void publish(T* next) { now_ = next; }

   private:
    T* now_;
  };
};
using ReplayWorker = Worker<ReplayIo, ReplayRcu>;

// SplitMix64: a seed's stream of secrets.
HashSecret secret_from(uint64_t seed) {
  HashSecret secret;
  for (uint64_t& word : secret.words) {
    seed += 0x9e3779b97f4a7c15u;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    word = z ^ (z >> 31);
  }
  return secret;
}

Result<std::vector<CaptureReader>> open_inputs(const std::vector<ReplayInput>& inputs) {
  std::vector<CaptureReader> readers;
  for (const ReplayInput& input : inputs) {
    auto reader = CaptureReader::open(input.file, input.port);
    if (!reader) return reader.error();
    readers.push_back(std::move(*reader));
  }
  return readers;
}

// Zeroed memory with an arena over it.
class Memory {
 public:
  explicit Memory(size_t bytes) : lines_(bytes / kCacheLine), arena_(std::as_writable_bytes(std::span(lines_))) {}
  Memory(const Memory&) = delete;
  Arena& arena() { return arena_; }

 private:
  struct alignas(kCacheLine) Line {
    std::byte bytes[kCacheLine];
  };
  std::vector<Line> lines_;
  Arena arena_;
};

// The fast paths of all workers, and the memory below them.
class FastPaths {
 public:
  FastPaths(const ReplayOptions& options, const SiteTable& table, const Recording* recording, Nanoseconds now)
      : room_(room(options.workers, table, recording)),
        shared_memory_(shared_bytes(room_)),
        shared(shared_memory_.arena(), room_.workers, room_.instances, room_.scis) {
    shared.open_instances(table);
    for (WorkerIndex w = 0; w < options.workers; ++w) {
      Arena counting;
      FastPath(config(options, w), shared, counting, now);
      memory_.push_back(std::make_unique<Memory>(counting.used()));
      workers.push_back(std::make_unique<FastPath>(config(options, w), shared, memory_.back()->arena(), now));
    }
  }

 private:
  // For every index that the table has or will have.
  static shared_table::CountersShape room(WorkerIndex workers, const SiteTable& table, const Recording* recording) {
    size_t instances = std::max<size_t>(1, table.instances.size()), scis = table.scis.size();
    if (recording != nullptr) instances = std::max(instances, recording->instances_max());
    if (recording != nullptr) scis = std::max(scis, recording->scis_max());
    return {workers, static_cast<uint32_t>(instances), static_cast<uint32_t>(scis)};
  }

  static size_t shared_bytes(shared_table::CountersShape room) {
    Arena counting;
    SharedState(counting, room.workers, room.instances, room.scis);
    return counting.used();
  }

  static FastPathConfig config(const ReplayOptions& options, WorkerIndex self) {
    FastPathConfig config;
    config.self = self;
    config.workers = options.workers;
    config.flows = (options.site.flows + options.workers - 1) / options.workers;
    config.secret = secret_from(options.seed);
    return config;
  }

  shared_table::CountersShape room_;
  Memory shared_memory_;
  std::vector<std::unique_ptr<Memory>> memory_;

 public:
  SharedState shared;
  std::vector<std::unique_ptr<FastPath>> workers;
};

class Replay : LiveSite::Owner {
 public:
  // REQUIRES: options, and the recording if there is one, outlive it.
  Replay(const ReplayOptions& options, const Recording* recording, std::unique_ptr<SiteTable> table,
         CaptureMerge captures, std::vector<PortOutput> outputs, DecisionLog log)
      : options_(options),
        recording_(recording),
        captures_(std::move(captures)),
        log_(std::move(log)),
        started_(captures_.start()),
        fast_paths_(options, *table, recording, started_),
        site_(options.site, fast_paths_.shared, std::move(table), *this),
        pointer_(site_.table().get()),
        named_(fast_paths_.shared, recording != nullptr),
        net_({options.workers, static_cast<uint16_t>(buffer_bytes(options.site)), options.assume_neighbours},
             options.site.ports.size(), std::move(outputs), log_),
        mailboxes_(options.workers),
        ended_(options.workers * fast_paths_.shared.instances_max) {
    for (const auto& fast_path : fast_paths_.workers) ios_.emplace_back(net_, *fast_path);
    for (WorkerIndex w = 0; w < options.workers; ++w) {
      workers_.emplace_back(ios_[w], *fast_paths_.workers[w], pointer_, mailboxes_[w], Idle::kSpin);
    }
    net_.set_time(started_);
  }

  Result<Account> run(const std::string& counters_file);

 private:
  struct Ended {  // of the instance of this generation, so far
    uint16_t generation = 0;
    std::array<uint64_t, kEndReasons> sessions{};
  };

  using SlotEvents = std::pair<uint64_t, size_t>;  // releases, bindings

  Tick tick_at(Nanoseconds time) const override { return to_tick(std::max(time, net_.now())); }
  uint64_t passed() const override { return site_.table()->version; }
  void publish(const SiteTable& next, std::shared_ptr<const SiteTable> before) override;

  Result<void> change_until(Nanoseconds time);
  Result<void> apply(const TableLine& line);
  void end_lost();
  Result<void> set(const RecordedSetting& setting);
  Result<void> step();
  void settle();
  void advance_to(Nanoseconds time);
  void drain();
  bool busy() const;
  SlotEvents slot_events() const;
  void tell_ended();

  const ReplayOptions& options_;
  const Recording* recording_;
  size_t changes_ = 0;  // of the recording, made so far
  CaptureMerge captures_;
  DecisionLog log_;
  const Nanoseconds started_;
  FastPaths fast_paths_;
  LiveSite site_;
  ReplayWorker::TablePointer pointer_;
  NamedCounters named_;
  ReplayNet net_;
  std::vector<Mailbox> mailboxes_;
  std::vector<ReplayIo> ios_;
  std::vector<ReplayWorker> workers_;
  uint64_t packets_ = 0;
  std::vector<Ended> ended_;  // told so far, by worker and instance
  SlotEvents slot_events_;    // when ended_ was looked at last
};

Result<Account> Replay::run(const std::string& counters_file) {
  if (recording_ != nullptr) {
    for (const RecordedSetting& setting : recording_->state().set) {
      if (auto done = set(setting); !done) return recording_->at(1, done.error());
    }
  }
  settle();
  while (!captures_.at_end()) {
    if (auto changed = change_until(captures_.frame().time); !changed) return changed.error();
    advance_to(captures_.frame().time);
    if (auto stepped = step(); !stepped) return stepped.error();
  }
  if (options_.drain) {
    if (auto changed = change_until(kNever); !changed) return changed.error();
    drain();
  }
  const ReportInput report{options_.site,       *site_.table(), named_,        fast_paths_.shared, fast_paths_.workers,
                           captures_.readers(), net_.account(), options_.seed, started_,           net_.now()};
  if (auto written = write_report(counters_file, report); !written) return written.error();
  if (auto closed = net_.close_outputs(); !closed) return closed.error();
  if (auto closed = log_.close(); !closed) return closed.error();
  return net_.account();
}

void Replay::publish(const SiteTable& next, std::shared_ptr<const SiteTable> before) {
  named_.change(*before, next);
  pointer_.publish(&next);
  log_.follow(next);
}

// Makes the recorded changes up to and of this time, each at its own.
Result<void> Replay::change_until(Nanoseconds time) {
  if (recording_ == nullptr) return {};
  for (; changes_ < recording_->changes().size(); ++changes_) {
    const Recording::Change& change = recording_->changes()[changes_];
    if (change.recorded.time > time) break;
    if (change.recorded.time > net_.now()) advance_to(change.recorded.time);
    if (auto done = apply(change.recorded); !done) return recording_->at(change.line, done.error());
    settle();
  }
  return {};
}

Result<void> Replay::apply(const TableLine& line) {
  if (const auto* snapshot = std::get_if<shared_table::Snapshot>(&line.what)) {
    auto done = site_.apply(*snapshot);
    if (done) return done;
    // The data plane took it: its walk over all bindings had ended those that keep an index in use here.
    end_lost();
    return site_.apply(*snapshot);
  }
  if (const auto* setting = std::get_if<RecordedSetting>(&line.what)) return set(*setting);
  const bool on = std::get<RecordedForwarding>(line.what).on;
  site_.change([on](SiteTable& next) { next.forwarding = on; });
  return {};
}

void Replay::end_lost() {
  bool more;
  do {
    more = false;
    for (const auto& fast_path : fast_paths_.workers) more |= fast_path->end_lost(*site_.table(), net_.now());
    settle();
  } while (more);
}

Result<void> Replay::set(const RecordedSetting& setting) {
  const SiteTable& table = *site_.table();
  const InstanceIndex i = table.waiting ? kNoIndex : table.instance_by_name(setting.csci_id, setting.si_id);
  if (i == kNoIndex) return Error{"instance: the table has no " + setting.csci_id + " " + setting.si_id + " then"};
  site_.set(i, [&](Override& set) {
    set.admin = setting.admin;
    set.drain_deadline = tick_at(setting.drain_deadline.value_or(0));
    set.max_sessions = setting.max_sessions;
    set.weight = setting.weight;
  });
  return {};
}

Result<void> Replay::step() {
  const PortIndex port = captures_.frame().port;
  const Nanoseconds time = captures_.frame().time;
  for (size_t n = 0; n < kBurstMax && !captures_.at_end(); ++n) {
    const CapturedFrame& frame = captures_.frame();
    if (frame.port != port || frame.time != time) break;
    net_.arrive({++packets_, port, time, frame.wire_length}, frame.bytes, fast_paths_.workers[0]->counters());
    if (auto advanced = captures_.advance(); !advanced) return advanced;
  }
  settle();
  return {};
}

// Polls until nothing moves any more at this time.
void Replay::settle() {
  uint64_t moved;
  do {
    moved = 0;
    for (ReplayWorker& worker : workers_) moved += worker.poll();
  } while (moved > 0 || net_.pending());
  tell_ended();
  log_.end_step();
}

bool Replay::busy() const {
  return std::any_of(fast_paths_.workers.begin(), fast_paths_.workers.end(),
                     [](const auto& f) { return f->flows() > 0 || f->held() > 0; });
}

void Replay::advance_to(Nanoseconds time) {
  for (;;) {
    const Nanoseconds next = (net_.now() / kTickLength + 1) * kTickLength;
    if (next > time || !busy()) break;
    net_.set_time(next);
    settle();
  }
  if (time == net_.now()) return;
  net_.set_time(time);
  settle();
}

void Replay::drain() {
  while (busy()) {
    net_.set_time((net_.now() / kTickLength + 1) * kTickLength);
    settle();
  }
}

// Another one whenever a slot may have been released.
Replay::SlotEvents Replay::slot_events() const {
  SlotEvents events{log_.slot_changes(), 0};
  for (const auto& fast_path : fast_paths_.workers) {
    events.first += fast_path->counters().timers_fired.get() + fast_path->counters().evicted.get();
    events.second += fast_path->flows();  // fewer, when an instance has lost what it had
  }
  return events;
}

void Replay::tell_ended() {
  if (slot_events() == std::exchange(slot_events_, slot_events())) return;
  for (InstanceIndex i = 0; i < site_.table()->instances.size(); ++i) {
    for (WorkerIndex w = 0; w < options_.workers; ++w) {
      const InstanceCounters& counters = fast_paths_.shared.counters(w, i);
      Ended& told = ended_[w * fast_paths_.shared.instances_max + i];
      const auto generation = static_cast<uint16_t>(counters.generation.get());
      if (told.generation != generation) told = {generation, {}};
      for (size_t r = 0; r < kEndReasons; ++r) {
        const uint64_t slots = counters.ended[r].get() - std::exchange(told.sessions[r], counters.ended[r].get());
        if (slots > 0) log_.ended(net_.now(), w, i, static_cast<EndReason>(r), slots);
      }
    }
  }
}

}  // namespace

Result<Account> replay(ReplayOptions options) {
  std::optional<Recording> recording;
  if (!options.table.empty()) {
    auto read = Recording::read(options.table, options.site);
    if (!read) return read.error();
    recording = std::move(*read);
  }
  const Recording* recorded = recording ? &*recording : nullptr;
  if (options.assume_neighbours) assume_neighbours(options.site, recorded);
  auto readers = open_inputs(options.inputs);
  if (!readers) return readers.error();
  CaptureMerge captures(std::move(*readers));
  auto table = first_table(options.site, recorded, captures.start());
  if (!table) return table.error();
  std::error_code failed;
  std::filesystem::create_directories(options.out, failed);
  if (failed) return Error{options.out.string() + ": cannot make the directory: " + failed.message()};
  const OutputFiles files(options);
  const auto decisions = files.name("decisions.jsonl");
  if (!decisions) return decisions.error();
  const auto counters = files.name("counters.json");
  if (!counters) return counters.error();
  auto outputs = files.ports();
  if (!outputs) return outputs.error();
  auto log = DecisionLog::create(*decisions, options.site, **table);
  if (!log) return log.error();
  Replay run(options, recorded, std::move(*table), std::move(captures), std::move(*outputs), std::move(*log));
  auto account = run.run(*counters);
  if (account && account->difference() != 0) {
    return Error{*counters + ": the account of packets does not close: difference is not 0"};
  }
  return account;
}

}  // namespace margay::dp
