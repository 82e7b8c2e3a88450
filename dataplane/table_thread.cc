// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table_thread.h"

#include <chrono>

namespace margay::dp {
namespace {

constexpr std::chrono::milliseconds kTurn{100};
constexpr std::chrono::milliseconds kTurnWhileAcksWait{1};

}  // namespace

Result<std::unique_ptr<TableThread>> TableThread::start(const std::string& path, DataPlane& data_plane,
                                                        const shared_table::MemoryFile& counters) {
  auto link = TableLink::open(path, data_plane, counters);
  if (!link) return link.error();
  std::unique_ptr<TableThread> table(new TableThread(std::move(*link), data_plane));
  table->seen_ = data_plane.generation();
  table->thread_ = std::thread([raw = table.get()] { raw->run(); });
  return table;
}

TableThread::~TableThread() {
  stop_.store(true, std::memory_order_relaxed);
  thread_.join();
}

TableStatus TableThread::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void TableThread::run() {
  while (!stop_.load(std::memory_order_relaxed)) {
    link_->poll(waiting_.empty() ? kTurn : kTurnWhileAcksWait);
    ack();
    name_stalled();
    const std::lock_guard lock(mutex_);
    static_cast<TableLink::Status&>(status_) = link_->status();
    status_.stalled.assign(stalled_.begin(), stalled_.end());
  }
}

void TableThread::ack() {
  const Published now = data_plane_.published();
  if (now.generation != seen_) {
    seen_ = now.generation;
    waiting_.push_back(now);
  }
  uint64_t acked = 0;
  const uint64_t passed = data_plane_.passed();
  for (; !waiting_.empty() && waiting_.front().version <= passed; waiting_.pop_front()) {
    acked = waiting_.front().generation;
  }
  if (acked > 0) link_->acked(acked);
}

// Also of a worker that stood still before there was anything to ack.
void TableThread::name_stalled() {
  for (const shared_table::HeartbeatWatch::News& news : watch_.look(data_plane_.now())) {
    if (news.stalled) {
      stalled_.insert(news.worker);
      untold_.insert(news.worker);
    } else {
      stalled_.erase(news.worker);
      untold_.erase(news.worker);
    }
  }
  if (waiting_.empty()) return;
  for (const uint32_t worker : untold_) link_->stalled(worker);
  untold_.clear();
}

}  // namespace margay::dp
