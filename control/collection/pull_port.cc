// SPDX-License-Identifier: Apache-2.0
#include "control/collection/pull_port.h"

#include <spdlog/spdlog.h>

#include "control/record/wire.h"
#include "control/watch.h"

namespace margay::control {
namespace {

constexpr Nanoseconds kLookInterval = kSecond;  // of the certificates' files

}  // namespace

Result<std::unique_ptr<PullPort>> PullPort::open(const PulledBy& by, const security::SecurityConfig& security,
                                                 int epoll, Want want) {
  auto credentials = security::Credentials::open({security.ca, security.certificate, security.key, security.crl});
  if (!credentials) return credentials.error();
  std::unique_ptr<PullPort> port(new PullPort(*credentials, std::move(want)));
  if (!by.grpc) return port;
  auto server = Server::open({.method = rpc::kSourcePull,
                              .single = true,
                              .listen = *by.grpc,
                              .credentials = std::move(*credentials),
                              .peers = {.kind = security::Kind::kCSma, .identity = by.identity},
                              .limits = {.message = 4096, .streams = kWaitingMax}});
  if (!server) return server.error();
  (void)watch(epoll, (*server)->fd());
  port->server_ = std::move(*server);
  return port;
}

void PullPort::turn(Time now) {
  for (size_t n = 0; server_ && n < kEventsMax; ++n) {
    const auto event = server_->next();
    if (!event) break;
    std::visit([&](const auto& e) { on(e, now); }, *event);
  }
  while (!waiting_.empty() && waiting_.front().until <= now.monotonic) {
    const Respond respond_late = std::move(waiting_.front().respond);
    waiting_.pop_front();
    respond(respond_late, {.code = rpc::Code::kExhausted, .why = "asked too often, expected to be asked again later"});
  }
  if (now.monotonic < watch_at_) return;
  watch_at_ = now.monotonic + kLookInterval;
  const auto polled = credentials_->poll();
  if (!polled) spdlog::error("msg=\"certificates\" why={:?}", polled.error().message);
}

void PullPort::on(const rpc::Received<v1::PullRequest>& e, Time now) {
  if (!asked_.insert(e.id).second) {
    return server_->close(e.id, rpc::Code::kInvalid, "expected one question");
  }
  ask(
      e.message.csci_id(), [this, id = e.id](const Answer& a) { answer(id, a); }, now);
}

void PullPort::answer(rpc::StreamId stream, const Answer& answer) {
  if (answer.report == nullptr) return server_->close(stream, answer.code, answer.why);
  v1::Report message;
  to_wire(*answer.report, message);
  (void)server_->send(stream, message);  // false: who asked has gone
}

void PullPort::ask(const std::string& csci_id, Respond who, Time now) {
  if (stopped_) return respond(who, {.code = rpc::Code::kUnavailable, .why = "this process ends"});
  if (waiting_.size() >= kWaitingMax) {
    return respond(who, {.code = rpc::Code::kExhausted, .why = "too many questions wait"});
  }
  waiting_.push_back({csci_id, std::move(who), now.monotonic + kPatience});
  if (want_(csci_id)) return;
  const Respond nobody = std::move(waiting_.back().respond);
  waiting_.pop_back();
  respond(nobody, {.code = rpc::Code::kInvalid, .why = "no such SCI reports here now"});
}

bool PullPort::report(const Report& report) {
  if (!report.full) return false;
  std::list<Waiting> theirs;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto next = std::next(at);
    if (at->csci_id == report.csci_id) theirs.splice(theirs.end(), waiting_, at);
    at = next;
  }
  for (const Waiting& w : theirs) respond(w.respond, {.report = &report, .code = rpc::Code::kOk});
  return !theirs.empty();
}

void PullPort::respond(const Respond& respond, const Answer& answer) {
  ++(answer.report != nullptr ? counters_.answered : counters_.refused);
  respond(answer);
}

void PullPort::stop() {
  stopped_ = true;
  for (const Waiting& w : std::exchange(waiting_, {})) {
    respond(w.respond, {.code = rpc::Code::kUnavailable, .why = "this process ends"});
  }
}

void PullPort::refused(const std::string& reason, const std::string& detail, Nanoseconds now) {
  if (!log_.allows(now)) return;
  spdlog::warn("msg=\"pull refused\" reason={} detail={:?} left_out={}", reason, detail, log_.left_out());
}

}  // namespace margay::control
