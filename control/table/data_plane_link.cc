// SPDX-License-Identifier: Apache-2.0
#include "control/table/data_plane_link.h"

#include <poll.h>

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "control/watch.h"

namespace margay::control {

using shared_table::CountersShape;
using shared_table::HeartbeatWatch;
using shared_table::InstanceRecord;
using shared_table::SciRecord;
using shared_table::Snapshot;
using shared_table::Writer;

namespace {

constexpr Nanoseconds kStood = 10 * kSecond;  // a connection that was no failure
constexpr uint64_t kGenerationMax = std::numeric_limits<uint64_t>::max() / 2;

bool readable(int socket) {
  pollfd polled{socket, POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

Result<void> check(const Snapshot& running, const CountersShape& capacity) {
  if (running.generation > kGenerationMax) return Error{"the running snapshot leaves no generation above its own"};
  for (const SciRecord& sci : running.scis) {
    bool fits = sci.index < capacity.scis;
    for (const InstanceRecord& i : sci.instances) fits = fits && i.index < capacity.instances;
    if (!fits) return Error{"the running snapshot's scis[" + sci.policy.csci_id + "] has an index without a counter"};
  }
  return {};
}

std::vector<uint64_t> heartbeats_of(std::span<const WorkerCounters> workers) {
  std::vector<uint64_t> heartbeats;
  for (const WorkerCounters& w : workers) heartbeats.push_back(w.polls.get());
  return heartbeats;
}

}  // namespace

DataPlaneLink::DataPlaneLink(std::string path, TablePlan& plan, int epoll, Nanoseconds now)
    : path_(std::move(path)), plan_(plan), epoll_(epoll), started_(now), retry_at_(now) {}

DataPlaneLink::Turn DataPlaneLink::poll(Nanoseconds now) {
  if (path_.empty()) return {};
  turn_ = {};
  if (!there_ && !calling_ && now >= retry_at_) call(now);
  if (calling_) welcome(now);
  if (there_) hear(now);
  if (there_ && now >= look_at_) look(now);
  if (!there_ && now - started_ >= kPatience) lose(status_.why);
  return std::exchange(turn_, {});
}

Nanoseconds DataPlaneLink::next_due() const {
  if (path_.empty()) return kNever;
  if (calling_) return give_up_at_;
  if (!there_) return told_lost_ ? retry_at_ : std::min(retry_at_, started_ + kPatience);
  return plan_.pending() ? std::min(look_at_, commit_at_) : look_at_;
}

void DataPlaneLink::call(Nanoseconds now) {
  auto socket = Writer::call(path_);
  if (!socket) return away(socket.error().message, now);
  calling_ = std::move(*socket);
  (void)watch(epoll_, calling_.get());
  give_up_at_ = now + kPatience;
}

void DataPlaneLink::welcome(Nanoseconds now) {
  if (!readable(calling_.get())) {
    if (now < give_up_at_) return;
    calling_.reset();
    return away(path_ + ": the data plane says nothing", now);
  }
  auto writer = Writer::welcomed(path_, std::exchange(calling_, Fd()));
  if (!writer) return away(writer.error().message, now);
  if (auto met = meet(std::move(*writer), now); !met) away(path_ + ": " + met.error().message, now);
}

Result<void> DataPlaneLink::meet(std::unique_ptr<Writer> writer, Nanoseconds now) {
  const auto view = shared_table::open_counters(writer->counters().bytes());
  if (!view) return view.error();
  const CountersShape capacity = view->shape();
  if (writer->running()) {
    if (auto fits = check(*writer->running(), capacity); !fits) return fits;
  }
  running_ = writer->running();
  there_.reset(new There{.writer = std::move(writer),
                         .ledger = LedgerReader(*view),
                         .workers = view->workers(),
                         .stopped = &view->stopped().front(),
                         .watch = HeartbeatWatch(view->workers(), now),
                         .heartbeats = heartbeats_of(view->workers()),
                         .seen = {},
                         .standing = {},
                         .stalled = {},
                         .since = now});
  status_.connected = true;
  status_.workers = capacity.workers;
  status_.acked = 0;
  status_.why = "no worker has made progress yet";
  ++status_.connections;
  turn_.connected = true;
  told_away_.clear();
  told_refusal_.clear();
  commit_at_ = look_at_ = now;
  give_up_at_ = kNever;
  spdlog::info("msg=\"data plane connected\" socket={} workers={} instances_max={} scis_max={} generation={}", path_,
               capacity.workers, capacity.instances, capacity.scis, running_ ? running_->generation : 0);
  const LedgerReader* ledger = &there_->ledger;
  const auto placed = plan_.adopt(running_, {.capacity = capacity,
                                             .in_use = [ledger](uint32_t i) { return ledger->in_use(i); },
                                             .generation = [ledger](uint32_t i) { return ledger->generation(i); }});
  if (!placed) spdlog::error("msg=\"the site does not fit the data plane\" why={:?}", placed.error().message);
  return {};
}

void DataPlaneLink::hear(Nanoseconds now) {
  const Writer::News news = there_->writer->news();
  const std::string wrong = heed(news, now);
  if (!wrong.empty()) return part(wrong, now);
  if (news.gone) return part(news.why.empty() ? "the data plane closed the connection" : news.why, now);
  if (plan_.under_way() == 0 || now < give_up_at_) return;
  if (status_.alive) {
    return part(fmt::format("the data plane did not answer the commit of generation {}", plan_.under_way()), now);
  }
  give_up_at_ = now + kAnswerPatience;
}

// What is wrong with it, or nothing.
std::string DataPlaneLink::heed(const Writer::News& news, Nanoseconds now) {
  if (news.taken && *news.taken == plan_.under_way()) {
    plan_.taken();
    ++status_.taken;
    if (!plan_.holds_back()) told_refusal_.clear();
  }
  for (const Writer::News::Refused& r : news.refused) {
    if (r.generation == plan_.under_way()) refused(r, now);
  }
  if (news.acked && *news.acked > status_.acked) {
    status_.acked = *news.acked;
    there_->stalled.clear();
    plan_.acked(status_.acked);
  }
  for (const uint32_t worker : news.stalled) {
    if (worker >= status_.workers) return fmt::format("the data plane named worker {} of {}", worker, status_.workers);
    if (!there_->stalled.insert(worker).second) continue;
    spdlog::warn("msg=\"worker holds up the table\" worker={} generation={}", worker, plan_.generation());
  }
  return {};
}

void DataPlaneLink::refused(const Writer::News::Refused& refusal, Nanoseconds now) {
  ++status_.refused;
  status_.last_refusal = refusal.why;
  if (told_refusal_ != refusal.why) {
    spdlog::error("msg=\"the data plane refused the table\" generation={} why={:?}", refusal.generation, refusal.why);
  }
  told_refusal_ = refusal.why;
  const bool held = plan_.holds_back();
  plan_.refused();
  const bool begins_to_hold = plan_.holds_back() && !held;
  if (begins_to_hold) hold_until_ = now + kRetryRefused;
  commit_at_ = begins_to_hold ? now : now + kSecond;
}

void DataPlaneLink::flush(Nanoseconds now) {
  if (!there_) return;
  if (plan_.holds_back() && now >= hold_until_) plan_.retry();
  if (!plan_.pending() || now < commit_at_) return;
  Snapshot snapshot = plan_.next();
  if (!there_->writer->commit(snapshot)) {
    commit_at_ = now + kLedgerInterval;
    return;
  }
  plan_.committed(std::move(snapshot));
  give_up_at_ = now + kAnswerPatience;
}

void DataPlaneLink::look(Nanoseconds now) {
  look_at_ = now + kLedgerInterval;
  watch_workers(now);
  if (!status_.alive && forwards()) {
    status_.alive = true;
    status_.why.clear();
    turn_.back = std::exchange(told_lost_, false);
    if (turn_.back) spdlog::info("msg=\"data plane back\" socket={}", path_);
  }
  if (status_.alive && plan_.placed()) read_ledger();
}

void DataPlaneLink::watch_workers(Nanoseconds now) {
  for (const HeartbeatWatch::News& news : there_->watch.look(now)) {
    const auto ms = news.stood_still / kMillisecond;
    if (news.stalled) {
      there_->standing.insert(news.worker);
      spdlog::warn("msg=\"worker makes no progress\" worker={} for_ms={}", news.worker, ms);
    } else {
      there_->standing.erase(news.worker);
      spdlog::warn("msg=\"worker goes on\" worker={} stood_still_ms={}", news.worker, ms);
    }
  }
  const bool stopped = there_->stopped->get() != 0;
  const bool frozen = status_.alive && there_->standing.size() == status_.workers;
  if (!stopped && !frozen) return;
  there_->heartbeats = heartbeats_of(there_->workers);
  lose(stopped ? "its operator stopped it" : "no worker of the data plane makes progress");
}

bool DataPlaneLink::forwards() const {
  if (there_->stopped->get() != 0) return false;
  for (size_t w = 0; w < there_->heartbeats.size(); ++w) {
    if (there_->workers[w].polls.get() != there_->heartbeats[w]) return true;
  }
  return false;
}

void DataPlaneLink::read_ledger() {
  const std::vector<uint64_t> before = std::exchange(there_->seen, heartbeats_of(there_->workers));
  for (const auto& [name, sci] : plan_.scis()) {
    turn_.ledger.emplace_back(name, there_->ledger.read(sci));
    turn_.ledger.back().second.stood_still = there_->seen == before;
  }
}

void DataPlaneLink::away(const std::string& why, Nanoseconds now) {
  status_.why = why;
  if (told_away_ != why) spdlog::warn("msg=\"no data plane\" why={:?}", why);
  told_away_ = why;
  back_off(now);
}

void DataPlaneLink::back_off(Nanoseconds now) {
  retry_at_ = now + backoff_;
  backoff_ = std::min(2 * backoff_, kBackoffMax);
}

void DataPlaneLink::lose(const std::string& why) {
  status_.alive = false;
  status_.why = why;
  if (std::exchange(told_lost_, true)) return;
  turn_.lost = why;
  spdlog::error("msg=\"data plane lost\" why={:?}", why);
}

void DataPlaneLink::part(const std::string& why, Nanoseconds now) {
  if (told_lost_) spdlog::warn("msg=\"connection to the data plane ended\" why={:?}", why);
  lose(why);
  if (now - there_->since >= kStood) backoff_ = kBackoffMin;
  plan_.lost();
  there_.reset();
  status_.connected = false;
  back_off(now);
}

}  // namespace margay::control
