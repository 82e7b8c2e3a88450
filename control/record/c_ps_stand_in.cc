// SPDX-License-Identifier: Apache-2.0
#include "control/record/c_ps_stand_in.h"

#include <algorithm>
#include <utility>

#include "control/northbound/wire/advertisement.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {

using northbound::Body;
using northbound::Message;

void CPsStandIn::behave(const v1::CPs& as, Time now) {
  away_ = as.away();
  mute_ = as.mute();
  takes_digests_ = !as.no_digests();
  if (as.forgets()) held_.clear();
  if (away_ && session_.state() != northbound::SenderSession::State::kApart) end("away", now);
}

Result<void> CPsStandIn::say(const northbound::RowStore& store, const v1::CPsSays& what, Time now) {
  if (session_.state() != northbound::SenderSession::State::kEstablished) return Error{"has no session"};
  v1::Advertisement whole = what.message();
  v1::Header& header = *whole.mutable_header();  // any good one: hear() makes its own
  header.set_direction(v1::DIRECTION_TO_C_SMA);
  header.set_sender(config_.c_ps);
  header.set_receiver(config_.identity);
  header.set_sequence(1);
  header.mutable_sent();
  auto message = northbound::message_of(whole, now.monotonic);
  if (!message) return message.error();
  hear(store, std::move(message->body), now);
  return {};
}

void CPsStandIn::committed(const std::string& cs_id, Nanoseconds now) {
  session_.committed(cs_id, now);
  idle_until_ = 0;
}

Nanoseconds CPsStandIn::next_due(const northbound::RowStore& store) const {
  if (session_.state() == northbound::SenderSession::State::kApart) return session_.connect_at();
  return answers_.empty() ? std::max(session_.next_due(store), idle_until_) : 0;
}

void CPsStandIn::step(const northbound::RowStore& store, Time now) {
  if (session_.state() == northbound::SenderSession::State::kApart) return call(now);
  if (!answers_.empty()) {
    Body body = std::move(answers_.front());
    answers_.pop_front();
    return hear(store, std::move(body), now);
  }
  const auto next = session_.next(store, now);
  if (const auto* fault = std::get_if<northbound::Fault>(&next)) return end(name_of(*fault), now);
  if (const auto* message = std::get_if<Message>(&next)) return write_message(*message, now);
  idle_until_ = now.monotonic + kMillisecond;
}

void CPsStandIn::call(Time now) {
  v1::Record record;
  record.mutable_call()->set_c_ps(config_.c_ps);
  write_(record, now);
  if (away_) return session_.lost(now.monotonic);
  challenge_ = "call number " + std::to_string(++calls_) + " of many";
  sequence_ = 0;
  session_.connected(challenge_, now.monotonic);
  northbound::Hello hello{.versions = {northbound::kProtocolVersion}};
  hello.challenge = "a C-PS in a replay";
  hello.takes_digests = takes_digests_;
  hello.persists = true;
  for (const auto& [cs_id, through] : held_) hello.resume.push_back({cs_id, through});
  answers_.emplace_back(std::move(hello));
}

void CPsStandIn::hear(const northbound::RowStore& store, Body body, Time now) {
  idle_until_ = 0;
  northbound::Header header{northbound::Direction::kToCSma, config_.c_ps, config_.identity};
  if (sequence_ > 0) header.challenge = challenge_;
  header.sequence = ++sequence_;
  header.nonce = ++nonce_;
  header.sent_unix_ms = now.unix_ms;
  const auto fault = session_.received(store, {header, std::move(body)}, "", now);
  if (fault && ends_session(*fault)) end(name_of(*fault), now);
}

void CPsStandIn::write_message(const Message& message, Time now) {
  v1::Record record;
  v1::Sent& sent = *record.mutable_sent();
  sent.set_c_ps(config_.c_ps);
  northbound::to_wire(message, now.monotonic, *sent.mutable_message());
  v1::Header header;
  header.set_sequence(message.header.sequence);
  *sent.mutable_message()->mutable_header() = header;
  write_(record, now);
  if (mute_) return;
  keep(message.body);
  answers_.emplace_back(northbound::Ack{message.header.sequence});
}

// Where it stands. Without a snapshot of a CS-ID there is nothing that changes could lead on from.
void CPsStandIn::keep(const Body& body) {
  if (const auto* begin = std::get_if<northbound::SnapshotBegin>(&body)) snapshot_ = *begin;
  if (std::holds_alternative<northbound::SnapshotEnd>(body)) {
    for (const std::string& cs_id : snapshot_.cs_ids) held_[cs_id] = std::max(held_[cs_id], snapshot_.version);
  }
  if (const auto* batch = std::get_if<northbound::Batch>(&body)) {
    for (const northbound::Delta& delta : batch->deltas) {
      const auto held = held_.find(delta.change.cs_id);
      if (held != held_.end()) held->second = std::max(held->second, delta.through);
    }
  }
}

void CPsStandIn::end(std::string_view why, Time now) {
  v1::Record record;
  record.mutable_session_ended()->set_c_ps(config_.c_ps);
  record.mutable_session_ended()->set_why(std::string(why));
  write_(record, now);
  answers_.clear();
  session_.lost(now.monotonic);
}

}  // namespace margay::control
