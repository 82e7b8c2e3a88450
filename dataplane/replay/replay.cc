// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/replay.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "dataplane/core/arena.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/mailbox.h"
#include "dataplane/replay/report.h"
#include "dataplane/worker.h"

namespace margay::dp {
namespace {

// RCU for a single thread whose table never changes.
struct ReplayRcu {
  template <class T>
  class Pointer {
   public:
    explicit Pointer(T* only) : only_(only) {}
    T* read() const { return only_; }

   private:
    T* only_;
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

// The port's own `mac`, else 02:00:00:00:0f:NN by its place in the site file.
std::vector<MacAddress> port_macs(const SiteConfig& site) {
  std::vector<MacAddress> macs;
  for (const PortConfig& port : site.ports) {
    const MacAddress fixed{{0x02, 0, 0, 0, 0x0f, static_cast<uint8_t>(macs.size())}};
    macs.push_back(port.mac.value_or(fixed));
  }
  return macs;
}

std::unique_ptr<SiteTable> make_table(const ReplayOptions& options) {
  auto table = SiteTable::build(options.site, port_macs(options.site));
  if (!options.assume_neighbours) return table;
  SiteLayout layout = table->layout();
  for (NextHop& hop : layout.next_hops) {
    if (hop.mac.is_zero()) hop.mac = assumed_mac(hop.address);
  }
  table->set_layout(std::move(layout));
  return table;
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

// All files that a replay writes, each refused where it is one of the inputs.
class OutputFiles {
 public:
  explicit OutputFiles(const ReplayOptions& options) : options_(options) {}

  Result<std::string> name(const std::string& file) const {
    const std::filesystem::path path = options_.out / file;
    for (const ReplayInput& input : options_.inputs) {
      std::error_code none;
      if (std::filesystem::equivalent(path, input.file, none)) {
        return Error{path.string() + ": is an input of this replay, choose another --out"};
      }
    }
    return path.string();
  }

  Result<CaptureWriter> capture(const std::string& file) const {
    auto path = name(file);
    if (!path) return path.error();
    return CaptureWriter::create(*path);
  }

  Result<std::vector<PortOutput>> ports() const {
    std::vector<PortOutput> outputs;
    for (const PortConfig& port : options_.site.ports) {
      auto wire = capture(port.name + ".pcap");
      if (!wire) return wire.error();
      outputs.push_back({std::move(*wire), std::nullopt});
      if (port.kernel.empty()) continue;
      auto kernel = capture(port.name + "-kernel.pcap");
      if (!kernel) return kernel.error();
      outputs.back().kernel = std::move(*kernel);
    }
    return outputs;
  }

 private:
  const ReplayOptions& options_;
};

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
  FastPaths(const ReplayOptions& options, const SiteTable& table, Nanoseconds now)
      : shared_memory_(shared_bytes(options.workers, table)),
        shared(shared_memory_.arena(), options.workers, instances(table), table.scis.size()) {
    shared.open_instances(table);
    for (WorkerIndex w = 0; w < options.workers; ++w) {
      Arena counting;
      FastPath(config(options, w), shared, counting, now);
      memory_.push_back(std::make_unique<Memory>(counting.used()));
      workers.push_back(std::make_unique<FastPath>(config(options, w), shared, memory_.back()->arena(), now));
    }
  }

 private:
  static size_t instances(const SiteTable& table) { return std::max<size_t>(1, table.instances.size()); }

  static size_t shared_bytes(size_t workers, const SiteTable& table) {
    Arena counting;
    SharedState(counting, workers, instances(table), table.scis.size());
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

  Memory shared_memory_;
  std::vector<std::unique_ptr<Memory>> memory_;

 public:
  SharedState shared;
  std::vector<std::unique_ptr<FastPath>> workers;
};

class Replay {
 public:
  Replay(const ReplayOptions& options, std::unique_ptr<SiteTable> table, CaptureMerge captures,
         std::vector<PortOutput> outputs, DecisionLog log)
      : options_(options),
        table_(std::move(table)),
        pointer_(table_.get()),
        captures_(std::move(captures)),
        log_(std::move(log)),
        started_(captures_.at_end() ? 0 : captures_.frame().time),
        fast_paths_(options, *table_, started_),
        net_({options.workers, static_cast<uint16_t>(buffer_bytes(options.site)), options.assume_neighbours},
             options.site.ports.size(), std::move(outputs), log_),
        mailboxes_(options.workers),
        ended_(options.workers * table_->instances.size()) {
    for (const auto& fast_path : fast_paths_.workers) ios_.emplace_back(net_, *fast_path);
    for (WorkerIndex w = 0; w < options.workers; ++w) {
      workers_.emplace_back(ios_[w], *fast_paths_.workers[w], pointer_, mailboxes_[w], Idle::kSpin);
    }
    net_.set_time(started_);
  }

  Result<Account> run(const std::string& counters_file);

 private:
  using Ended = std::array<uint64_t, kEndReasons>;

  Result<void> step();
  void settle();
  void advance_to(Nanoseconds time);
  void drain();
  bool busy() const;
  uint64_t slot_events() const;
  void tell_ended();

  const ReplayOptions& options_;
  std::unique_ptr<SiteTable> table_;
  ReplayWorker::TablePointer pointer_;
  CaptureMerge captures_;
  DecisionLog log_;
  const Nanoseconds started_;
  FastPaths fast_paths_;
  ReplayNet net_;
  std::vector<Mailbox> mailboxes_;
  std::vector<ReplayIo> ios_;
  std::vector<ReplayWorker> workers_;
  uint64_t packets_ = 0;
  std::vector<Ended> ended_;  // told so far, by worker and instance
  uint64_t slot_events_ = 0;  // when ended_ was looked at last
};

Result<Account> Replay::run(const std::string& counters_file) {
  settle();
  while (!captures_.at_end()) {
    advance_to(captures_.frame().time);
    if (auto stepped = step(); !stepped) return stepped.error();
  }
  if (options_.drain) drain();
  const ReportInput report{options_.site,  *table_,       fast_paths_.shared, fast_paths_.workers, captures_.readers(),
                           net_.account(), options_.seed, started_,           net_.now()};
  if (auto written = write_report(counters_file, report); !written) return written.error();
  if (auto closed = net_.close_outputs(); !closed) return closed.error();
  if (auto closed = log_.close(); !closed) return closed.error();
  return net_.account();
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

// Grows with everything that may have released a slot.
uint64_t Replay::slot_events() const {
  uint64_t events = log_.slot_changes();
  for (const auto& fast_path : fast_paths_.workers) {
    events += fast_path->counters().timers_fired.get() + fast_path->counters().evicted.get();
  }
  return events;
}

void Replay::tell_ended() {
  if (slot_events() == std::exchange(slot_events_, slot_events())) return;
  for (InstanceIndex i = 0; i < table_->instances.size(); ++i) {
    for (WorkerIndex w = 0; w < options_.workers; ++w) {
      const InstanceCounters& counters = fast_paths_.shared.counters(w, i);
      Ended& told = ended_[w * table_->instances.size() + i];
      for (size_t r = 0; r < kEndReasons; ++r) {
        const uint64_t slots = counters.ended[r].get() - std::exchange(told[r], counters.ended[r].get());
        if (slots > 0) log_.ended(net_.now(), w, i, static_cast<EndReason>(r), slots);
      }
    }
  }
}

}  // namespace

Result<Account> replay(const ReplayOptions& options) {
  auto table = make_table(options);
  auto readers = open_inputs(options.inputs);
  if (!readers) return readers.error();
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
  auto log = DecisionLog::create(*decisions, options.site, *table);
  if (!log) return log.error();
  Replay run(options, std::move(table), CaptureMerge(std::move(*readers)), std::move(*outputs), std::move(*log));
  auto account = run.run(*counters);
  if (account && account->difference() != 0) {
    return Error{*counters + ": the account of packets does not close: difference is not 0"};
  }
  return account;
}

}  // namespace margay::dp
