// SPDX-License-Identifier: Apache-2.0
#include "control/collection/report_streams.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "control/record/wire.h"
#include "control/watch.h"

namespace margay::control {
namespace {

constexpr size_t kEventsMax = 1000;  // of a connection, a turn
constexpr Nanoseconds kWatchInterval = kSecond;

std::string_view word_of(v1::ReportVerdict verdict) {
  if (verdict == v1::REPORT_VERDICT_ACCEPTED) return "ACCEPTED";
  if (verdict == v1::REPORT_VERDICT_FLAGGED) return "FLAGGED";
  return verdict == v1::REPORT_VERDICT_QUARANTINED ? "QUARANTINED" : "REFUSED";
}

}  // namespace

Result<std::unique_ptr<ReportStreams>> ReportStreams::open(const SiteSpec& spec, uint64_t seed, int epoll,
                                                           Nanoseconds now) {
  std::unique_ptr<ReportStreams> streams(new ReportStreams(epoll));
  for (const auto& [csci_id, to] : spec.reports_to) {
    const auto line = streams->line_for(to, spec.security);
    if (!line) return in(fmt::format("scis[{}].reports_to", csci_id), line.error());
    const auto is_it = [&id = csci_id](const SciSpec& s) { return s.csci_id == id; };
    const SciSpec& reporter = *std::find_if(spec.scis.begin(), spec.scis.end(), is_it);
    const uint64_t own_seed = seed ^ std::hash<std::string>{}(csci_id);
    const auto added = streams->scis_.try_emplace(
        csci_id, Sci{.line = *line, .push = ReportPush(reporter.report.interval, own_seed, now)});
    Sci& sci = added.first->second;
    sci.status.address = to.address;
  }
  return streams;
}

Result<size_t> ReportStreams::line_for(const ReportsTo& to, const security::SecurityConfig& security) {
  const bool own = !to.certificate.empty();
  const security::Files files{security.ca, own ? to.certificate : security.certificate, own ? to.key : security.key,
                              security.crl};
  const std::string key = fmt::format("{}\n{}\n{}\n{}", to.address, to.identity, files.certificate, files.key);
  const auto [place, is_new] = lines_by_.try_emplace(key, lines_.size());
  if (!is_new) return place->second;
  auto credentials = security::Credentials::open(files);
  if (!credentials) return credentials.error();
  auto client = Client::open({.method = rpc::kCollectionPush,
                              .single = false,
                              .server = to.address,
                              .credentials = *credentials,
                              .peer = {.kind = security::Kind::kCSma, .identity = to.identity},
                              .deadline = std::chrono::milliseconds(0),
                              .limits = {}});
  if (!client) return client.error();
  (void)watch(epoll_, (*client)->fd());
  lines_.push_back({.client = std::move(*client), .credentials = *credentials});
  return place->second;
}

void ReportStreams::report(const Report& report, bool answered) {
  const auto sci = scis_.find(report.csci_id);
  if (sci != scis_.end()) sci->second.push.report(report, answered);
}

Nanoseconds ReportStreams::next_due() const {
  Nanoseconds due = scis_.empty() ? kNever : watch_at_;
  for (const auto& [csci_id, sci] : scis_) {
    if (sci.stream == 0) due = std::min(due, sci.push.next_due());
  }
  return due;
}

void ReportStreams::turn(Time now, const std::function<void(const std::string&)>& full) {
  for (Line& line : lines_) poll(line, now);
  if (now.monotonic >= watch_at_) {
    watch_at_ = now.monotonic + kWatchInterval;
    for (const Line& line : lines_) {
      const auto polled = line.credentials->poll();
      if (!polled) spdlog::error("msg=\"certificates\" why={:?}", polled.error().message);
    }
  }
  for (auto& [csci_id, sci] : scis_) {
    Line& line = lines_[sci.line];
    if (sci.stream == 0 && sci.push.wants_connection(now.monotonic)) {
      sci.push.connecting();
      sci.stream = line.client->core().open();
      line.streams[sci.stream] = csci_id;
    }
    if (sci.push.take_wants_full()) full(csci_id);
    while (const auto report = sci.push.next()) {
      v1::Report message;
      to_wire(*report, message);
      if (!line.client->send(sci.stream, message)) break;  // Closed follows
      ++sci.status.sent;
    }
  }
}

void ReportStreams::poll(Line& line, Time now) {
  for (size_t n = 0; n < kEventsMax; ++n) {
    const auto event = line.client->next();
    if (!event) return;
    std::visit(
        [&](const auto& e) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(e)>, rpc::Refused>) {
            const auto stream = line.streams.find(e.id);
            if (stream != line.streams.end()) on(e, line, scis_.at(stream->second), now);
          }
        },
        *event);
  }
}

void ReportStreams::on(const rpc::Opened&, Line&, Sci& sci, Time) {
  sci.push.opened();
  sci.status.open = true;
  sci.status.why.clear();
  ++sci.status.connections;
}

void ReportStreams::on(const rpc::Received<v1::CollectionReply>& e, Line& line, Sci& sci, Time now) {
  if (e.message.has_pull()) sci.push.pulled();
  if (e.message.has_ack()) answered(e.message.ack(), line.streams.at(e.id), sci, now);
}

void ReportStreams::answered(const v1::ReportAck& ack, const std::string& csci_id, Sci& sci, Time now) {
  sci.push.answered();
  ++sci.status.answered;
  sci.status.verdict = word_of(ack.verdict());
  sci.status.reason = ack.reason();
  sci.told.clear();
  if (ack.verdict() == v1::REPORT_VERDICT_ACCEPTED || !log_.allows(now.monotonic)) return;
  spdlog::warn("msg=\"the C-SMA's verdict\" csci_id={:?} epoch={} sequence={} verdict={} reason={:?} left_out={}",
               csci_id, ack.epoch(), ack.sequence(), sci.status.verdict, ack.reason(), log_.left_out());
}

void ReportStreams::on(const rpc::WriteDone&, Line&, Sci& sci, Time) { sci.push.written(); }

void ReportStreams::on(const rpc::Closed& e, Line& line, Sci& sci, Time now) {
  const std::string csci_id = line.streams.at(e.id);
  line.streams.erase(e.id);
  sci.stream = 0;
  sci.push.closed(now.monotonic);
  sci.status.open = false;
  sci.status.why = e.why.empty() ? std::string(name_of(e.code)) : e.why;
  if (std::exchange(sci.told, sci.status.why) == sci.status.why) return;
  spdlog::warn("msg=\"C-SMA away\" csci_id={:?} address={} why={:?}", csci_id, sci.status.address, sci.status.why);
}

bool ReportStreams::settled() const {
  return std::all_of(scis_.begin(), scis_.end(), [](const auto& sci) { return sci.second.push.settled(); });
}

std::map<std::string, ReportStreams::Status> ReportStreams::status() const {
  std::map<std::string, Status> all;
  for (const auto& [csci_id, sci] : scis_) {
    all[csci_id] = sci.status;
    all[csci_id].not_sent = sci.push.not_sent();
  }
  return all;
}

}  // namespace margay::control
