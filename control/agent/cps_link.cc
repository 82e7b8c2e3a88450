// SPDX-License-Identifier: Apache-2.0
#include "control/agent/cps_link.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "control/northbound/wire/envelope.h"
#include "control/security/random.h"
#include "control/watch.h"

namespace margay::control {
namespace {

constexpr size_t kEventsMax = 256;  // a turn

}  // namespace

Result<std::unique_ptr<CpsLink>> CpsLink::open(const CpsTarget& target, northbound::SenderConfig config,
                                               std::shared_ptr<security::Credentials> credentials, Sealer& sealer,
                                               uint64_t seed, int epoll, Nanoseconds now) {
  auto client = Client::open({.method = rpc::kNorthboundSession,
                              .single = false,
                              .server = target.address,
                              .credentials = std::move(credentials),
                              .peer = {.kind = security::Kind::kCPs, .identity = target.identity},
                              .deadline = std::chrono::milliseconds(0),
                              .limits = {}});
  if (!client) return client.error();
  (void)watch(epoll, (*client)->fd());
  return std::unique_ptr<CpsLink>(new CpsLink(target, std::move(config), std::move(*client), sealer, seed, now));
}

Nanoseconds CpsLink::next_due(const northbound::RowStore& store) const {
  if (stream_ == 0) return session_.connect_at();
  if (!open_ || closing_) return kNever;
  return writing_ ? session_.overdue_at() : session_.next_due(store);
}

void CpsLink::turn(const northbound::RowStore& store, Time now) {
  for (size_t n = 0; n < kEventsMax; ++n) {
    const auto event = client_->next();
    if (!event) break;
    std::visit([&](const auto& e) { on(e, store, now); }, *event);
  }
  if (stream_ == 0 && session_.connect_at() <= now.monotonic) stream_ = client_->core().open();
  write(store, now);
}

void CpsLink::on(const rpc::Opened& e, const northbound::RowStore&, Time now) {
  if (e.id != stream_) return;
  open_ = true;
  writing_ = closing_ = false;
  ++status_.connections;
  session_.connected(security::random_bytes(northbound::kChallengeMin), now.monotonic);
}

void CpsLink::on(const rpc::Received<v1::Signed>& e, const northbound::RowStore& store, Time now) {
  if (e.id != stream_ || closing_) return;
  ++status_.received;
  const northbound::OpenRules rules{.find_key = [](const std::string&) { return nullptr; }, .accept_unsigned = true};
  const auto opened = northbound::open(e.message, rules, now.monotonic);
  if (const auto* bad = std::get_if<northbound::Unopened>(&opened)) {
    return fault(bad->fault, bad->detail, now.monotonic);
  }
  const auto& good = std::get<northbound::Opened>(opened);
  const auto found = session_.received(store, good.message, good.key_id, now);
  if (found) return fault(*found, std::string(northbound::text_of(*found).meaning), now.monotonic);
  if (session_.all_acked() && !std::exchange(status_.open, true)) {
    spdlog::info("msg=\"C-PS joined\" c_ps={:?} address={}", target_.identity, target_.address);
    status_.why.clear();
    told_.clear();
  }
}

void CpsLink::on(const rpc::WriteDone& e, const northbound::RowStore&, Time) {
  if (e.id == stream_) writing_ = false;
}

void CpsLink::on(const rpc::Closed& e, const northbound::RowStore&, Time now) {
  if (e.id != stream_) return;
  if (!closing_) status_.why = e.why.empty() ? "the C-PS ended the stream" : e.why;
  session_.lost(now.monotonic);
  stream_ = 0;
  open_ = status_.open = false;
  if (std::exchange(told_, status_.why) != status_.why) {
    spdlog::warn("msg=\"C-PS away\" c_ps={:?} address={} why={:?}", target_.identity, target_.address, status_.why);
  }
}

void CpsLink::fault(northbound::Fault fault, const std::string& detail, Nanoseconds now) {
  if (log_.allows(now)) {
    spdlog::warn("msg=\"message of a C-PS refused\" c_ps={:?} reason={} detail={:?} left_out={}", target_.identity,
                 name_of(fault), detail, log_.left_out());
  }
  if (!ends_session(fault) || closing_) return;
  status_.why = std::string(name_of(fault));
  closing_ = true;
  client_->close(stream_, rpc::Code::kInvalid, status_.why);
}

void CpsLink::write(const northbound::RowStore& store, Time now) {
  if (!open_ || closing_) return;
  if (writing_) {
    const auto late = session_.overdue(now.monotonic);
    return late ? fault(*late, std::string(northbound::text_of(*late).meaning), now.monotonic) : void();
  }
  const auto next = session_.next(store, now);
  if (const auto* bad = std::get_if<northbound::Fault>(&next)) {
    return fault(*bad, std::string(northbound::text_of(*bad).meaning), now.monotonic);
  }
  const auto* message = std::get_if<northbound::Message>(&next);
  if (message == nullptr) return;
  const auto sealed = sealer_.seal(*message, now.monotonic);
  if (!sealed) {
    status_.why = "nonces cannot be kept";
    closing_ = true;
    return client_->close(stream_, rpc::Code::kInternal, status_.why);
  }
  writing_ = client_->send(stream_, *sealed);
  status_.sent += writing_;
}

}  // namespace margay::control
