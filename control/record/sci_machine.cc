// SPDX-License-Identifier: Apache-2.0
#include "control/record/sci_machine.h"

#include <algorithm>
#include <utility>

#include "control/record/wire_values.h"

namespace margay::control {
namespace {

std::optional<Outcome> take_outcome(WireReader& reader, v1::Outcome outcome) {
  if (outcome == v1::OUTCOME_UNSPECIFIED) return std::nullopt;
  return reader.enumerated("outcome", outcome, Outcome::kError);
}

bool is_sci_action(const v1::Record& record) {
  const auto what = record.what_case();
  return what >= v1::Record::kProbeRequest && what <= v1::Record::kReport;
}

}  // namespace

Nanoseconds SciMachine::next_due() const {
  if (ticks_recorded_) return kNever;
  return std::min(sci_.next_due(), coming_.empty() ? kNever : coming_.begin()->first);
}

void SciMachine::run(Time now) {
  Event event = Tick{};
  if (!coming_.empty() && coming_.begin()->first <= now.monotonic) {
    event = std::move(coming_.begin()->second);
    coming_.erase(coming_.begin());
  }
  handle(event, now);
}

Result<void> SciMachine::take(const v1::Record& record, Time now) {
  if (record.has_answers()) return answer_from_now_on(record.answers());
  if (is_sci_action(record)) return {};
  Event event;
  if (const auto read = event_of(record, event); !read) return read;
  handle(event, now);
  return {};
}

Result<void> SciMachine::answer_from_now_on(const v1::Answers& answers) {
  WireReader reader;
  Answering& now_on = answering_[answers.si_id()];
  now_on = {.liveness = take_outcome(reader, answers.liveness()),
            .readiness = take_outcome(reader, answers.readiness()),
            .latency = reader.duration("latency", answers.latency()),
            .detail = answers.detail(),
            .samples = {}};
  for (const v1::Sample& sample : answers.samples()) now_on.samples.push_back(take_sample(reader, sample));
  if (!reader.fault().empty()) return Error{reader.fault()};
  return {};
}

void SciMachine::handle(const Event& event, Time now) {
  ++tape_.counts.events;
  for (const Action& action : sci_.handle(event, now)) {
    v1::Record record;
    record.set_csci_id(csci_id_);
    to_wire(action, now, record);
    tape_.action(record);
    if (!ticks_recorded_) answer(action, now.monotonic);
  }
}

// As the prober does: what takes longer than its time limit has failed at it.
void SciMachine::answer(const Action& action, Nanoseconds now) {
  if (const auto* probe = std::get_if<ProbeRequest>(&action)) {
    const auto found = answering_.find(probe->id);
    if (found == answering_.end()) return;
    const Answering& a = found->second;
    std::optional<Outcome> outcome = probe->kind == CheckKind::kLiveness ? a.liveness : a.readiness;
    if (!outcome) return;
    const bool late = now + a.latency > probe->deadline;
    CheckResult result{.id = probe->id,
                       .kind = probe->kind,
                       .serial = probe->serial,
                       .outcome = *outcome,
                       .latency = a.latency,
                       .detail = a.detail,
                       .silent = late};
    if (late) result.outcome = Outcome::kFail;
    if (late) result.detail = "no answer within the time limit";
    coming_.emplace(late ? probe->deadline : now + a.latency, std::move(result));
  } else if (const auto* scrape = std::get_if<ScrapeRequest>(&action)) {
    const auto found = answering_.find(scrape->id);
    if (found == answering_.end()) return;
    const Answering& a = found->second;
    const bool ok = !a.samples.empty() && now + a.latency <= scrape->deadline;
    coming_.emplace(std::min(now + a.latency, scrape->deadline),
                    ScrapeResult{scrape->id, scrape->serial, ok, ok ? a.samples : std::vector<Sample>{}});
  }
}

}  // namespace margay::control
