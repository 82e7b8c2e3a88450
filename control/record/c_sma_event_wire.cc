// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "control/record/c_sma_wire.h"
#include "control/record/wire.h"
#include "control/record/wire_values.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {
namespace {

const c_sma::Peer kOwnProcess{.identity = "this process", .names = {}, .co_located = true};

// ---- into messages

void put(const c_sma::Peer& peer, v1::Peer& out) {
  const auto& [identity, names, co_located] = peer;
  out.set_identity(utf8(identity));
  for (const auto& [csci_id, cs_id] : names) {
    v1::SciName& name = *out.add_names();
    name.set_csci_id(utf8(csci_id));
    name.set_cs_id(utf8(cs_id));
  }
  out.set_co_located(co_located);
}

void put(const c_sma::ReportReceived& e, v1::Record& record) {
  const auto& [report, peer, stream, pulled] = e;
  v1::ReportReceived& out = *record.mutable_report_received();
  to_wire(report, *out.mutable_report());
  put(*peer, *out.mutable_peer());
  out.set_stream(stream);
  out.set_pulled(pulled);
}
void put(const c_sma::ReportUnreadable& e, v1::Record& record) {
  const auto& [identity, csci_id, why, stream] = e;
  v1::ReportUnreadable& out = *record.mutable_report_unreadable();
  out.set_identity(utf8(identity));
  out.set_csci_id(utf8(csci_id));
  out.set_why(utf8(why));
  out.set_stream(stream);
}
void put(const c_sma::StreamClosed& e, v1::Record& record) { record.mutable_stream_closed()->set_stream(e.stream); }
void put(const c_sma::PullFailed& e, v1::Record& record) {
  const auto& [csci_id, why] = e;
  record.mutable_pull_failed()->set_csci_id(utf8(csci_id));
  record.mutable_pull_failed()->set_why(utf8(why));
}
void put(const c_sma::Revoked& e, v1::Record& record) { record.mutable_revoked()->set_identity(utf8(e.identity)); }
void put(const c_sma::ConfigChanged& e, v1::Record& record) {
  to_wire(e.config, *record.mutable_c_sma_config_changed()->mutable_config());
}
template <class Order>
void put_order(const Order& e, v1::OperatorOrder& out) {
  const auto& [csci_id, who] = e;
  out.set_csci_id(utf8(csci_id));
  out.set_who(utf8(who));
}
void put(const c_sma::QuarantineRelease& e, v1::Record& record) { put_order(e, *record.mutable_quarantine_release()); }
void put(const c_sma::QuarantineDrop& e, v1::Record& record) { put_order(e, *record.mutable_quarantine_drop()); }
void put(const c_sma::EpochReset& e, v1::Record& record) { put_order(e, *record.mutable_epoch_reset()); }
void put(const c_sma::LoopLate& e, v1::Record& record) {
  control::put(e.by, *record.mutable_loop_late()->mutable_by());
}
void put(const c_sma::Tick&, v1::Record& record) { record.mutable_tick(); }

// ---- out of messages

std::shared_ptr<const c_sma::Peer> peer_of(const v1::Peer& in) {
  c_sma::Peer peer{.identity = in.identity(), .names = {}, .co_located = in.co_located()};
  for (const v1::SciName& name : in.names()) peer.names.insert({name.csci_id(), name.cs_id()});
  return std::make_shared<const c_sma::Peer>(std::move(peer));
}

c_sma::ReportReceived take(WireReader& reader, const v1::ReportReceived& in) {
  auto report = report_of(in.report());
  if (!report) reader.fail("report", "a good one, but " + report.error().message);
  const auto peer = in.has_peer() ? peer_of(in.peer()) : std::make_shared<const c_sma::Peer>(kOwnProcess);
  return {report ? std::move(*report) : Report{}, peer, in.stream(), in.pulled()};
}

c_sma::ConfigChanged take(WireReader& reader, const v1::CSmaConfigChanged& in) {
  auto config = config_of(in.config());
  if (config) return {std::move(*config)};
  reader.fail("c_sma_config_changed", "a good one, but " + config.error().message);
  return {};
}

void take(WireReader& reader, const v1::Record& record, c_sma::Event& out) {
  switch (static_cast<int>(record.what_case())) {
    case v1::Record::kReportReceived:
      out = take(reader, record.report_received());
      break;
    case v1::Record::kReportUnreadable: {
      const v1::ReportUnreadable& in = record.report_unreadable();
      out = c_sma::ReportUnreadable{in.identity(), in.csci_id(), in.why(), in.stream()};
      break;
    }
    case v1::Record::kStreamClosed:
      out = c_sma::StreamClosed{record.stream_closed().stream()};
      break;
    case v1::Record::kPullFailed:
      out = c_sma::PullFailed{record.pull_failed().csci_id(), record.pull_failed().why()};
      break;
    case v1::Record::kRevoked:
      out = c_sma::Revoked{record.revoked().identity()};
      break;
    case v1::Record::kCSmaConfigChanged:
      out = take(reader, record.c_sma_config_changed());
      break;
    case v1::Record::kQuarantineRelease:
      out = c_sma::QuarantineRelease{record.quarantine_release().csci_id(), record.quarantine_release().who()};
      break;
    case v1::Record::kQuarantineDrop:
      out = c_sma::QuarantineDrop{record.quarantine_drop().csci_id(), record.quarantine_drop().who()};
      break;
    case v1::Record::kEpochReset:
      out = c_sma::EpochReset{record.epoch_reset().csci_id(), record.epoch_reset().who()};
      break;
    case v1::Record::kLoopLate:
      out = c_sma::LoopLate{reader.duration("by", record.loop_late().by())};
      break;
    case v1::Record::kTick:
      out = c_sma::Tick{};
      break;
    default:
      reader.fail("what", "an event of a C-SMA");
  }
}

}  // namespace

void to_wire(const CSmaBeginning& beginning, v1::CSmaStart& out) {
  const auto& [config, saved, epoch] = beginning;
  to_wire(config, *out.mutable_config());
  to_wire(saved, *out.mutable_saved());
  out.set_epoch(epoch);
}

Result<CSmaBeginning> beginning_of(const v1::CSmaStart& start, const c_sma::CSmaConfig* otherwise) {
  if (!start.has_config() && otherwise == nullptr) {
    return Error{"c_sma_start has no config, and no site file says one"};
  }
  auto config = start.has_config() ? config_of(start.config()) : *otherwise;
  if (!config) return config.error();
  auto saved = saved_state_of(start.saved());
  if (!saved) return Error{"saved: " + saved.error().message};
  return CSmaBeginning{std::move(*config), std::move(*saved), start.epoch() > 0 ? start.epoch() : 1};
}

void to_wire(const c_sma::Event& event, Time at, v1::Record& out) {
  put_time(at, out);
  std::visit([&out](const auto& e) { put(e, out); }, event);
}

Result<void> event_of(const v1::Record& record, c_sma::Event& out) {
  WireReader reader;
  take(reader, record, out);
  if (!reader.fault().empty()) return Error{reader.fault()};
  return {};
}

}  // namespace margay::control
