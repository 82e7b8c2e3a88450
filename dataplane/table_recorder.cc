// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table_recorder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/monotonic.h"
#include "dataplane/core/site_change.h"

namespace margay::dp {

using shared_table::Snapshot;

namespace {

Nanoseconds wall_now() {
  return static_cast<Nanoseconds>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
}

size_t weight_of(const Snapshot& snapshot) {
  size_t weight = 1;
  for (const auto& sci : snapshot.scis) weight += 1 + sci.instances.size();
  return weight;
}

size_t weight_of(const TableLine& line) {
  if (const auto* snapshot = std::get_if<Snapshot>(&line.what)) return weight_of(*snapshot);
  if (const auto* state = std::get_if<RecordedState>(&line.what)) return weight_of(state->table) + state->set.size();
  return 1;
}

void shift(RecordedSetting& setting, int64_t ahead) {
  if (setting.drain_deadline) setting.drain_deadline = shifted(*setting.drain_deadline, ahead);
}

void shift(TableLine& line, int64_t ahead) {
  line.time = shifted(line.time, ahead);
  if (auto* snapshot = std::get_if<Snapshot>(&line.what)) shift_times(*snapshot, ahead);
  if (auto* setting = std::get_if<RecordedSetting>(&line.what)) shift(*setting, ahead);
  auto* state = std::get_if<RecordedState>(&line.what);
  if (state == nullptr) return;
  shift_times(state->table, ahead);
  for (RecordedSetting& setting : state->set) shift(setting, ahead);
}

}  // namespace

Result<std::unique_ptr<TableRecorder>> TableRecorder::open(const std::string& path, uint64_t bytes_max) {
  std::unique_ptr<TableRecorder> recorder(new TableRecorder(bytes_max));
  if (auto done = recorder->file_.open(path); !done) return done.error();
  if (recorder->file_.bytes() > 0) {
    return Error{path + ": holds " + std::to_string(recorder->file_.bytes()) +
                 " bytes, expected a name for a new file"};
  }
  recorder->wall_ahead_ = static_cast<int64_t>(wall_now() - monotonic_now());
  return recorder;
}

void TableRecorder::note(decltype(TableLine::what) what) {
  TableLine line{monotonic_now(), std::move(what)};
  if (auto* state = std::get_if<RecordedState>(&line.what)) state->monotonic = line.time;
  const size_t weight = weight_of(line);
  const std::lock_guard lock(mutex_);
  overflowed_ = overflowed_ || weight_ + weight > kWaitingMax;
  if (overflowed_) return;
  weight_ += weight;
  waiting_.push_back(std::move(line));
}

bool TableRecorder::write() {
  std::deque<TableLine> taken;
  bool overflowed = false;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(waiting_);
    weight_ = 0;
    overflowed = overflowed_;
  }
  if (!fault_.empty()) return false;
  for (TableLine& line : taken) {
    shift(line, wall_ahead_);
    file_.write(format_line(line));
    if (file_.on()) ++lines_;
  }
  fault_ = file_.fault();
  if (overflowed && fault_.empty()) {
    fault_ = file_.path() + ": takes less than what changes, and " + std::to_string(kWaitingMax) + " instances waited";
    file_.close();
  }
  return !fault_.empty();
}

RecordedSetting setting_of(const SiteTable& table, InstanceIndex i, const std::optional<Override>& set,
                           Nanoseconds worker_now) {
  const Instance& instance = table.instances[i];
  RecordedSetting setting;
  setting.csci_id = table.scis[instance.sci].csci_id;
  setting.si_id = instance.si_id;
  if (!set) return setting;
  setting.admin = set->admin;
  setting.max_sessions = set->max_sessions;
  setting.weight = set->weight;
  if (set->admin != Admin::kDraining) return setting;
  const auto ticks_left = static_cast<int32_t>(set->drain_deadline - to_tick(worker_now));
  const Nanoseconds left = static_cast<Nanoseconds>(std::max(ticks_left, 0)) * kTickLength;
  setting.drain_deadline = monotonic_now() + left;
  return setting;
}

RecordedState state_of(const LiveSite& live, const SiteConfig& config, Nanoseconds worker_now) {
  const SiteTable& table = *live.table();
  RecordedState state;
  if (!config.site.empty()) state.site = config.site;
  for (size_t p = 0; p < config.ports.size(); ++p) {
    state.ports.push_back({config.ports[p].name, table.ports[p].mac, config.ports[p].addresses});
  }
  state.forwarding = table.forwarding;
  state.waiting = table.waiting;
  if (!table.waiting) state.table = snapshot_of(table);
  state.table.generation = std::max<uint64_t>(1, table.generation);
  for (const auto& [i, set] : live.overrides()) state.set.push_back(setting_of(table, i, set, worker_now));
  return state;
}

}  // namespace margay::dp
