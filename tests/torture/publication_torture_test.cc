// SPDX-License-Identifier: Apache-2.0

// The whole way of a site table under real threads: a control plane commits at full speed over its socket (health,
// limits and weights that flip, instances and SCIs that come and go, indices used again, layouts that change, snapshots
// that must be refused), the table thread applies and acks, an operator sets and clears, and readers hold tables as
// workers do. Each table that a reader sees must be one whole snapshot: a digest of it is known for every generation
// that may ever run. No ack comes while a reader holds an older table; what runs at the end is the last snapshot that
// was not refused. Under ThreadSanitizer RCU is a stand-in.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/table_rig.h"
#include "tests/torture/whole_table.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

namespace margay::test {
namespace {

using namespace std::chrono_literals;
using shared_table::InstanceRecord;
using shared_table::SciRecord;
using shared_table::Snapshot;
using shared_table::Writer;

#if defined(NDEBUG) && !defined(__SANITIZE_THREAD__)
constexpr uint64_t kCommits = 12'000;
#else
constexpr uint64_t kCommits = 2'500;
#endif
constexpr uint32_t kReaders = 3, kScis = 24, kInstances = 150, kInstancesOfSci = 8;

class Torture {
 public:
  explicit Torture(uint64_t seed) : random_(seed), operator_random_(random_.next()), digests_(2 * kCommits + 100) {
    digests_[0].store(digest_of(site_));
    rig.start_readers([this](uint32_t, const dp::SiteTable& table) { see(table); });
    writer_ = rig.connect();
  }

  void run() {
    std::thread operator_thread([this] { operate(); });
    while (generation_ < kCommits && !::testing::Test::HasFailure()) step();
    stop_.store(true);
    operator_thread.join();
    settle();
    await([&] { return acked_ == last_; });
    EXPECT_EQ(acked_, last_);
    rig.stop_readers();
  }

  Snapshot whole() const {
    Snapshot s;
    s.generation = last_;
    for (const auto& [index, sci] : site_) s.scis.push_back(sci);
    return s;
  }
  const char* wrong() const { return wrong_.load(); }

  TableRig rig{kReaders, kInstances, kScis};
  uint64_t refused = 0, spoilt = 0, still_in_use = 0, used_again = 0, layouts = 0, connections = 0, settings = 0;
  std::atomic<uint64_t> tables_seen{0};

 private:
  // Readers.
  void see(const dp::SiteTable& table) {
    const char* wrong = wrong_with(table);
    if (digests_[table.generation].load(std::memory_order_relaxed) != digest_of(table)) {
      wrong = "a table that is no whole snapshot";
    }
    if (wrong != nullptr) wrong_.store(wrong);
    tables_seen.fetch_add(1, std::memory_order_relaxed);
  }

  void operate() {
    while (!stop_.load()) {
      set_something();
      std::this_thread::sleep_for(std::chrono::microseconds(operator_random_.below(400)));
    }
    for (dp::InstanceIndex i = 0; i < kInstances; ++i) {
      rig.plane.begin_turn();
      if (rig.plane.override_of(i)) rig.plane.set(i, clear);
    }
  }
  static void clear(dp::Override& o) {
    o.weight.reset();
    o.admin.reset();
  }
  void set_something() {
    rig.plane.begin_turn();
    const dp::InstanceIndex i = operator_random_.below(kInstances);
    if (i >= rig.plane.table().instances.size() || rig.plane.table().instances[i].si_id.empty()) return;
    const uint32_t what = operator_random_.below(3);
    rig.plane.set(i, [&](dp::Override& o) {
      if (what == 0) o.weight = operator_weight(i, o.generation);
      if (what == 1) o.admin = Admin::kDisabled;
      if (what == 2) clear(o);
    });
    ++settings;
  }

  // The control plane. Whatever else it does, it hears.
  void hear() {
    const Writer::News news = writer_->news();
    EXPECT_FALSE(news.gone) << news.why;
    if (news.acked) {
      acked_ = *news.acked;
      EXPECT_TRUE(rig.all_passed(acked_)) << "generation " << acked_ << " is acked, and a reader holds an older one";
    }
    if (news.taken) answered_ = std::max(answered_, *news.taken);
    for (const auto& refusal : news.refused) {
      answered_ = std::max(answered_, refusal.generation);
      ++refused;
      if (must_be_refused_.erase(refusal.generation) > 0) continue;
      EXPECT_EQ(refusal.generation, risky_) << refusal.why;
      EXPECT_NE(refusal.why.find("still in use"), std::string::npos) << refusal.why;
      risk_refused_ = true;
    }
    EXPECT_EQ(wrong(), nullptr) << wrong();
  }
  template <class Enough>
  void await(Enough enough) {
    for (const auto until = std::chrono::steady_clock::now() + 30s;
         !enough() && std::chrono::steady_clock::now() < until;) {
      hear();
      if (::testing::Test::HasFailure()) return;
    }
  }
  void settle() {
    await([&] { return answered_ == committed_; });
  }

  // Commits the next generation, which makes `next` of the site, or is refused.
  void commit(Snapshot s, const std::map<uint32_t, SciRecord>* next) {
    s.generation = generation_;
    if (next != nullptr) {
      digests_[generation_].store(digest_of(*next));
    } else {
      must_be_refused_.insert(generation_);
      ++spoilt;
    }
    while (!writer_->commit(s) && !::testing::Test::HasFailure()) hear();
    committed_ = generation_;
    if (next != nullptr) last_ = generation_;
    hear();
  }
  void commit_sure(Snapshot s, std::map<uint32_t, SciRecord> next) {
    commit(std::move(s), &next);
    site_ = std::move(next);
  }
  // May be refused for an index that is still in use.
  bool commit_risky(Snapshot s, std::map<uint32_t, SciRecord> next) {
    settle();
    const uint64_t before = last_;
    risky_ = generation_;
    risk_refused_ = false;
    commit(std::move(s), &next);
    settle();
    risky_ = 0;
    if (risk_refused_) {
      digests_[generation_].store(0);
      last_ = before;
      ++still_in_use;
      return false;
    }
    site_ = std::move(next);
    return true;
  }

  Snapshot change(std::vector<SciRecord> scis, std::vector<uint32_t> removed = {}) const {
    Snapshot s;
    s.base = last_;
    s.scis = std::move(scis);
    s.removed = std::move(removed);
    return s;
  }

  void step() {
    ++generation_;
    const uint32_t what = random_.below(1000);
    if (site_.empty() || what < 8) return add_sci();
    if (what < 20) return add_instance();
    if (what < 60) return remove_instance();
    if (what < 66 && site_.size() > 1) return remove_sci();
    if (what < 90) return move_endpoint();
    if (what < 150) return commit_everything();
    if (what < 250) return commit_wrong();
    if (what < 252) reconnect();
    flip();
  }

  SciRecord& any(std::map<uint32_t, SciRecord>& site) {
    auto it = site.begin();
    std::advance(it, random_.below(site.size()));
    return it->second;
  }
  // All that a snapshot may change without touching the layout.
  void restamp(SciRecord& sci) {
    sci.policy.affinity_timeout = generation_;
    for (InstanceRecord& i : sci.instances) {
      i.health = static_cast<HealthState>(random_.below(kHealthStates));
      i.config.max_sessions = 1 + random_.below(1000);
      i.limit = limit_of(i.health, i.config.max_sessions, Share(sci.policy.degradation_factor));
      i.config.weight = weight_of(generation_, i.index);
    }
  }
  void flip() {
    auto next = site_;
    SciRecord& sci = any(next);
    restamp(sci);
    commit_sure(change({sci}), std::move(next));
  }
  void commit_everything() {
    auto next = site_;
    Snapshot s;
    for (auto& [index, sci] : next) {
      restamp(sci);
      s.scis.push_back(sci);
    }
    commit_sure(std::move(s), std::move(next));
  }
  void move_endpoint() {
    auto next = site_;
    SciRecord& sci = any(next);
    restamp(sci);
    sci.policy.endpoints[0].port = static_cast<uint16_t>(1 + random_.below(60'000));
    ++layouts;
    commit_sure(change({sci}), std::move(next));
  }
  void remove_instance() {
    auto next = site_;
    SciRecord& sci = any(next);
    if (!sci.instances.empty()) {
      sci.instances.erase(sci.instances.begin() + random_.below(sci.instances.size()));
      ++layouts;
    }
    restamp(sci);
    commit_sure(change({sci}), std::move(next));
  }
  void remove_sci() {
    auto next = site_;
    const uint32_t index = any(next).index;
    next.erase(index);
    ++layouts;
    commit_sure(change({}, {index}), std::move(next));
  }
  void add_sci() {
    const uint32_t index = random_.below(kScis);
    if (site_.count(index) > 0) return flip();
    auto next = site_;
    SciRecord sci = TableRig::sci(index, "sci-" + std::to_string(generation_));
    for (uint32_t n = random_.below(kInstancesOfSci); n > 0; --n) (void)put_new(next, sci);
    restamp(sci);
    next.emplace(index, sci);
    ++layouts;
    used_again += commit_risky(change({sci}), std::move(next));
  }
  void add_instance() {
    auto next = site_;
    SciRecord& sci = any(next);
    if (sci.instances.size() >= kInstancesOfSci || !put_new(next, sci)) return flip();
    restamp(sci);
    ++layouts;
    used_again += commit_risky(change({sci}), std::move(next));
  }
  // An index that no instance has, in the next generation; false when that one is taken.
  bool put_new(const std::map<uint32_t, SciRecord>& site, SciRecord& sci) {
    const uint32_t index = random_.below(kInstances);
    const auto has = [&](const SciRecord& s) {
      return std::any_of(s.instances.begin(), s.instances.end(), [&](const auto& i) { return i.index == index; });
    };
    if (has(sci) || std::any_of(site.begin(), site.end(), [&](const auto& s) { return has(s.second); })) return false;
    sci.instances.push_back(TableRig::instance(index, ++generations_[index]));
    return true;
  }

  // A change of two SCIs, the second of which has a fault: nothing of the first may be seen.
  void commit_wrong() {
    auto next = site_;
    SciRecord first = any(next), second = any(next);
    restamp(first);
    restamp(second);
    Snapshot s = change({});
    switch (random_.below(5)) {
      case 0:
        if (last_ < 2) return flip();
        s.base = last_ - 1;  // does not run
        break;
      case 1:
        second.instances.push_back(TableRig::instance(kInstances));
        break;
      case 2:
        if (second.instances.empty()) return flip();
        second.instances[0].config.address = *IpAddress::parse("10.127.0.1");  // another one, in this generation
        break;
      case 3:
        if (first.index == second.index) return flip();
        second.policy.endpoints = first.policy.endpoints;
        break;
      case 4: {
        uint32_t absent = 0;
        while (site_.count(absent) > 0) ++absent;
        s.removed = {absent};
        break;
      }
    }
    s.scis = {second};
    if (second.index != first.index) s.scis.insert(s.scis.begin(), first);
    commit(std::move(s), nullptr);
  }

  // Another control plane takes over, with what runs.
  void reconnect() {
    settle();
    writer_.reset();
    writer_ = rig.connect();
    ++connections;
    if (last_ == 0) return;
    ASSERT_TRUE(writer_->running());
    EXPECT_EQ(*writer_->running(), whole());
  }

  Random random_, operator_random_;
  std::vector<std::atomic<uint64_t>> digests_;  // by generation; 0: must never be seen
  std::unique_ptr<Writer> writer_;
  std::map<uint32_t, SciRecord> site_;        // as of last_
  std::map<uint32_t, uint16_t> generations_;  // by instance index, the last one
  std::set<uint64_t> must_be_refused_;
  uint64_t generation_ = 0, committed_ = 0, last_ = 0;  // the one being made, the last one sent, the last one that runs
  uint64_t answered_ = 0, acked_ = 0, risky_ = 0;
  bool risk_refused_ = false;
  std::atomic<const char*> wrong_{nullptr};
  std::atomic<bool> stop_{false};
};

TEST(PublicationTorture, EveryTableSeenIsOneWholeSnapshot) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  std::printf("%s\n", seed_text(seed).c_str());
  const auto torture = std::make_unique<Torture>(seed);
  torture->run();

  EXPECT_EQ(torture->wrong(), nullptr) << torture->wrong();
  EXPECT_EQ(torture->rig.plane.complete(), torture->whole());
  EXPECT_EQ(torture->refused, torture->spoilt + torture->still_in_use);
  UrcuQsbr::drain();
  EXPECT_EQ(torture->rig.plane.passed(), torture->rig.plane.published().version);
  torture->rig.plane.begin_turn();
  for (const SciRecord& sci : torture->whole().scis) {
    for (const InstanceRecord& i : sci.instances) {
      EXPECT_EQ(torture->rig.shared.slots.limit(i.index), i.limit) << i.config.id;
      EXPECT_EQ(torture->rig.plane.table().instances[i.index].weight, i.config.weight) << i.config.id;
    }
  }
  EXPECT_GT(torture->spoilt, kCommits / 50);
  EXPECT_GT(torture->layouts, kCommits / 50);
  EXPECT_GT(torture->used_again, 0u);
  EXPECT_GT(torture->settings, 0u);
  const std::pair<const char*, uint64_t> figures[] = {{"tables seen", torture->tables_seen.load()},
                                                      {"versions", torture->rig.plane.published().version},
                                                      {"refused", torture->refused},
                                                      {"still in use", torture->still_in_use},
                                                      {"indices taken", torture->used_again},
                                                      {"layouts", torture->layouts},
                                                      {"set by hand", torture->settings},
                                                      {"connections", torture->connections + 1}};
  for (const auto& [what, n] : figures) std::printf("%-14s %10llu\n", what, static_cast<unsigned long long>(n));
}

}  // namespace
}  // namespace margay::test
