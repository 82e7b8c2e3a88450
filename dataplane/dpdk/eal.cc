// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/eal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <spdlog/spdlog.h>

#include "dataplane/dpdk/clock.h"

namespace margay::dp {
namespace {

// A stdio stream whose lines become lines of our log.
ssize_t write_to_log(void*, const char* text, size_t size) {
  std::string_view line(text, size);
  while (line.ends_with('\n')) line.remove_suffix(1);
  if (line.empty()) return static_cast<ssize_t>(size);
  // Drivers call much an error that is none (a kernel without multiqueue qdiscs): what ends us says so itself.
  spdlog::warn("msg={:?} from=dpdk", line);
  return static_cast<ssize_t>(size);
}

void redirect_log() {
  cookie_io_functions_t functions{};
  functions.write = write_to_log;
  static FILE* const stream = fopencookie(nullptr, "w", functions);
  if (stream == nullptr) return;
  setvbuf(stream, nullptr, _IOLBF, 1024);
  rte_openlog_stream(stream);
}

// EAL answers a value that it does not like with its whole usage on standard output.
int init_quietly(std::vector<char*>& argv) {
  std::fflush(stdout);
  const int output = dup(STDOUT_FILENO), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nothing, STDOUT_FILENO);
  const int result = rte_eal_init(static_cast<int>(argv.size()), argv.data());
  std::fflush(stdout);
  dup2(output, STDOUT_FILENO);
  close(nothing);
  close(output);
  return result;
}

}  // namespace

Result<std::unique_ptr<Eal>> Eal::start(const EalPlan& plan) {
  redirect_log();
  std::vector<std::string> args{"margay-dataplane"};
  args.insert(args.end(), plan.args.begin(), plan.args.end());
  spdlog::info("msg=\"starting EAL\" args={:?}", fmt::to_string(fmt::join(plan.args, " ")));
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  if (init_quietly(argv) < 0) {
    return Error{
        fmt::format("EAL does not start: {} (arguments: {})", rte_strerror(rte_errno), fmt::join(plan.args, " "))};
  }
  start_clock();
  auto eal = std::unique_ptr<Eal>(new Eal);
  unsigned lcore;
  RTE_LCORE_FOREACH_WORKER(lcore) eal->lcores_.push_back(lcore);
  eal->bodies_.resize(eal->lcores_.size());
  return eal;
}

Eal::~Eal() {
  rte_eal_cleanup();
  rte_openlog_stream(nullptr);
}

size_t Eal::worker_cores() const { return lcores_.size(); }

int Eal::cpu_of(WorkerIndex w) const {
  const rte_cpuset_t cpus = rte_lcore_cpuset(lcores_[w]);
  int cpu = 0;
  while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(static_cast<size_t>(cpu), &cpus)) ++cpu;
  return cpu;
}

// EAL's own answer goes by the lcore's number, which `--lcores` makes free to differ from the CPU's.
int Eal::socket_of(WorkerIndex w) const {
  for (unsigned i = 0; i < rte_socket_count(); ++i) {
    const int node = rte_socket_id_by_idx(i);
    const auto path = fmt::format("/sys/devices/system/cpu/cpu{}/node{}", cpu_of(w), node);
    if (std::error_code none; std::filesystem::exists(path, none)) return node;
  }
  return 0;
}

Result<void> Eal::launch(WorkerIndex w, std::function<void()> body) {
  bodies_[w] = std::make_unique<std::function<void()>>(std::move(body));
  const auto run = [](void* what) {
    (*static_cast<std::function<void()>*>(what))();
    return 0;
  };
  if (const int error = rte_eal_remote_launch(run, bodies_[w].get(), lcores_[w]); error != 0) {
    return Error{fmt::format("worker {} does not start on lcore {}: {}", w, lcores_[w], rte_strerror(-error))};
  }
  return {};
}

void Eal::join() { rte_eal_mp_wait_lcore(); }

}  // namespace margay::dp
