// SPDX-License-Identifier: Apache-2.0
#include "control/cps/cps_service.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "control/cps/state_wire.h"
#include "control/durable_file.h"
#include "control/security/random.h"
#include "control/security/signing.h"
#include "control/watch.h"

namespace margay::cps {
namespace {

using northbound::Fault;

constexpr char kState[] = "c-ps-state";
constexpr size_t kEventsMax = 1000;  // a turn
constexpr Nanoseconds kSaveInterval = 5 * kSecond;

std::string identity_of(const security::Peer& peer) {
  for (const security::Name& name : peer.names) {
    if (name.kind == security::Kind::kCSma) return name.identity;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<CpsService>> CpsService::make(CpsConfig config, int epoll, Time now) {
  std::unique_ptr<CpsService> service(new CpsService(std::move(config)));
  if (auto opened = service->open(epoll, now); !opened) return in(service->config_.file, opened.error());
  return service;
}

Result<void> CpsService::open(int epoll, Time now) {
  for (const TrustedCSma& trusted : config_.c_smas) {
    CSma& c_sma = c_smas_[trusted.identity];
    c_sma.trusted = trusted;
    for (const auto& [id, file] : trusted.keys) {
      auto key = security::Verifier::load(file);
      if (!key) return in("cps.c_smas[" + trusted.identity + "].keys." + id, key.error());
      c_sma.keys[id] = {northbound::Algorithm::kEd25519,
                        [key = *key](std::string_view bytes, std::string_view s) { return key.verify(bytes, s); }};
    }
  }
  const security::SecurityConfig& s = config_.security;
  auto credentials = security::Credentials::open({s.ca, s.certificate, s.key, s.crl});
  if (!credentials) return in("security", credentials.error());
  credentials_ = std::move(*credentials);
  for (const security::Name& name : credentials_->current()->names()) {
    if (name.kind == security::Kind::kCPs) identity_ = name.identity;
  }
  if (identity_.empty()) return Error{"security.certificate: names no C-PS, expected a URI cats:c-ps/IDENTITY in it"};
  if (!config_.state.empty()) {
    auto content = control::read_checked(config_.state, kState);
    auto saved = !content   ? Result<SavedState>(content.error())
                 : *content ? state_of(**content, now.monotonic)
                            : Result<SavedState>(SavedState{});
    Peers peers;
    auto restored = saved ? restore(*saved, now, table_, peers) : Result<void>(saved.error());
    if (!restored) spdlog::warn("msg=\"what the C-PS knew is lost\" why={:?}", restored.error().message);
    for (auto& [c_sma, peer] : peers) {
      if (c_smas_.contains(c_sma)) c_smas_[c_sma].peer = std::move(peer);
    }
    writer_ = std::make_unique<control::StateWriter>(config_.state, kState);
  }
  auto server = Server::open({.method = rpc::kNorthboundSession,
                              .single = false,
                              .listen = *AddressPort::parse(config_.listen),
                              .credentials = credentials_,
                              .peers = {.kind = security::Kind::kCSma},
                              .limits = {}});
  if (!server) return in("cps.listen", server.error());
  server_ = std::move(*server);
  (void)control::watch(epoll, server_->fd());
  spdlog::info("msg=\"C-PS begins\" identity={:?} listen={} c_smas={} rows={}", identity_, config_.listen,
               c_smas_.size(), table_.sites().size());
  return {};
}

Nanoseconds CpsService::next_due() const {
  Nanoseconds due = more_ ? 0 : watch_at_;
  if (writer_) due = std::min(due, save_at_);
  for (const auto& [id, session] : sessions_) {
    if (!session.closing) due = std::min(due, session.core.next_due());
  }
  return due;
}

void CpsService::turn(Time now) {
  more_ = true;
  for (size_t n = 0; n < kEventsMax; ++n) {
    const auto event = server_->next();
    if (!event) {
      more_ = false;
      break;
    }
    std::visit([&](const auto& e) { on(e, now); }, *event);
  }
  for (auto& [id, session] : sessions_) {
    CSma& c_sma = c_smas_.at(session.c_sma);
    if (!session.closing) {
      if (const auto late = session.core.overdue(c_sma.peer, now.monotonic)) {
        fault(id, session, *late, "", now.monotonic);
      }
    }
    write(id, session, now);
  }
  if (now.monotonic >= watch_at_) watch_certificates(now);
  if (writer_ && now.monotonic >= save_at_) save(now);
}

void CpsService::on(const rpc::Opened& e, Time now) {
  const std::string identity = identity_of(*e.peer);
  const auto c_sma = c_smas_.find(identity);
  if (c_sma == c_smas_.end()) {
    turn_away(identity, "unknown_c_sma", "expected one of cps.c_smas", now.monotonic);
    return server_->close(e.id, rpc::Code::kDenied, "no C-SMA that this C-PS knows");
  }
  for (auto& [id, session] : sessions_) {
    if (session.c_sma == identity && !session.closing) close(id, session, rpc::Code::kCancelled, "a newer session");
  }
  ++c_sma->second.sessions;
  ReceiverConfig config;
  config.identity = identity_;
  config.c_sma = identity;
  config.cs_ids = c_sma->second.trusted.cs_ids;
  config.window_ms = static_cast<int64_t>(config_.window / kMillisecond);
  sessions_.insert(
      {e.id, Session{.c_sma = identity,
                     .address = e.address,
                     .core = ReceiverSession(config, security::random_bytes(northbound::kChallengeMin), now.monotonic),
                     .since = now.monotonic}});
  spdlog::info("msg=\"C-SMA joined\" c_sma={:?} address={}", identity, e.address);
}

void CpsService::on(const rpc::Received<v1::Signed>& e, Time now) {
  const auto found = sessions_.find(e.id);
  if (found == sessions_.end() || found->second.closing || found->second.ends) return;
  Session& session = found->second;
  CSma& c_sma = c_smas_.at(session.c_sma);
  ++c_sma.messages;
  const northbound::OpenRules rules{.find_key = [&](const std::string& id) -> const northbound::Key* {
                                      const auto key = c_sma.keys.find(id);
                                      return key == c_sma.keys.end() ? nullptr : &key->second;
                                    },
                                    .accept_unsigned = c_sma.keys.empty()};
  const auto opened = northbound::open(e.message, rules, now.monotonic);
  if (const auto* bad = std::get_if<northbound::Unopened>(&opened)) {
    c_sma.peer.faults.count(bad->fault);
    if (bad->fault == Fault::kMalformed) session.core.malformed(c_sma.peer, bad->detail);
    return fault(e.id, session, bad->fault, bad->detail, now.monotonic);
  }
  const auto& good = std::get<northbound::Opened>(opened);
  const auto refused = session.core.received(table_, c_sma.peer, good.message, good.key_id, now);
  if (refused) fault(e.id, session, *refused, std::string(text_of(*refused).meaning), now.monotonic);
}

void CpsService::on(const rpc::WriteDone& e, Time) {
  const auto found = sessions_.find(e.id);
  if (found != sessions_.end()) found->second.writing = false;
}

void CpsService::on(const rpc::Closed& e, Time) {
  const auto found = sessions_.find(e.id);
  if (found == sessions_.end()) return;
  CSma& c_sma = c_smas_.at(found->second.c_sma);
  if (!found->second.closing) c_sma.why = e.why.empty() ? "the C-SMA ended the stream" : e.why;
  spdlog::info("msg=\"C-SMA away\" c_sma={:?} why={:?}", found->second.c_sma, c_sma.why);
  sessions_.erase(found);
}

void CpsService::on(const rpc::Refused& e, Time now) { turn_away("", e.reason, e.detail, now.monotonic); }

void CpsService::turn_away(const std::string& who, const std::string& reason, const std::string& detail,
                           Nanoseconds now) {
  ++turned_away_[reason];
  if (!log_.allows(now)) return;
  spdlog::warn("msg=\"turned away\" who={:?} reason={} detail={:?} left_out={}", who, reason, detail, log_.left_out());
}

void CpsService::fault(rpc::StreamId, Session& session, Fault fault, const std::string& detail, Nanoseconds now) {
  if (log_.allows(now)) {
    spdlog::warn("msg=\"message refused\" c_sma={:?} reason={} detail={:?} left_out={}", session.c_sma, name_of(fault),
                 detail, log_.left_out());
  }
  if (ends_session(fault) && !session.ends) session.ends = fault;
}

void CpsService::write(rpc::StreamId id, Session& session, Time now) {
  if (session.writing || session.closing) return;
  const auto next = session.core.next(table_, c_smas_.at(session.c_sma).peer, now);
  if (const auto* message = std::get_if<northbound::Message>(&next)) {
    northbound::Message numbered = *message;
    // Above all of the process before, in steps that nobody is fast enough for. Nothing here is signed.
    nonce_ = std::max(nonce_ + 1, static_cast<uint64_t>(std::max<int64_t>(now.unix_ms, 0)) << 12);
    numbered.header.nonce = nonce_;
    v1::Signed out;
    northbound::seal(numbered, now.monotonic, nullptr, out);
    session.writing = server_->send(id, out);
    return;
  }
  if (const auto* bad = std::get_if<Fault>(&next)) session.ends = *bad;
  if (session.ends) close(id, session, rpc::Code::kInvalid, std::string(name_of(*session.ends)));
}

void CpsService::close(rpc::StreamId id, Session& session, rpc::Code code, const std::string& why) {
  session.closing = true;
  c_smas_.at(session.c_sma).why = why;
  server_->close(id, code, why);
}

void CpsService::watch_certificates(Time now) {
  watch_at_ = now.monotonic + kWatchInterval;
  if (auto polled = credentials_->poll(); !polled)
    spdlog::error("msg=\"certificates\" why={:?}", polled.error().message);
}

bool CpsService::request_sync(const std::string& c_sma) {
  for (auto& [id, session] : sessions_) {
    if (session.c_sma != c_sma || session.closing) continue;
    session.core.request_sync({});
    return true;
  }
  return false;
}

void CpsService::save(Time now) {
  save_at_ = now.monotonic + kSaveInterval;
  Peers peers;
  for (const auto& [identity, c_sma] : c_smas_) peers[identity] = c_sma.peer;
  writer_->write([state = cps::save(table_, peers, now), at = now.monotonic] { return bytes_of(state, at); });
}

void CpsService::finish(Time now) {
  if (writer_) save(now);
}

}  // namespace margay::cps
