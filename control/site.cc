// SPDX-License-Identifier: Apache-2.0
#include "control/site.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "control/site_diff.h"

namespace margay::control {
namespace {

constexpr int kTicksMax = 1000;  // of all SCIs, a turn

// SCIs with the same intervals are not to be in step.
uint64_t seed_of(uint64_t seed, const std::string& csci_id) { return seed ^ std::hash<std::string>{}(csci_id); }

bool knows_nothing(const Sci& sci, const SciSpec& spec) {
  return std::all_of(spec.instances.begin(), spec.instances.end(), [&sci](const InstanceSpec& i) {
    const HealthMonitor* monitor = sci.monitor(i.id);
    return monitor != nullptr && monitor->state() == HealthState::kUnknown;
  });
}

}  // namespace

std::string words_of(const HealthCause& cause) {
  static constexpr std::string_view kOutcomes[] = {"passed", "failed", "could not be made"};
  if (!cause.kind) return "configuration";
  return fmt::format("{} {} {} times", name_of(*cause.kind), kOutcomes[static_cast<size_t>(cause.outcome)],
                     cause.count);
}

Result<std::unique_ptr<Site>> Site::make(SiteSpec spec, Parts parts, uint64_t seed, int epoll, Nanoseconds now) {
  std::unique_ptr<Site> site(new Site(std::move(spec), std::move(parts), seed));
  if (auto fits = site->plan_.configure(site->spec_.site.scis); !fits) return fits.error();
  for (size_t i = 0; i < site->spec_.scis.size(); ++i) site->spec_index_[site->spec_.scis[i].csci_id] = i;
  site->begin_by_ = now + kStartPatience;
  site->link_ = std::make_unique<DataPlaneLink>(site->spec_.site.control_socket, site->plan_, epoll, now);
  return site;
}

void Site::turn(Time now) {
  now_ = now.monotonic;
  const DataPlaneLink::Turn news = link_->poll(now.monotonic);
  if (!begun_ && (news.connected || news.lost || now.monotonic >= begin_by_)) {
    begin_all(now);
  } else if (begun_ && news.connected) {
    begin_ignorant_again(now);
  }
  if (begun_) follow(news, now);
  for (int n = 0; n < kTicksMax && !due_.empty() && due_.begin()->first <= now.monotonic; ++n) {
    tell(std::string(due_.begin()->second), Tick{}, now);
  }
  link_->flush(now.monotonic);
}

Nanoseconds Site::next_due() const {
  const Nanoseconds scis = due_.empty() ? (begun_ ? kNever : begin_by_) : due_.begin()->first;
  return std::min(link_->next_due(), scis);
}

void Site::begin_all(Time now) {
  begun_ = true;
  std::vector<size_t> all(spec_.scis.size());
  std::iota(all.begin(), all.end(), size_t{0});
  begin(all, now);
}

void Site::begin(const std::vector<size_t>& which, Time now) {
  if (which.empty()) return;
  const uint64_t epoch = epochs_.next(now.unix_ms);
  for (const size_t i : which) {
    const SciSpec& spec = spec_.scis[i];
    const auto known =
        link_->running() ? known_of(*link_->running(), spec_.site.scis[i], now.monotonic) : std::vector<Sci::Known>{};
    const uint64_t seed = seed_of(seed_, spec.csci_id);
    scis_.erase(spec.csci_id);
    scis_.try_emplace(spec.csci_id, spec, seed, epoch, known, now.monotonic);
    if (parts_.begun) parts_.begun(spec, seed, epoch, known, now);
    spdlog::info("msg=\"SCI begins\" csci_id={:?} instances={} known={} epoch={}", spec.csci_id, spec.instances.size(),
                 known.size(), epoch);
    tell(spec.csci_id, lost_ ? Event(DataPlaneLost{lost_why_}) : Event(Tick{}), now);
  }
}

void Site::begin_ignorant_again(Time now) {
  std::vector<size_t> which;
  for (size_t i = 0; link_->running() && i < spec_.scis.size(); ++i) {
    const auto known = known_of(*link_->running(), spec_.site.scis[i], now.monotonic);
    if (!known.empty() && knows_nothing(scis_.at(spec_.scis[i].csci_id), spec_.scis[i])) which.push_back(i);
  }
  begin(which, now);
}

void Site::follow(const DataPlaneLink::Turn& news, Time now) {
  const auto tell_all = [&](const Event& event) {
    for (const SciSpec& spec : spec_.scis) tell(spec.csci_id, event, now);
  };
  if (news.lost) {
    lost_ = true;
    lost_why_ = *news.lost;
    tell_all(DataPlaneLost{lost_why_});
  }
  if (news.back) {
    lost_ = false;
    tell_all(DataPlaneBack{});
  }
  for (const auto& [csci_id, sample] : news.ledger) {
    if (scis_.count(csci_id) > 0) tell(csci_id, sample, now);
  }
}

void Site::tell(const std::string& csci_id, const Event& event, Time now) {
  now_ = now.monotonic;
  const std::vector<Action> actions = scis_.at(csci_id).handle(event, now);
  if (parts_.handled) parts_.handled(csci_id, event, actions, now);
  for (const Action& action : actions) {
    std::visit([&](const auto& a) { perform(csci_id, a); }, action);
  }
  plan_next(csci_id);
}

void Site::plan_next(const std::string& csci_id) {
  const Nanoseconds due = scis_.at(csci_id).next_due();
  const auto [found, is_new] = due_of_.try_emplace(csci_id, due);
  if (!is_new) due_.erase({found->second, csci_id});
  found->second = due;
  due_.emplace(due, csci_id);
}

void Site::perform(const std::string& csci_id, const ProbeRequest& r) {
  Prober::Question question;
  question.url = r.url;
  question.address = r.address;
  question.port = r.port;
  question.keep_body = false;
  ask({csci_id, r.id, false, r.kind, r.serial}, std::move(question), r.deadline);
}

void Site::perform(const std::string& csci_id, const ScrapeRequest& r) {
  Prober::Question question;
  question.url = r.url;
  ask({csci_id, r.id, true, CheckKind{}, r.serial}, std::move(question), r.deadline);
}

void Site::ask(Asked asked, Prober::Question question, Nanoseconds deadline) {
  if (!parts_.ask) return;
  question.ticket = ++tickets_;
  question.timeout = deadline > now_ ? deadline - now_ : 0;
  asked_[question.ticket] = std::move(asked);
  parts_.ask(question);
}

void Site::answer(const Prober::Answer& answer, Time now) {
  const auto found = asked_.find(answer.ticket);
  if (found == asked_.end()) return;
  const Asked asked = std::move(found->second);
  asked_.erase(found);
  const auto sci = scis_.find(asked.csci_id);
  if (sci == scis_.end() || sci->second.monitor(asked.id) == nullptr) return;  // went meanwhile
  const bool ok = answer.verdict == Prober::Verdict::kOk;
  if (!asked.scrape) {
    const Outcome failure = answer.verdict == Prober::Verdict::kFailed ? Outcome::kFail : Outcome::kError;
    tell(asked.csci_id,
         CheckResult{asked.id, asked.kind, asked.serial, ok ? Outcome::kPass : failure, answer.took, answer.detail,
                     answer.silent},
         now);
    return;
  }
  ScrapeResult result{.id = asked.id, .serial = asked.serial, .ok = false, .samples = {}};
  auto series = ok ? parse_exposition(answer.body) : Result<std::vector<Series>>(Error{answer.detail});
  if (series && parts_.samples) {
    result.ok = true;
    result.samples = parts_.samples(*spec_of(asked.csci_id), asked.id, *series);
  }
  tell(asked.csci_id, result, now);
}

void Site::perform(const std::string& csci_id, const TableChanged& change) { plan_.apply(csci_id, change); }

void Site::perform(const std::string& csci_id, const Transition& t) {
  const HealthChange& c = t.change;
  spdlog::log(serves(c.to) ? spdlog::level::info : spdlog::level::warn,
              "msg=\"health changed\" csci_id={:?} instance={:?} from={} to={} lasted_ms={} cause={:?} detail={:?}",
              csci_id, t.id, name_of(c.from), name_of(c.to), c.lasted / kMillisecond, words_of(c.cause),
              c.cause.detail);
}

void Site::perform(const std::string& csci_id, const ReportReady& ready) {
  const Report& r = ready.report;
  spdlog::info("msg=\"report\" csci_id={:?} trigger={} epoch={} sequence={} gas={} full={}", csci_id,
               name_of(r.trigger), r.epoch, r.sequence, r.state.gas ? std::to_string(r.state.gas->value) : "-", r.full);
  if (parts_.report) parts_.report(r);
}

const SciSpec* Site::spec_of(const std::string& csci_id) const { return &spec_.scis[spec_index_.at(csci_id)]; }

void Site::drop(const std::string& csci_id, Time now) {
  if (scis_.count(csci_id) == 0) return;
  tell(csci_id, Stop{}, now);
  due_.erase({due_of_.at(csci_id), csci_id});
  due_of_.erase(csci_id);
  scis_.erase(csci_id);
}

Result<std::vector<std::string>> Site::reload(SiteSpec next, Time now) {
  const std::vector<std::string> fixed = needs_restart(spec_, next);
  if (!fixed.empty()) return Error{fmt::format("a restart is needed to change {}", fmt::join(fixed, ", "))};
  if (auto fits = plan_.configure(next.site.scis); !fits) return fits.error();
  std::vector<std::string> changes = differences(spec_, next);
  const SiteSpec before = std::exchange(spec_, std::move(next));
  const auto index_before = std::exchange(spec_index_, {});
  for (size_t i = 0; i < spec_.scis.size(); ++i) spec_index_[spec_.scis[i].csci_id] = i;
  if (!begun_) return changes;
  for (const SciSpec& old : before.scis) {
    if (spec_index_.count(old.csci_id) == 0) drop(old.csci_id, now);
  }
  std::vector<size_t> added;
  for (size_t i = 0; i < spec_.scis.size(); ++i) {
    const SciSpec& spec = spec_.scis[i];
    const auto old = index_before.find(spec.csci_id);
    if (old == index_before.end()) {
      added.push_back(i);
    } else if (before.scis[old->second] != spec) {
      tell(spec.csci_id, ConfigChanged{spec}, now);
    }
  }
  begin(added, now);
  link_->flush(now.monotonic);
  return changes;
}

void Site::stop(Time now) {
  for (const SciSpec& spec : spec_.scis) {
    if (scis_.count(spec.csci_id) > 0) tell(spec.csci_id, Stop{}, now);
  }
}

}  // namespace margay::control
