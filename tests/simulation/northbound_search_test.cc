// SPDX-License-Identifier: Apache-2.0
// Every order of events of a small northbound: one C-SMA with two CS-IDs, one C-PS, few changes and few faults. The
// real cores of both ends; every reachable state is visited once, judged, and from each both ends must find to the same
// table if they are left alone. MARGAY_SEARCH=deep: one more change.
#include <cstdlib>
#include <deque>
#include <unordered_set>

#include <gtest/gtest.h>

#include "control/cps/core/receiver_session.h"
#include "control/northbound/core/sender_session.h"

namespace margay::test {
namespace {

using namespace northbound;  // NOLINT: every name of the messages

const std::string kCSma = "c-sma.sim", kCPs = "cps.sim";
constexpr int64_t kUnixMs = 1'700'000'000'000;
constexpr size_t kQueueMax = 2;

SenderConfig sender_config() {
  SenderConfig config{kCSma, kCPs, {"a", "b"}, kSizeLimitMin};
  config.minimum_interval = config.gather = 0;
  config.rate = config.critical = TokenRate{1, 1'000'000};
  return config;
}

std::string text_of(const RowVersion& v) { return std::to_string(v.epoch) + "." + std::to_string(v.commit); }
std::string text_of(const RowKey& key) { return key.cs_id + "/" + key.csci_id.value_or(""); }

// All of a message that decides what it does.
std::string text_of(const Message& message) {
  const Header& h = message.header;
  std::string out = h.challenge + " " + std::to_string(h.sequence) + " " + std::to_string(h.seen) + " ";
  out += name_of(message.body);
  const auto row = [&](const RowKey& key, const RowVersion& version) { out += " " + text_of(key) + text_of(version); };
  if (const auto* hello = std::get_if<Hello>(&message.body)) {
    out += hello->challenge + std::to_string(hello->epoch);
    for (const Position& p : hello->resume) out += p.cs_id + text_of(p.through);
  } else if (const auto* batch = std::get_if<Batch>(&message.body)) {
    for (const Delta& d : batch->deltas) {
      out += d.change.cs_id + text_of(d.after) + text_of(d.through);
      for (const Row& r : d.change.rows) row(r.key, r.version);
      for (const Withdrawal& w : d.change.withdrawals) row(w.key, w.version);
    }
  } else if (const auto* begin = std::get_if<SnapshotBegin>(&message.body)) {
    out += text_of(begin->version);
    for (const std::string& cs_id : begin->cs_ids) out += cs_id;
  } else if (const auto* chunk = std::get_if<SnapshotChunk>(&message.body)) {
    for (const Row& r : chunk->rows) row(r.key, r.version);
  } else if (const auto* keepalive = std::get_if<Keepalive>(&message.body)) {
    for (const View& v : keepalive->views) out += v.position.cs_id + text_of(v.position.through) + (v.check ? "c" : "");
  } else if (const auto* ack = std::get_if<Ack>(&message.body)) {
    out += std::to_string(ack->sequence);
  }
  return out;
}

enum class Action : uint8_t {
  kPutX,
  kWithdrawX,
  kPutY,
  kEndFirstRound,
  kConnect,
  kSend,
  kAnswer,
  kToCPs,
  kToCSma,
  kHeartbeat,
  kCut,
  kLose,
  kRepeat,
  kRestartCPs,
  kRestartCSma,
  kEnd
};

struct State {
  RowStore store{1, 1};
  SenderSession sender{sender_config(), 1, 0};
  cps::ServiceTable table{{100, 1}};
  Peer peer = {};
  std::optional<cps::ReceiverSession> session = {};
  std::deque<Message> to_c_ps = {}, to_c_sma = {};
  std::optional<Message> overheard = {};  // the first batch or chunk
  Nanoseconds now = 1000 * kSecond;
  uint64_t nonce = 0, sessions = 0;
  int changes = 0, faults = 0, heartbeats = 0;
  std::map<RowKey, RowVersion> highest = {}, gone = {};

  Time time() const { return {now, kUnixMs}; }
  std::string fingerprint() const;
  bool can(Action action) const;
  bool act(Action action);
  bool commit(Change change, bool critical);
  template <class Next>
  bool write(Next next, std::deque<Message>& queue);
  bool deliver(bool to_the_c_ps);
  void fault(Action action);
  void cut();
  std::string judge() const;  // "": nothing is wrong
  void remember();
  std::string settle();  // no more faults: "": both tables are equal
};

std::string State::fingerprint() const {
  std::string out = sender.fingerprint() + "|" + (session ? session->fingerprint() : "") + "|";
  for (const auto& [cs_id, part] : store.parts()) {
    for (const auto& [id, entry] : part.entries) {
      out += cs_id + id.value_or("") + std::to_string(entry.commit) + (entry.row ? "+" : "-");
    }
    out += "l" + std::to_string(part.low_water) + "c" + std::to_string(part.newest_critical);
  }
  out += text_of(store.newest()) + (store.first_round_over() ? "r" : "") + "|";
  for (const auto& [c_sma, site] : table.sites()) {
    out += std::to_string(site.epoch);
    for (const auto& [cs_id, part] : site.parts) {
      out += cs_id + text_of(part.floor) + (part.position ? text_of(*part.position) : "");
      for (const auto& [id, held] : part.rows) out += id.value_or("") + text_of(held.row.version);
      for (const auto& [id, gone_at] : part.tombstones) out += "-" + id.value_or("") + text_of(gone_at.version);
    }
  }
  for (const Message& m : to_c_ps) out += ">" + text_of(m);
  for (const Message& m : to_c_sma) out += "<" + text_of(m);
  if (overheard) out += "o" + text_of(*overheard);
  for (const auto& [key, version] : highest) out += text_of(key) + text_of(version);
  for (const auto& [key, version] : gone) out += "!" + text_of(key) + text_of(version);
  for (const int n : {changes, faults, heartbeats}) out += " " + std::to_string(n);
  return out + " " + std::to_string(now) + (sender.state() == SenderSession::State::kApart ? "" : " up");
}

bool State::commit(Change change, bool critical) {
  const std::string cs_id = change.cs_id;
  store.commit(std::move(change), critical);
  sender.committed(cs_id, now);
  --changes;
  return true;
}

void State::cut() {
  to_c_ps.clear();
  to_c_sma.clear();
  session.reset();
  if (sender.state() != SenderSession::State::kApart) sender.lost(now);
}

bool State::can(Action action) const {
  const bool up = sender.state() != SenderSession::State::kApart;
  switch (action) {
    case Action::kPutX:
    case Action::kWithdrawX:
    case Action::kPutY:
      return changes > 0;
    case Action::kEndFirstRound:
      return !store.first_round_over();
    case Action::kConnect:
      return !up;
    case Action::kSend:
      return up && to_c_ps.size() < kQueueMax;
    case Action::kAnswer:
      return up && to_c_sma.size() < kQueueMax;
    case Action::kToCPs:
      return !to_c_ps.empty();
    case Action::kToCSma:
      return !to_c_sma.empty();
    case Action::kHeartbeat:
      return heartbeats > 0 && sender.all_acked() && to_c_ps.empty() && to_c_sma.empty();
    case Action::kCut:
      return faults > 0 && up;
    case Action::kLose:
      return faults > 0 && to_c_ps.size() > 1;
    case Action::kRepeat:
      return faults > 0 && up && overheard;
    case Action::kRestartCPs:
    case Action::kRestartCSma:
      return faults > 0;
    case Action::kEnd:
      break;
  }
  return false;
}

// False: there was nothing to do.
bool State::act(Action action) {
  const Row x{RowKey{"a", "x"}}, site{RowKey{"a"}}, y{RowKey{"b", "y"}};
  switch (action) {
    case Action::kPutX:
      return commit({"a", {x, site}}, true);
    case Action::kWithdrawX:
      return commit({"a", {site}, {{RowKey{"a", "x"}, {}, WithdrawReason::kFailed}}}, true);
    case Action::kPutY:
      return commit({"b", {y}}, false);
    case Action::kEndFirstRound:
      store.end_first_round();
      return true;
    case Action::kConnect:
      ++sessions;
      sender.connected("challenge-c-sma-" + std::to_string(sessions), now);
      session.emplace(cps::ReceiverConfig{kCPs, kCSma, {"a", "b"}}, "challenge-c-ps-" + std::to_string(sessions), now);
      return true;
    case Action::kSend:
      return write(sender.next(store, time()), to_c_ps);
    case Action::kAnswer:
      return write(session->next(table, peer, time()), to_c_sma);
    case Action::kToCPs:
    case Action::kToCSma:
      return deliver(action == Action::kToCPs);
    case Action::kHeartbeat:
      --heartbeats;
      now = std::max(now, sender.next_due(store));
      return true;
    case Action::kCut:
    case Action::kLose:
    case Action::kRepeat:
    case Action::kRestartCPs:
    case Action::kRestartCSma:
      --faults;
      fault(action);
      return true;
    case Action::kEnd:
      break;
  }
  return false;
}

template <class Next>
bool State::write(Next next, std::deque<Message>& queue) {
  auto* message = std::get_if<Message>(&next);
  if (message == nullptr) return false;
  message->header.nonce = ++nonce;
  const Body& body = message->body;
  const bool rows = std::holds_alternative<Batch>(body) || std::holds_alternative<SnapshotChunk>(body);
  if (rows && !overheard) overheard = *message;
  queue.push_back(std::move(*message));
  return true;
}

bool State::deliver(bool to_the_c_ps) {
  std::deque<Message>& queue = to_the_c_ps ? to_c_ps : to_c_sma;
  const Message message = std::move(queue.front());
  queue.pop_front();
  const auto fault = to_the_c_ps ? session->received(table, peer, message, "k1", time())
                                 : sender.received(store, message, "k2", time());
  if (fault && ends_session(*fault)) cut();
  return true;
}

void State::fault(Action action) {
  if (action == Action::kLose) return to_c_ps.pop_front();
  if (action == Action::kRepeat) return to_c_ps.push_front(*overheard);
  cut();
  if (action == Action::kRestartCPs) {
    table = cps::ServiceTable({100, 1});
    peer = Peer();
    highest.clear();
    gone.clear();
  }
  if (action == Action::kRestartCSma) {
    store = RowStore(store.epoch() + 1, 1);
    sender = SenderSession(sender_config(), 1, now);
  }
}

// Versions never go back, and nothing old comes back.
std::string State::judge() const {
  for (const auto& [c_sma, site] : table.sites()) {
    for (const auto& [cs_id, part] : site.parts) {
      for (const auto& [id, held] : part.rows) {
        const auto before = highest.find(held.row.key);
        if (before != highest.end() && held.row.version < before->second) return text_of(held.row.key) + " went back";
        const auto lost = gone.find(held.row.key);
        if (lost != gone.end() && held.row.version <= lost->second) return text_of(held.row.key) + " was revived";
      }
    }
  }
  return session && session->mismatches() > 0 ? "digests differed" : "";
}

void State::remember() {
  for (const auto& [key, version] : highest) {
    if (table.find(kCSma, key) == nullptr) gone[key] = version;
  }
  for (const auto& [c_sma, site] : table.sites()) {
    for (const auto& [cs_id, part] : site.parts) {
      for (const auto& [id, held] : part.rows) highest[held.row.key] = held.row.version;
    }
  }
}

std::string State::settle() {
  faults = changes = 0;
  heartbeats = 1;
  for (int turn = 0; turn < 500; ++turn) {
    bool something = false;
    for (const Action a :
         {Action::kEndFirstRound, Action::kConnect, Action::kToCPs, Action::kToCSma, Action::kAnswer, Action::kSend}) {
      if (!can(a) || !act(a)) continue;
      something = true;
      if (std::string wrong = judge(); !wrong.empty()) return wrong;
      remember();
    }
    if (something) continue;
    if (heartbeats == 0) break;
    act(Action::kHeartbeat);
  }
  if (!sender.all_acked()) return "does not come to rest";
  size_t rows = 0;
  for (const auto& [cs_id, part] : store.parts()) {
    for (const auto& [id, entry] : part.entries) {
      const RowKey key{cs_id, id};
      const cps::HeldRow* held = table.find(kCSma, key);
      if (entry.row && (held == nullptr || held->row.version != entry.row->version)) return text_of(key) + " differs";
      rows += entry.row ? 1 : 0;
    }
  }
  return rows == table.sites().at(kCSma).rows ? "" : "rows that the store has not";
}

struct Search {
  std::unordered_set<std::string> seen;
  std::vector<State> open;
  std::string wrong;

  void visit(State state, const std::string& how) {
    wrong = state.judge();
    state.remember();
    if (!wrong.empty()) {
      wrong += " after" + how;
    } else if (seen.insert(state.fingerprint()).second) {
      open.push_back(std::move(state));
      path.push_back(how);
    }
  }
  void run(State first) {
    visit(std::move(first), "");
    while (!open.empty() && wrong.empty()) {
      const State state = std::move(open.back());
      const std::string how = std::move(path.back());
      open.pop_back();
      path.pop_back();
      State left_alone = state;
      wrong = left_alone.settle();
      if (!wrong.empty()) wrong += " at rest after" + how;
      for (uint8_t a = 0; a < static_cast<uint8_t>(Action::kEnd) && wrong.empty(); ++a) {
        if (!state.can(static_cast<Action>(a))) continue;
        State next = state;
        next.act(static_cast<Action>(a));
        visit(std::move(next), how + " " + std::to_string(a));
      }
    }
  }

 private:
  std::vector<std::string> path;  // the actions that led to each open state
};

TEST(NorthboundSearch, EveryOrderOfEventsEndsInEqualTables) {
  const char* given = std::getenv("MARGAY_SEARCH");
  State first;
  first.act(Action::kPutX);
  first.act(Action::kPutY);
  first.store.end_first_round();
  first.changes = given != nullptr && std::string(given) == "deep" ? 2 : 1;
  first.faults = 1;
  first.heartbeats = 1;
  Search search;
  search.run(first);
  EXPECT_EQ(search.wrong, "");
  EXPECT_GT(search.seen.size(), 5'000u);
  RecordProperty("states", static_cast<int>(search.seen.size()));
  std::printf("%zu states\n", search.seen.size());
}

}  // namespace
}  // namespace margay::test
