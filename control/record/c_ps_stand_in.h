// SPDX-License-Identifier: Apache-2.0
#pragma once

// For streams written by hand: the real sender of a C-SMA, and a C-PS that says hello, acks what it is sent at once and
// knows up to where it holds a CS-ID. Connections lose nothing and take no time. One thread; reads no clock.

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "common/result.h"
#include "control/northbound/core/sender_session.h"

namespace margay::v1 {
class CPs;
class CPsSays;
class Record;
}  // namespace margay::v1

namespace margay::control {

class CPsStandIn {
 public:
  // Writes a record whose body is there.
  using Write = std::function<void(v1::Record&, Time)>;

  CPsStandIn(const northbound::SenderConfig& config, uint64_t seed, Nanoseconds now, Write write)
      : config_(config), session_(config, seed, now), write_(std::move(write)) {}

  void behave(const v1::CPs& as, Time now);
  Result<void> say(const northbound::RowStore& store, const v1::CPsSays& what, Time now);
  void committed(const std::string& cs_id, Nanoseconds now);

  Nanoseconds next_due(const northbound::RowStore& store) const;
  // The first of what is due.
  void step(const northbound::RowStore& store, Time now);

 private:
  void call(Time now);
  void hear(const northbound::RowStore& store, northbound::Body body, Time now);
  void write_message(const northbound::Message& message, Time now);
  void keep(const northbound::Body& body);
  void end(std::string_view why, Time now);

  northbound::SenderConfig config_;
  northbound::SenderSession session_;
  Write write_;
  bool away_ = false, mute_ = false, takes_digests_ = true;
  std::map<std::string, northbound::RowVersion> held_;  // by CS-ID: whole up to there

  // Of the session
  std::string challenge_;  // the C-SMA's
  std::deque<northbound::Body> answers_;
  northbound::SnapshotBegin snapshot_;
  uint64_t sequence_ = 0;

  uint64_t calls_ = 0, nonce_ = 0;
  Nanoseconds idle_until_ = 0;  // it was asked, and had nothing
};

}  // namespace margay::control
