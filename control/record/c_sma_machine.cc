// SPDX-License-Identifier: Apache-2.0
#include "control/record/c_sma_machine.h"

#include <algorithm>
#include <utility>

#include "control/record/wire_values.h"
#include "control/sender_config.h"

namespace margay::control {
namespace {

bool is_c_sma_action(const v1::Record& record) { return record.what_case() >= v1::Record::kCommit; }

}  // namespace

Nanoseconds CSmaMachine::next_due() const {
  Nanoseconds due = ticks_recorded_ ? kNever : core_.next_due();
  for (const auto& [identity, c_ps] : c_pses_) due = std::min(due, c_ps.next_due(store_));
  return due;
}

void CSmaMachine::run(Time now) {
  if (!ticks_recorded_ && core_.next_due() <= now.monotonic) return handle(c_sma::Tick{}, now);
  for (auto& [identity, c_ps] : c_pses_) {
    if (c_ps.next_due(store_) <= now.monotonic) return c_ps.step(store_, now);
  }
}

Result<void> CSmaMachine::take(const v1::Record& record, Time now) {
  if (record.has_c_ps()) return take_c_ps(record.c_ps(), now);
  if (record.has_c_ps_says()) return take_words(record.c_ps_says(), now);
  if (is_c_sma_action(record)) return {};
  v1::Record whole = record;
  if (!ticks_recorded_ && record.has_report_received()) {
    fill_in(*whole.mutable_report_received()->mutable_report(), now);
  }
  c_sma::Event event;
  if (const auto read = event_of(whole, event); !read) return read;
  handle(event, now);
  return {};
}

Result<void> CSmaMachine::take_c_ps(const v1::CPs& as, Time now) {
  auto found = c_pses_.find(as.identity());
  if (found == c_pses_.end()) {
    if (as.identity().empty()) return Error{"c_ps.identity: expected a name"};
    if (as.cs_ids_size() > static_cast<int>(northbound::kCsIdsMax)) return Error{"c_ps.cs_ids: expected at most 1024"};
    const auto config = sender_config(config_, as.identity(), {as.cs_ids().begin(), as.cs_ids().end()});
    const auto write_it = [this](v1::Record& record, Time at) { write(record, at); };
    found = c_pses_.try_emplace(as.identity(), config, c_pses_.size() + 1, now.monotonic, write_it).first;
  }
  found->second.behave(as, now);
  return {};
}

Result<void> CSmaMachine::take_words(const v1::CPsSays& says, Time now) {
  const auto found = c_pses_.find(says.identity());
  if (found == c_pses_.end()) return Error{"c_ps_says.identity: expected one that a c_ps has named"};
  const auto said = found->second.say(store_, says, now);
  if (!said) return Error{"c_ps_says: " + says.identity() + ": " + said.error().message};
  return {};
}

// The next in order, whole, made now, of one HEALTHY instance.
void CSmaMachine::fill_in(v1::Report& report, Time now) {
  c_sma::ReportOrder& last = reported_[report.csci_id()];
  if (report.epoch() == 0) report.set_epoch(std::max<uint64_t>(1, last.epoch));
  if (report.sequence() == 0) report.set_sequence(report.epoch() == last.epoch ? last.sequence + 1 : 1);
  last = std::max(last, c_sma::ReportOrder{report.epoch(), report.sequence()});
  const auto listed = std::find_if(config_.accept.begin(), config_.accept.end(),
                                   [&](const auto& sci) { return sci.csci_id == report.csci_id(); });
  if (report.cs_id().empty() && listed != config_.accept.end()) report.set_cs_id(listed->cs_id);
  if (!report.has_timestamp()) put_unix_ms(now.unix_ms, *report.mutable_timestamp());
  if (report.kind() == v1::REPORT_KIND_UNSPECIFIED) report.set_kind(v1::REPORT_KIND_FULL);
  if (report.trigger() == v1::TRIGGER_UNSPECIFIED) report.set_trigger(v1::TRIGGER_PERIODIC);
  if (report.admin() == v1::ADMIN_UNSPECIFIED) report.set_admin(v1::ADMIN_ENABLED);
  if (!report.has_health_summary()) report.mutable_health_summary()->set_healthy(1);
  if (!report.has_reporting_interval()) put(60 * kSecond, *report.mutable_reporting_interval());
}

void CSmaMachine::handle(const c_sma::Event& event, Time now) {
  ++tape_.counts.events;
  if (const auto* changed = std::get_if<c_sma::ConfigChanged>(&event)) config_ = changed->config;
  for (const c_sma::Action& action : core_.handle(event, now)) {
    v1::Record record;
    to_wire(action, now, record);
    write(record, now);
    if (const auto* commit = std::get_if<c_sma::Commit>(&action)) {
      store_.commit(commit->change, commit->critical);
      for (auto& [identity, c_ps] : c_pses_) c_ps.committed(commit->change.cs_id, now.monotonic);
    }
    if (std::holds_alternative<c_sma::FirstRoundOver>(action)) store_.end_first_round();
  }
}

void CSmaMachine::write(v1::Record& record, Time now) {
  put_time(now, record);
  record.set_c_sma(utf8(config_.identity));
  tape_.action(record);
}

}  // namespace margay::control
