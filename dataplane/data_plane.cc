// SPDX-License-Identifier: Apache-2.0
#include "dataplane/data_plane.h"

#include <utility>

#include "common/monotonic.h"
#include "dataplane/core/site_change.h"

namespace margay::dp {

using shared_table::Snapshot;

// Goes once every worker has passed a quiescent state after a publication: then nobody has the old table, and all have
// the new one or a later one.
struct DataPlane::Retired {
  std::shared_ptr<const SiteTable> table;
  uint64_t version = 0;  // of the table that took its place
  std::atomic<uint64_t>* passed = nullptr;

  ~Retired() { passed->store(version, std::memory_order_release); }
};

DataPlane::DataPlane(SiteConfig site, std::unique_ptr<SiteTable> first, SharedState& shared_state,
                     std::vector<Mailbox>& worker_mailboxes, PortInspector& inspector)
    : config(std::move(site)),
      shared(shared_state),
      mailboxes(worker_mailboxes),
      ports(inspector),
      site_(config, shared, std::move(first), *this),
      view_(site_.table()),
      pointer_(view_.get()),
      passed_(view_->version) {}

void DataPlane::begin_turn() {
  const std::lock_guard lock(mutex_);
  view_ = site_.table();
}

// Under the mutex, as every change.
void DataPlane::publish(const SiteTable& next, std::shared_ptr<const SiteTable> before) {
  auto retired = std::make_unique<Retired>();
  retired->table = std::move(before);
  retired->version = next.version;
  retired->passed = &passed_;
  if (bindings != nullptr) bindings->about_to_publish(next);
  pointer_.publish(&next);
  UrcuQsbr::retire(std::move(retired));
}

void DataPlane::change(const std::function<void(SiteTable&)>& edit) {
  const std::lock_guard lock(mutex_);
  site_.change(edit);
  view_ = site_.table();
}

bool DataPlane::set_forwarding(bool on) {
  const std::lock_guard lock(mutex_);
  if (view_->forwarding == on) return false;
  site_.change([on](SiteTable& next) { next.forwarding = on; });
  view_ = site_.table();
  shared.stopped.front().set(on ? 0 : 1);
  if (recorder_) recorder_->note(RecordedForwarding{on});
  return true;
}

void DataPlane::set(InstanceIndex i, const std::function<void(Override&)>& edit) {
  const std::lock_guard lock(mutex_);
  site_.set(i, edit);
  view_ = site_.table();
  if (recorder_ && !view_->instances[i].gone) recorder_->note(setting_of(*view_, i, site_.override_of(i), now()));
}

std::optional<Override> DataPlane::override_of(InstanceIndex i) const {
  const std::lock_guard lock(mutex_);
  return site_.override_of(i);
}

uint64_t DataPlane::generation() const {
  const std::lock_guard lock(mutex_);
  return site_.table()->generation;
}

Published DataPlane::published() const {
  const std::lock_guard lock(mutex_);
  return {site_.table()->generation, site_.table()->version};
}

Snapshot DataPlane::complete() const {
  const std::lock_guard lock(mutex_);
  return snapshot_of(*site_.table());
}

Result<void> DataPlane::apply(const Snapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  auto done = site_.apply(snapshot);
  if (done && recorder_) recorder_->note(snapshot);
  return done;
}

Result<void> DataPlane::start_recording(const std::string& path) {
  if (recorder_ && recorder_->status().fault.empty()) {
    return Error{path + ": expected no other recording, but one runs, into " + recorder_->status().path};
  }
  auto recorder = TableRecorder::open(path);
  if (!recorder) return recorder.error();
  const std::lock_guard lock(mutex_);
  recorder_ = std::move(*recorder);
  recorder_->note(state_of(site_, config, now()));
  return {};
}

std::optional<TableRecorder::Status> DataPlane::stop_recording() {
  if (!recorder_) return std::nullopt;
  std::unique_ptr<TableRecorder> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(recorder_);
  }
  ended->write();
  return ended->status();
}

std::optional<TableRecorder::Status> DataPlane::recording() const {
  return recorder_ ? std::optional(recorder_->status()) : std::nullopt;
}

Result<void> DataPlane::write_recording() {
  if (recorder_ && recorder_->write()) return Error{recorder_->status().fault};
  return {};
}

Result<void> DataPlane::keep_bindings() {
  if (bindings == nullptr) return {};
  std::shared_ptr<const SiteTable> table;
  {
    const std::lock_guard lock(mutex_);
    table = site_.table();
  }
  return bindings->refresh(*table, to_tick(now()));
}

Tick DataPlane::tick_at(Nanoseconds monotonic, Nanoseconds (*now)()) {
  const Nanoseconds here = monotonic_now();
  return to_tick(now() + (monotonic > here ? monotonic - here : 0));
}

}  // namespace margay::dp
