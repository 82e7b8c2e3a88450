// SPDX-License-Identifier: Apache-2.0
#include "control/northbound/wire/advertisement.h"
#include "control/northbound/wire/row_wire.h"
#include "control/record/c_sma_wire.h"
#include "control/record/wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {
namespace {

// Versions are not known yet, and left out.
void put(const c_sma::Commit& a, Time at, v1::Record& record) {
  const auto& [change, critical, cause] = a;
  const auto& [cs_id, rows, withdrawals] = change;
  v1::Commit& out = *record.mutable_commit();
  out.set_cs_id(utf8(cs_id));
  out.set_cause(std::string(c_sma::name_of(cause)));
  out.set_critical(critical);
  for (const northbound::Row& row : rows) {
    v1::Row& to = *out.add_rows();
    northbound::to_wire(row, at.monotonic, to);
    to.clear_version();
  }
  for (const northbound::Withdrawal& withdrawal : withdrawals) {
    v1::Withdrawal& to = *out.add_withdrawals();
    northbound::put(withdrawal, to);
    to.clear_version();
  }
}

void put(const c_sma::PullWanted& a, Time, v1::Record& record) {
  const auto& [csci_id, why] = a;
  record.mutable_pull_wanted()->set_csci_id(utf8(csci_id));
  record.mutable_pull_wanted()->set_why(utf8(why));
}

void put(const c_sma::Judged& a, Time, v1::Record& record) {
  const auto& [stream, csci_id, epoch, sequence, verdict, reason, detail, received_ms] = a;
  v1::Judged& out = *record.mutable_judged();
  out.set_stream(stream);
  out.set_csci_id(utf8(csci_id));
  out.set_epoch(epoch);
  out.set_sequence(sequence);
  out.set_verdict(std::string(c_sma::name_of(verdict)));
  out.set_reason(std::string(reason));
  out.set_detail(utf8(detail));
  put_unix_ms(received_ms, *out.mutable_received());
}

void put(const c_sma::CloseStream& a, Time, v1::Record& record) {
  const auto& [stream, why] = a;
  record.mutable_close_stream()->set_stream(stream);
  record.mutable_close_stream()->set_why(utf8(why));
}

void put(const c_sma::SourceChanged& a, Time, v1::Record& record) {
  const auto& [csci_id, cs_id, from, to, why] = a;
  v1::SourceChanged& out = *record.mutable_source_changed();
  out.set_csci_id(utf8(csci_id));
  out.set_cs_id(utf8(cs_id));
  put_if(from, [&](northbound::SourceState s) { out.set_from(std::string(northbound::name_of(s))); });
  put_if(to, [&](northbound::SourceState s) { out.set_to(std::string(northbound::name_of(s))); });
  out.set_why(utf8(why));
}

void put(const c_sma::FirstRoundOver& a, Time, v1::Record& record) {
  record.mutable_first_round_over()->set_missing(a.missing);
}

void put(const c_sma::Audit& a, Time, v1::Record& record) {
  const auto& [kind, who, what, detail] = a;
  v1::Audit& out = *record.mutable_audit();
  out.set_kind(std::string(c_sma::name_of(kind)));
  out.set_who(utf8(who));
  out.set_what(utf8(what));
  out.set_detail(utf8(detail));
}

}  // namespace

void to_wire(const c_sma::Action& action, Time at, v1::Record& out) {
  put_time(at, out);
  std::visit([&](const auto& a) { put(a, at, out); }, action);
}

}  // namespace margay::control
