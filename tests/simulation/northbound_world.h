// SPDX-License-Identifier: Apache-2.0
#pragma once

// A C-SMA and several C-PSes: the real cores of both ends, joined by links that lose, repeat, delay and reorder, on
// hosts that freeze, die and set their clocks. Time is simulated, so the same seed is the same run. After every message
// that a C-PS takes, what it holds is judged; what is wrong first stays in `wrong()`. One thread.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/cps/core/receiver_session.h"
#include "control/cps/core/saved_state.h"
#include "control/northbound/core/nonce.h"
#include "control/northbound/core/sender_session.h"
#include "tests/support/seed.h"

namespace margay::test {

struct Frame {
  northbound::Message message;
  Nanoseconds arrives = 0;
};

// One direction of a stream. What comes behind a frame arrives behind it, unless somebody reorders them.
using Queue = std::deque<Frame>;

struct CPsHost {
  std::string name;
  std::vector<std::string> scope;
  size_t rows_max = 100;
  bool persists = false;
  cps::ServiceTable table = {};
  cps::Peers peers = {};
  std::optional<cps::ReceiverSession> session = {};
  std::optional<cps::SavedState> saved = {};  // not always the newest
  northbound::NonceSource nonces{0};
  uint64_t reserved = 0;  // of them, what is written down
  int64_t clock_ms = 0;   // off by

  // The link and the C-SMA's end of it
  std::optional<northbound::SenderSession> sender = {};
  bool stands = false;      // a stream does
  bool frozen = false;      // the host does nothing
  bool black_hole = false;  // what is written is lost without a word
  Nanoseconds latency = kMillisecond;
  Queue to_c_ps = {}, to_c_sma = {};
  std::vector<Frame> overheard = {};  // by somebody who can repeat them

  // The judge's
  std::map<northbound::RowKey, northbound::RowVersion> highest = {};  // that was ever held
  std::map<northbound::RowKey, northbound::RowVersion> gone = {};     // not held any more; its version then
  uint64_t mismatches = 0;                                            // of ended sessions
};

class World {
 public:
  explicit World(uint64_t seed);

  Nanoseconds now() const { return now_; }
  Random& random() { return random_; }
  std::vector<CPsHost>& hosts() { return hosts_; }
  const northbound::RowStore& store() const { return *store_; }
  const std::string& wrong() const { return wrong_; }
  uint64_t deliveries() const { return deliveries_; }

  void run_until(Nanoseconds end);

  void commit(northbound::Change change, bool critical);
  // The rows go; SCIs that live are learnt again until `first_round` from now.
  void restart_c_sma(Nanoseconds first_round);
  void restart_c_ps(CPsHost& host, bool with_state, bool newest_state);
  void cut(CPsHost& host);
  void repeat(CPsHost& host);   // a frame that was overheard
  void reorder(CPsHost& host);  // two frames
  void drop(CPsHost& host);     // one frame
  void heal_all();

  // "": each C-PS holds what the store has in its scope, version by version.
  std::string difference() const;

 private:
  void connect(CPsHost& host);
  void start_sender(CPsHost& host);
  void write(CPsHost& host, northbound::Message message, bool to_c_ps);
  bool turn(CPsHost& host);
  bool turn_sender(CPsHost& host);
  bool turn_receiver(CPsHost& host);
  bool deliver(CPsHost& host);
  Nanoseconds due_of(const CPsHost& host) const;
  std::string difference(const CPsHost& host, const std::string& cs_id, size_t& rows) const;
  void learn_again();
  void judge(CPsHost& host);
  void judge_row(CPsHost& host, const northbound::Row& row);
  void judge_absence(CPsHost& host, const northbound::RowKey& key, const northbound::RowVersion& version);
  void say(const CPsHost& host, const northbound::RowKey& key, const std::string& what);
  std::string challenge();
  Time time_of(const CPsHost* host) const;

  Random random_;
  size_t in_flight_ = 1 + random_.below(4);  // frames, before a write waits
  Nanoseconds now_ = 100 * kSecond;
  int64_t start_unix_ms_ = 1'700'000'000'000;
  std::vector<CPsHost> hosts_;
  uint64_t epoch_ = 1;
  std::unique_ptr<northbound::RowStore> store_;
  northbound::NonceSource nonces_{0};
  uint64_t reserved_ = 0;
  std::map<Nanoseconds, northbound::Change> to_learn_;
  std::optional<Nanoseconds> first_round_until_;
  uint64_t challenges_ = 0, deliveries_ = 0;

  // The judge's: what was ever committed
  std::map<std::pair<northbound::RowKey, northbound::RowVersion>, uint32_t> committed_;  // its GAS
  std::map<northbound::RowKey, std::vector<northbound::RowVersion>> withdrawn_;
  std::string wrong_;
};

}  // namespace margay::test
