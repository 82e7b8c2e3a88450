// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pieces that the northbound's tests share: rows, and the two ends of a session by hand.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/northbound/core/row_store.h"
#include "control/northbound/core/sender_session.h"

namespace margay::northbound::test {

inline const std::string kCSma = "c-sma.test", kCPs = "cps.test";
inline const std::string kCSmaChallenge = "challenge of c-sma", kCPsChallenge = "challenge of c-ps!";
inline constexpr int64_t kUnixMs = 1'700'000'000'000;
inline constexpr Nanoseconds kStart = 1000 * kSecond;  // of the monotonic clock

inline Time at(Nanoseconds monotonic) { return {monotonic, kUnixMs + static_cast<int64_t>(monotonic / kMillisecond)}; }

inline Row sci_row(const std::string& cs_id, const std::string& csci_id, uint32_t gas = 100) {
  Row row{RowKey{cs_id, csci_id}};
  row.metrics.gas = gas;
  row.metrics.computing_time_ms = 5;
  row.health.healthy = 1;
  row.sci_health = HealthState::kHealthy;
  row.source = SourceState::kHealthy;
  row.valid_for = 180 * kSecond;
  return row;
}
inline Row site_row(const std::string& cs_id, uint32_t gas = 100) {
  Row row{RowKey{cs_id}};
  row.metrics.gas = gas;
  row.sci_health = HealthState::kHealthy;
  row.valid_for = 180 * kSecond;
  return row;
}
// Of ARS, or another CS-ID.
inline Row versioned(const std::string& csci_id, RowVersion version, const std::string& cs_id = "ARS") {
  Row row = sci_row(cs_id, csci_id);
  row.version = version;
  return row;
}
inline Withdrawal gone(const std::string& cs_id, const std::string& csci_id) {
  return {RowKey{cs_id, csci_id}, {}, WithdrawReason::kFailed};
}

inline std::string hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

// The C-PS's side of a session by hand, towards a real sender.
struct FakeCPs {
  explicit FakeCPs(SenderSession& session, const RowStore& rows) : sender(session), store(rows) {}

  Message message(Body body, Time now) {
    const bool is_first = sequence == 0;
    return {
        Header{Direction::kToCSma, kCPs, kCSma, is_first ? "" : kCSmaChallenge, ++sequence, 0, ++nonce, now.unix_ms},
        std::move(body)};
  }
  std::optional<Fault> say(Body body, Nanoseconds now) {
    return sender.received(store, message(std::move(body), at(now)), "k-cps", at(now));
  }
  Hello hello() const { return Hello{{1}, kSizeLimitMin, {}, kCPsChallenge, true}; }

  // Up to the C-SMA's hello and its ack.
  Message begin(Hello hello, Nanoseconds now) {
    sequence = 0;
    sender.connected(kCSmaChallenge, now);
    (void)say(std::move(hello), now);
    Message answer = std::get<Message>(sender.next(store, at(now)));
    ack(now);
    return answer;
  }
  void ack(Nanoseconds now) { (void)say(Ack{last}, now); }
  // The next message, absent where there is none. It is acked.
  std::optional<Message> next(Nanoseconds now) {
    auto next = sender.next(store, at(now));
    if (!std::holds_alternative<Message>(next)) return std::nullopt;
    Message message = std::get<Message>(std::move(next));
    last = message.header.sequence;
    ack(now);
    return message;
  }
  template <class T>
  std::optional<T> next_of(Nanoseconds now) {
    const auto message = next(now);
    if (!message || !std::holds_alternative<T>(message->body)) return std::nullopt;
    return std::get<T>(message->body);
  }

  SenderSession& sender;
  const RowStore& store;
  uint64_t sequence = 0, nonce = 0, last = 1;
};

// A store and a session with it.
struct SenderRig {
  static SenderConfig config(std::vector<std::string> cs_ids) {
    return SenderConfig{kCSma, kCPs, std::move(cs_ids), kSizeLimitMin};
  }
  explicit SenderRig(SenderConfig c = config({"ARS", "LLMS"}), size_t tombstones_max = 1024)
      : store(7, tombstones_max), sender(std::move(c), 1, 0) {}

  RowVersion commit(Change change, bool critical, Nanoseconds now) {
    const std::string cs_id = change.cs_id;
    const RowVersion version = store.commit(std::move(change), critical);
    sender.committed(cs_id, now);
    return version;
  }
  // A session in which the first snapshot is over. Returns its messages, without the hello.
  std::vector<Message> settle(Nanoseconds now) {
    store.end_first_round();
    (void)c_ps.begin(c_ps.hello(), now);
    return drain(now);
  }
  std::vector<Message> drain(Nanoseconds now) {
    std::vector<Message> all;
    while (auto message = c_ps.next(now)) all.push_back(std::move(*message));
    return all;
  }

  RowStore store;
  SenderSession sender;
  FakeCPs c_ps{sender, store};
};

}  // namespace margay::northbound::test
