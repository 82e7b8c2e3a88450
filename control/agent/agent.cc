// SPDX-License-Identifier: Apache-2.0
#include "control/agent/agent.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/monotonic.h"
#include "control/agent/agent_state.h"
#include "control/durable_file.h"
#include "control/sender_config.h"

namespace margay::control {
namespace {

constexpr char kState[] = "c-sma-state";

std::string state_path(const SiteSpec& spec) { return spec.state_directory + "/c-sma"; }

// A state that cannot be read is no reason to stand still: then it is as at the first start.
c_sma::SavedState saved_state(const SiteSpec& spec) {
  const auto content = read_checked(state_path(spec), kState);
  auto state = !content   ? Result<c_sma::SavedState>(content.error())
               : *content ? agent_state_of(**content)
                          : Result<c_sma::SavedState>(c_sma::SavedState{});
  if (state) return *state;
  spdlog::warn("msg=\"what the C-SMA knew is lost\" why={:?}", state.error().message);
  return {};
}

std::string_view name_of_state(const std::optional<northbound::SourceState>& state, std::string_view otherwise) {
  return state ? northbound::name_of(*state) : otherwise;
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::make(const SiteSpec& spec, Outside outside, uint64_t seed, int epoll, Time now) {
  const uint64_t epoch = EpochStore(spec.state_directory, "c-sma-epoch").next(now.unix_ms);
  const c_sma::SavedState saved = saved_state(spec);
  outside.recorder.begin_c_sma({spec.c_sma->core, saved, epoch}, now);
  std::unique_ptr<Agent> agent(new Agent(spec, saved, epoch, std::move(outside), seed, epoll, now));
  if (auto opened = agent->open(spec, now); !opened) return opened.error();
  spdlog::info("msg=\"C-SMA begins\" identity={:?} listen={} scis={} c_ps={} epoch={}", spec.c_sma->core.identity,
               spec.c_sma->listen.empty() ? "none" : spec.c_sma->listen, spec.c_sma->core.accept.size(),
               spec.c_sma->c_ps.size(), epoch);
  return agent;
}

Agent::Agent(const SiteSpec& spec, const c_sma::SavedState& saved, uint64_t epoch, Outside outside, uint64_t seed,
             int epoll, Time now)
    : spec_(*spec.c_sma),
      outside_(std::move(outside)),
      seed_(seed),
      epoll_(epoll),
      own_(std::make_shared<c_sma::Peer>(c_sma::Peer{.identity = "this process", .names = {}, .co_located = true})),
      core_(spec.c_sma->core, saved, now),
      store_(epoch),
      watch_at_(now.monotonic),
      turned_at_(now.monotonic) {
  note_own_scis(spec);
}

void Agent::note_own_scis(const SiteSpec& spec) {
  co_located_.clear();
  for (const SciSpec& sci : spec.scis) {
    if (!spec.reports_to.contains(sci.csci_id)) co_located_.insert(sci.csci_id);
  }
}

Result<void> Agent::open(const SiteSpec& spec, Time now) {
  auto audit = AuditLog::open(spec.state_directory);
  if (!audit) return in("state_directory", audit.error());
  audit_ = std::move(*audit);
  if (!spec.security.ca.empty()) {
    auto credentials = security::Credentials::open(
        {spec.security.ca, spec.security.certificate, spec.security.key, spec.security.crl});
    if (!credentials) return in("security", credentials.error());
    credentials_ = std::move(*credentials);
    puller_ = std::make_unique<Puller>(credentials_, epoll_, seed_, outside_.ask);
    puller_->configure(spec_.pull, now.monotonic);
  }
  auto sealer = Sealer::open(spec.security.signing_key, spec.state_directory, now.unix_ms);
  if (!sealer) return sealer.error();
  sealer_ = std::move(*sealer);
  if (!spec_.listen.empty()) {
    auto port = CollectionPort::open(spec_.listen, spec_.core.cache.max_entries, credentials_, epoll_);
    if (!port) return in("c_sma.listen", port.error());
    port_ = std::move(*port);
  }
  auto links = links_for(spec_, now);
  if (!links) return links.error();
  links_ = std::move(*links);
  writer_ = std::make_unique<StateWriter>(state_path(spec), kState);
  return {};
}

Result<Agent::Links> Agent::links_for(const CSmaSpec& spec, Time now) const {
  Links links;
  for (const CpsTarget& target : spec.c_ps) {
    auto link = CpsLink::open(target, sender_config(spec.core, target.identity, target.cs_ids), credentials_, *sealer_,
                              seed_ ^ std::hash<std::string>{}(target.identity), epoll_, now.monotonic);
    if (!link) return in("c_sma.c_ps", link.error());
    links.push_back(std::move(*link));
  }
  return links;
}

void Agent::report(const Report& report, Time now) {
  if (co_located_.count(report.csci_id) > 0) tell(c_sma::ReportReceived{report, own_, 0, false}, now);
}

void Agent::tell(const c_sma::Event& event, Time now) {
  waiting_.push_back(event);
  if (std::exchange(telling_, true)) return;  // by an action; it comes to it in its turn
  while (!waiting_.empty()) {
    const c_sma::Event next = std::move(waiting_.front());
    waiting_.pop_front();
    outside_.recorder.event(spec_.core.identity, next, now);
    for (const c_sma::Action& action : core_.handle(next, now)) {
      outside_.recorder.action(spec_.core.identity, action, now);
      std::visit([&](const auto& a) { perform(a, now); }, action);
    }
  }
  telling_ = false;
}

void Agent::perform(const c_sma::Commit& a, Time now) {
  ++verdicts_.commits;
  verdicts_.critical += a.critical;
  verdicts_.causes[a.change.cs_id] = a.cause;
  const std::string cs_id = a.change.cs_id;
  const northbound::RowVersion version = store_.commit(a.change, a.critical);
  spdlog::info("msg=\"advertised\" cs_id={:?} commit={} cause={} critical={} rows={} withdrawn={}", cs_id,
               version.commit, c_sma::name_of(a.cause), a.critical, a.change.rows.size(), a.change.withdrawals.size());
  for (const auto& link : links_) link->committed(cs_id, now.monotonic);
}

void Agent::perform(const c_sma::PullWanted& a, Time now) {
  if (co_located_.count(a.csci_id) > 0) return outside_.pull(a.csci_id);
  // A question of its own finds out more than one on a stream that may be half dead.
  if (puller_ && puller_->want(a.csci_id)) return;
  const auto stream = core_.stream_of(a.csci_id);
  if (port_ && stream && port_->pull(*stream)) return;
  tell(c_sma::PullFailed{a.csci_id, "no stream to ask it by"}, now);
}

void Agent::perform(const c_sma::Judged& a, Time now) {
  ++verdicts_.verdicts[static_cast<size_t>(a.verdict)];
  if (!a.reason.empty()) ++verdicts_.reasons[std::string(a.reason)];
  if (port_ && a.stream != 0) port_->answer(a);
  if (a.verdict == c_sma::Verdict::kAccepted || !log_.allows(now.monotonic)) return;
  spdlog::warn("msg=\"report\" csci_id={:?} epoch={} sequence={} verdict={} reason={} detail={:?} left_out={}",
               a.csci_id, a.epoch, a.sequence, c_sma::name_of(a.verdict), a.reason, a.detail, log_.left_out());
}

void Agent::perform(const c_sma::CloseStream& a, Time) {
  if (port_) port_->close(a.stream, a.why);
}

void Agent::perform(const c_sma::SourceChanged& a, Time now) {
  // The next process must wait for an SCI that this one has just met, and not for one that it has lost.
  if (!a.from || !a.to) save_at_ = std::min(save_at_, std::max(now.monotonic, may_save_at_));
  spdlog::info("msg=\"source changed\" csci_id={:?} cs_id={:?} from={} to={} cause={:?}", a.csci_id, a.cs_id,
               name_of_state(a.from, "-"), name_of_state(a.to, "-"), a.why);
}

void Agent::perform(const c_sma::FirstRoundOver& a, Time) {
  spdlog::info("msg=\"first round over\" missing={}", a.missing);
  store_.end_first_round();
}

void Agent::perform(const c_sma::Audit& a, Time now) {
  audit_->add({.kind = std::string(c_sma::name_of(a.kind)),
               .who = a.who.empty() ? spec_.core.identity : a.who,
               .what = a.what,
               .detail = a.detail,
               .unix_ms = now.unix_ms});
}

Nanoseconds Agent::next_due() const {
  Nanoseconds due = more_ ? 0 : std::min(core_.next_due(), save_at_);
  if (credentials_) due = std::min(due, watch_at_);
  if (puller_) due = std::min(due, puller_->next_due());
  for (const auto& link : links_) due = std::min(due, link->next_due(store_));
  return due;
}

bool Agent::answer(const Prober::Answer& answer, Time now) {
  watch_loop(now);
  return puller_ && puller_->answer(answer, now, [&](const c_sma::Event& event) { tell(event, now); });
}

void Agent::turn(Time now) {
  watch_loop(now);
  if (port_) {
    more_ = port_->poll({[&](const c_sma::Event& event) { tell(event, now); },
                         [&](const rpc::Refused& r) {
                           audit_->add({"REFUSED", "", "stream", r.reason + ": " + r.detail, now.unix_ms});
                         }});
  }
  if (core_.next_due() <= now.monotonic) tell(c_sma::Tick{}, now);
  if (puller_) puller_->turn(now, [&](const c_sma::Event& event) { tell(event, now); });
  watch_certificates(now);
  for (const auto& link : links_) link->turn(store_, now);
  if (now.monotonic >= save_at_) save(now);
}

// Said before what came meanwhile, so that nobody is taken for silent whom we did not hear.
void Agent::watch_loop(Time now) {
  const Nanoseconds passed = now.monotonic - std::exchange(turned_at_, now.monotonic);
  if (passed > kTurnMax) tell(c_sma::LoopLate{passed}, now);
}

// Streams whose peers are no good by the new ones are ended by control/rpc.
void Agent::watch_certificates(Time now) {
  if (!credentials_ || now.monotonic < watch_at_) return;
  watch_at_ = now.monotonic + kWatchInterval;
  const auto changed = credentials_->poll();
  if (!changed) spdlog::error("msg=\"certificates\" why={:?}", changed.error().message);
}

void Agent::save(Time now) {
  const Nanoseconds began = monotonic_now();
  writer_->write([state = core_.save(now)] { return bytes_of(state); });
  may_save_at_ = now.monotonic + std::max(kSaveGap, kSaveShare * (monotonic_now() - began));
  save_at_ = std::max(now.monotonic + kSaveInterval, may_save_at_);
}

Result<std::optional<Agent::Links>> Agent::prepare(const SiteSpec& next, Time now) const {
  if (next.c_sma->c_ps == spec_.c_ps && next.c_sma->core.updates == spec_.core.updates) return std::optional<Links>{};
  auto links = links_for(*next.c_sma, now);
  if (!links) return links.error();
  return std::optional(std::move(*links));
}

void Agent::reload(const SiteSpec& next, std::optional<Links> links, Time now) {
  const bool same_core = next.c_sma->core == spec_.core;
  spec_ = *next.c_sma;
  if (links) links_ = std::move(*links);
  note_own_scis(next);
  if (puller_) puller_->configure(spec_.pull, now.monotonic);
  if (!same_core) tell(c_sma::ConfigChanged{spec_.core}, now);
}

void Agent::stop(Time now) { save(now); }

}  // namespace margay::control
