// SPDX-License-Identifier: Apache-2.0
#include "dataplane/assemble.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/rcu.h"
#include "dataplane/core/site_change.h"
#include "dataplane/dpdk/buffer_plan.h"
#include "dataplane/dpdk/clock.h"
#include "dataplane/dpdk/eal_plan.h"
#include "dataplane/dpdk/port_io.h"
#include "dataplane/worker.h"

namespace margay::dp {

extern template class Worker<PortIo, UrcuQsbr>;  // worker.cc

namespace {

// By index: what the site file has. A control plane may make the site grow: then room for four times as much.
shared_table::CountersShape shape_of(const SiteConfig& config) {
  size_t instances = 1, scis = 1;  // an array is never empty
  for (const SciConfig& sci : config.scis) instances += sci.instances.size();
  scis = std::max(scis, config.scis.size());
  if (!config.control_socket.empty()) {
    instances = std::clamp<size_t>(4 * instances, 1024, shared_table::kInstancesMax);
    scis = std::clamp<size_t>(4 * scis, 64, shared_table::kScisMax);
  }
  return {config.workers, static_cast<uint32_t>(instances), static_cast<uint32_t>(scis)};
}

uint32_t flows_of_worker(const SiteConfig& config) { return (config.flows + config.workers - 1) / config.workers; }

FastPathConfig fast_path_config(const SiteConfig& config, WorkerIndex self, const HashSecret& secret,
                                const BindingsFile* bindings) {
  FastPathConfig fast_path;
  fast_path.self = self;
  fast_path.workers = static_cast<WorkerIndex>(config.workers);
  fast_path.flows = flows_of_worker(config);
  if (bindings != nullptr) fast_path.entries = bindings->entries(self);
  fast_path.secret = secret;
  return fast_path;
}

struct Need {
  size_t shared = 0, per_worker = 0;  // bytes
};

Need count_arenas(const SiteConfig& config, SharedState::Counters counters, const BindingsFile* bindings) {
  Arena shared_arena, worker_arena;
  SharedState shared(shared_arena, counters);
  FastPath counted(fast_path_config(config, 0, {}, bindings), shared, worker_arena, 0);
  return {.shared = shared_arena.used(), .per_worker = worker_arena.used()};
}

void tell_refused(const BindingsFile& file) {
  spdlog::warn("msg=\"bindings refused, starting empty\" file={} why={:?}", file.path(), "it " + file.refused());
}

Result<HashSecret> draw_secret() {
  HashSecret secret;
  const size_t size = sizeof secret.words;
  if (getrandom(secret.words.data(), size, 0) == static_cast<ssize_t>(size)) return secret;
  return Error{"the kernel gives no random bytes for the hash secret"};
}

}  // namespace

struct Assembly::WorkerParts {
  WorkerParts(MemoryBlock block, const FastPathConfig& config, Ports& ports, DataPlane& data_plane)
      : memory(std::move(block)),
        arena(memory.bytes()),
        io(ports, config.self),
        fast_path(config, data_plane.shared, arena, tsc_now()),
        worker(io, fast_path, data_plane.table_pointer(), data_plane.mailboxes[config.self], data_plane.config.idle) {}

  MemoryBlock memory;
  Arena arena;
  PortIo io;
  FastPath fast_path;
  Worker<PortIo, UrcuQsbr> worker;
};

Result<std::unique_ptr<Assembly>> Assembly::build(SiteConfig config, std::span<const std::string> eal_args) {
  const shared_table::CountersShape shape = shape_of(config);
  auto memory = shared_table::MemoryFile::create("margay-counters", shared_table::counters_bytes(shape),
                                                 shared_table::MemoryFile::Writers::kMaker);
  if (!memory) return memory.error();
  const SharedState::Counters counters = shared_table::make_counters(memory->bytes(), shape);
  auto assembly = std::unique_ptr<Assembly>(new Assembly(std::move(*memory)));
  if (auto done = assembly->open_bindings(config, shape); !done) return done.error();
  const Need need = count_arenas(config, counters, assembly->bindings_.get());
  const BufferPlan buffers = plan_buffers(config);
  const size_t bytes = need.shared + need.per_worker * config.workers + buffers.bytes();
  spdlog::info("msg=\"memory needed\" flows_mib={} shared_mib={} packets_mib={} packet_buffers={}",
               (need.per_worker * config.workers >> 20) + 1, (need.shared >> 20) + 1, (buffers.bytes() >> 20) + 1,
               buffers.count);
  auto plan = plan_eal(config, bytes, read_host(), eal_args);
  if (!plan) return plan.error();
  for (const std::string& warning : plan->warnings) spdlog::warn("msg={:?}", warning);

  auto eal = Eal::start(*plan);
  if (!eal) return eal.error();
  assembly->eal_ = std::move(*eal);
  if (assembly->eal_->worker_cores() < config.workers) {
    return Error{fmt::format("{} workers need {} lcores (one more for the control thread), EAL has {}", config.workers,
                             config.workers + 1, assembly->eal_->worker_cores() + 1)};
  }
  auto ports = Ports::open(config, buffers);
  if (!ports) return ports.error();
  assembly->ports_ = std::move(*ports);
  auto table = assembly->first_table(config, shape);
  if (auto done = assembly->reserve_shared(counters, need.shared); !done) return done.error();
  assembly->shared_->open_instances(*table);
  assembly->mailboxes_ = std::vector<Mailbox>(config.workers);
  assembly->data_plane_.emplace(std::move(config), std::move(table), *assembly->shared_, assembly->mailboxes_,
                                *assembly->ports_);
  assembly->data_plane_->now = tsc_now;
  if (auto done = assembly->make_workers(need.per_worker); !done) return done.error();
  if (auto done = assembly->take_over_bindings(); !done) return done.error();
  return assembly;
}

Result<void> Assembly::reserve_shared(SharedState::Counters counters, size_t bytes) {
  auto memory = MemoryBlock::reserve("shared state", bytes, eal_->socket_of(0));
  if (!memory) return memory.error();
  shared_memory_.emplace(std::move(*memory));
  Arena arena(shared_memory_->bytes());
  shared_.emplace(arena, counters);
  return {};
}

// A file that is there may be of any kind; one that cannot be used is told, and the data plane starts empty.
Result<void> Assembly::open_bindings(const SiteConfig& config, shared_table::CountersShape room) {
  auto fresh = draw_secret();
  if (!fresh) return fresh.error();
  secret_ = *fresh;
  if (config.bindings.empty()) return {};
  const ImageShape shape{config.workers, flows_of_worker(config), table_bytes_for(room.scis, room.instances)};
  auto file = BindingsFile::open(config.bindings, shape, secret_);
  if (!file) return file.error();
  bindings_ = std::move(*file);
  secret_ = bindings_->secret();
  const auto& path = bindings_->path();
  if (!bindings_->refused().empty()) tell_refused(*bindings_);
  if (!bindings_->in_memory()) {
    spdlog::warn("msg=\"bindings are on a disk, whose write-back may hold up workers\" file={}", path);
  }
  if (bindings_->copied()) {
    spdlog::warn("msg=\"no room for two images: the old one is in ordinary memory until start is done\" file={}", path);
  }
  return {};
}

// Of the site file; with a control plane, what the last one said to the process before this one, until it says more.
std::unique_ptr<SiteTable> Assembly::first_table(const SiteConfig& config, shared_table::CountersShape room) const {
  const auto macs = ports_->macs();
  if (config.control_socket.empty()) return SiteTable::build(config, macs);
  const OpenedImage* image = bindings_ ? bindings_->found() : nullptr;
  if (image == nullptr || image->table.snapshot.scis.empty()) return SiteTable::waiting_for_control(config, macs);
  const SiteChange change{config, room.instances, room.scis, [](InstanceIndex) { return false; },
                          [](Nanoseconds t) { return DataPlane::tick_at(t, tsc_now); }};
  auto table = change.apply(*SiteTable::without_scis(config, macs), image->table.snapshot);
  if (table) return std::move(*table);
  bindings_->refuse("has a saved table that is not this site's: " + table.error().message);
  tell_refused(*bindings_);
  return SiteTable::waiting_for_control(config, macs);
}

Result<void> Assembly::take_over_bindings() {
  if (!bindings_) return {};
  const SiteTable& table = data_plane_->table();
  Adopted adopted;
  if (const OpenedImage* image = bindings_->found()) {
    std::vector<FastPath*> fast_paths;
    for (const auto& worker : workers_) fast_paths.push_back(&worker->fast_path);
    adopted = adopt_bindings(*image, table, *shared_, fast_paths, to_tick(tsc_now()));
  }
  if (auto done = bindings_->finish(table, to_tick(tsc_now()), adopted); !done) return done;
  data_plane_->bindings = bindings_.get();
  const auto& started = bindings_->started();
  if (started.process == 0) return {};
  std::string left_out;
  for (size_t r = 0; r < kLeftOuts; ++r) {
    left_out += fmt::format(" {}={}", name_of(static_cast<LeftOut>(r)), adopted.left_out[r]);
  }
  spdlog::info("msg=\"bindings adopted\" bindings={} sessions={} process={} generation={}{}", adopted.bindings,
               adopted.sessions, started.process, started.generation, left_out);
  return {};
}

Result<void> Assembly::make_workers(size_t bytes_per_worker) {
  for (size_t i = 0; i < data_plane_->config.workers; ++i) {
    const auto w = static_cast<WorkerIndex>(i);
    auto memory = MemoryBlock::reserve(fmt::format("worker {}", w), bytes_per_worker, eal_->socket_of(w));
    if (!memory) return memory.error();
    workers_.push_back(std::make_unique<WorkerParts>(
        std::move(*memory), fast_path_config(data_plane_->config, w, secret_, bindings_.get()), *ports_, *data_plane_));
  }
  return {};
}

Result<void> Assembly::start() {
  if (auto done = ports_->start(); !done) return done;
  if (const std::string& path = data_plane_->config.control_socket; !path.empty()) {
    auto table_thread = TableThread::start(path, *data_plane_, counters_);
    if (!table_thread) return table_thread.error();
    table_thread_ = std::move(*table_thread);
    data_plane_->table_status = [thread = table_thread_.get()] { return thread->status(); };
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    const auto w = static_cast<WorkerIndex>(i);
    auto& worker = workers_[i]->worker;
    auto launched = eal_->launch(w, [this, &worker] { worker.run(stop_workers_); });
    if (!launched) return launched;
    spdlog::info("msg=\"worker started\" worker={} cpu={} numa_node={}", w, eal_->cpu_of(w), eal_->socket_of(w));
  }
  return {};
}

void Assembly::stop_workers() {
  stop_workers_.store(true, std::memory_order_relaxed);
  eal_->join();
}

Assembly::Assembly(shared_table::MemoryFile counters) : counters_(std::move(counters)) {}

Assembly::~Assembly() {
  table_thread_.reset();
  if (!eal_) return;
  stop_workers();
  UrcuQsbr::drain();
}

}  // namespace margay::dp
