// SPDX-License-Identifier: Apache-2.0
#include "control/agent/puller.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "control/agent/collection_port.h"
#include "control/record/wire.h"
#include "control/watch.h"

namespace margay::control {
namespace {

constexpr size_t kAnswersMax = 1000;  // of a connection, a turn
const security::Expected kAnySci{.kind = security::Kind::kSci};

}  // namespace

void Puller::turn(Time now, const Tell& tell) {
  for (auto& [key, line] : lines_) poll(line, now, tell);
  std::erase_if(lines_, [](const auto& line) { return line.second.streams.empty(); });
  for (const std::string& csci_id : plan_.begin(now.monotonic)) begin(csci_id, now, tell);
}

void Puller::begin(const std::string& csci_id, Time now, const Tell& tell) {
  const PullTarget& target = plan_.pulls().at(csci_id).target;
  if (!target.url.empty()) return ask_by_http(target);
  const auto line = line_for(target);
  if (!line) return fail(csci_id, line.error().message, now, tell);
  v1::PullRequest request;
  request.set_csci_id(csci_id);
  (*line)->streams[(*line)->client->ask(request)] = {csci_id};
}

void Puller::ask_by_http(const PullTarget& target) {
  const uint64_t ticket = kTickets | ++tickets_;
  auto handshake = std::make_shared<security::Handshake>(credentials_->current(), security::Side::kServer, kAnySci);
  questions_[ticket] = {target.csci_id, handshake};
  ask_({.ticket = ticket, .url = target.url, .timeout = target.timeout, .handshake = std::move(handshake)});
}

Result<Puller::Line*> Puller::line_for(const PullTarget& target) {
  Line& line = lines_[target.grpc + "\n" + std::to_string(target.timeout)];
  if (line.client) return &line;
  const std::chrono::milliseconds timeout(target.timeout / kMillisecond);
  auto client = Client::open({.method = rpc::kSourcePull,
                              .single = true,
                              .server = target.grpc,
                              .credentials = credentials_,
                              .peer = kAnySci,
                              .deadline = timeout,
                              .limits = {.open = timeout}});
  if (!client) return client.error();
  (void)watch(epoll_, (*client)->fd());
  line.client = std::move(*client);
  return &line;
}

void Puller::poll(Line& line, Time now, const Tell& tell) {
  for (size_t n = 0; line.client && n < kAnswersMax; ++n) {
    const auto event = line.client->next();
    if (!event) return;
    std::visit([&](const auto& e) { on(e, line, now, tell); }, *event);
  }
}

void Puller::on(const rpc::Opened& e, Line& line, Time, const Tell&) {
  if (const auto found = line.streams.find(e.id); found != line.streams.end()) found->second.peer = e.peer;
}

void Puller::on(const rpc::Received<v1::Report>& e, Line& line, Time now, const Tell& tell) {
  const auto found = line.streams.find(e.id);
  if (found == line.streams.end() || std::exchange(found->second.answered, true)) return;
  take(found->second.csci_id, e.message, found->second.peer, now, tell);
}

void Puller::on(const rpc::Closed& e, Line& line, Time now, const Tell& tell) {
  const auto question = line.streams.extract(e.id);
  if (question.empty() || question.mapped().answered) return;
  const std::string code(name_of(e.code));
  fail(question.mapped().csci_id, e.why.empty() || e.why == code ? code : code + ": " + e.why, now, tell);
}

bool Puller::answer(const Prober::Answer& answer, Time now, const Tell& tell) {
  if ((answer.ticket & kTickets) == 0) return false;
  const auto question = questions_.extract(answer.ticket);
  if (question.empty()) return true;
  const auto& [csci_id, handshake] = question.mapped();
  if (answer.verdict != Prober::Verdict::kOk) {
    fail(csci_id, answer.detail, now, tell);
    return true;
  }
  const security::Trust::Verdict& verdict = handshake->peer();
  v1::Report message;
  if (verdict.refusal) {
    fail(csci_id, std::string(security::name_of(*verdict.refusal)), now, tell);
  } else if (!message.ParseFromString(answer.body)) {
    tell(c_sma::ReportUnreadable{verdict.peer.subject, csci_id, "no message of this protocol", 0});
    fail(csci_id, "the answer is no margay.v1.Report", now, tell);
  } else {
    take(csci_id, message, std::make_shared<security::Peer>(verdict.peer), now, tell);
  }
  return true;
}

void Puller::take(const std::string& csci_id, const v1::Report& message, const PeerPtr& peer, Time now,
                  const Tell& tell) {
  auto report = report_of(message);
  if (!report) {
    tell(c_sma::ReportUnreadable{peer->subject, csci_id, report.error().message, 0});
    return fail(csci_id, report.error().message, now, tell);
  }
  if (report->csci_id != csci_id) return fail(csci_id, "the answer is of another SCI, " + report->csci_id, now, tell);
  const auto finished = plan_.answered(csci_id, now.monotonic);
  if (!finished) return;
  answered_[csci_id] = peer;
  if (finished->news) spdlog::info("msg=\"SCI answers\" csci_id={:?}", csci_id);
  tell(c_sma::ReportReceived{std::move(*report), reporter_of(*peer), 0, finished->wanted});
}

void Puller::fail(const std::string& csci_id, const std::string& why, Time now, const Tell& tell) {
  const auto finished = plan_.failed(csci_id, why, now.monotonic);
  if (!finished) return;
  if (finished->news && log_.allows(now.monotonic)) {
    spdlog::warn("msg=\"SCI does not answer\" csci_id={:?} why={:?} left_out={}", csci_id, why, log_.left_out());
  }
  // Whoever shows an old certificate of somebody else's is no reason; that of the last answer is.
  const auto last = answered_.find(csci_id);
  if (last != answered_.end() && credentials_->current()->still_good(*last->second, security::Side::kServer, kAnySci) ==
                                     security::Refusal::kRevoked) {
    const std::string identity = reporter_of(*last->second)->identity;
    answered_.erase(last);
    tell(c_sma::Revoked{identity});
  }
  if (finished->wanted) tell(c_sma::PullFailed{csci_id, why});
}

}  // namespace margay::control
