// SPDX-License-Identifier: Apache-2.0
#include "control/record/replay.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/line_file.h"
#include "control/record/wire_values.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {
namespace {

// "12.5s"
std::string text_of(Nanoseconds time) {
  google::protobuf::Duration duration;
  control::put(time, duration);
  const std::string json = json_line(duration);
  return json.substr(1, json.size() - 2);
}

Result<v1::Record> parse(std::string_view json) {
  v1::Record record;
  const auto status = google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &record);
  if (status.ok()) return record;
  const std::string_view message(status.message().data(), status.message().size());
  return Error{std::string(message.substr(0, message.find('\n')))};
}

std::optional<Outcome> take_outcome(WireReader& reader, v1::Outcome outcome) {
  if (outcome == v1::OUTCOME_UNSPECIFIED) return std::nullopt;
  return reader.enumerated("outcome", outcome, Outcome::kError);
}

}  // namespace

Nanoseconds Replay::Machine::next_due() const {
  if (ticks_recorded) return kNever;
  return std::min(sci.next_due(), coming.empty() ? kNever : coming.begin()->first);
}

Replay::Replay(std::vector<SciSpec> site, Sink sink) : site_(std::move(site)), sink_(std::move(sink)) {}

Time Replay::now() const { return {now_, wall_less_monotonic_ms_ + static_cast<int64_t>(now_ / kMillisecond)}; }

const SciSpec* Replay::site_spec(const std::string& csci_id) const {
  const auto found = std::find_if(site_.begin(), site_.end(), [&](const SciSpec& s) { return s.csci_id == csci_id; });
  return found == site_.end() ? nullptr : &*found;
}

Result<void> Replay::line(std::string_view json) {
  const auto record = parse(json);
  if (!record) return record.error();
  ++counts_.records;
  const auto at = time_of(*record);
  if (!at) return at.error();

  if (record->has_start()) return start(*record, *at);
  if (at->monotonic < now_) return Error{"time goes back, from " + text_of(now_) + " to " + text_of(at->monotonic)};
  run_until(at->monotonic);
  now_ = at->monotonic;
  if (record->has_wall()) wall_less_monotonic_ms_ += at->unix_ms - now().unix_ms;

  const auto machine = machines_.find(record->csci_id());
  if (machine == machines_.end()) return Error{"`" + record->csci_id() + "` has no start before this"};
  if (record->has_answers()) return answer_from_now_on(*record, machine->second);
  if (!holds_event(*record)) return {};
  Event event;
  if (const auto read = event_of(*record, event); !read) return read;
  handle(machine->first, machine->second, event);
  return {};
}

// Of a control plane that began anew nothing goes on; the machine may have been started anew too, and its clock.
Result<void> Replay::start(const v1::Record& record, Time at) {
  const auto beginning = beginning_of(record.start(), site_spec(record.csci_id()));
  if (!beginning) return beginning.error();
  if (beginning->config.csci_id != record.csci_id()) {
    return Error{"start of `" + record.csci_id() + "` with the config of `" + beginning->config.csci_id + "`"};
  }
  if (at.monotonic < now_) machines_.clear();
  run_until(at.monotonic);
  now_ = at.monotonic;
  if (record.has_wall()) wall_less_monotonic_ms_ += at.unix_ms - now().unix_ms;
  machines_.insert_or_assign(record.csci_id(), Machine(*beginning, now_, record.start().ticks_recorded()));
  return {};
}

Result<void> Replay::answer_from_now_on(const v1::Record& record, Machine& machine) {
  const v1::Answers& answers = record.answers();
  WireReader reader;
  Answering& now_on = machine.answering[answers.si_id()];
  now_on = {.liveness = take_outcome(reader, answers.liveness()),
            .readiness = take_outcome(reader, answers.readiness()),
            .latency = reader.duration("latency", answers.latency()),
            .detail = answers.detail(),
            .samples = {}};
  for (const v1::Sample& sample : answers.samples()) now_on.samples.push_back(take_sample(reader, sample));
  if (!reader.fault().empty()) return Error{reader.fault()};
  return {};
}

// All that is due up to and including `end`; of equal times, by CSCI-ID.
void Replay::run_until(Nanoseconds end) {
  for (;;) {
    const auto next = std::min_element(machines_.begin(), machines_.end(), [](const auto& a, const auto& b) {
      return a.second.next_due() < b.second.next_due();
    });
    if (next == machines_.end() || next->second.next_due() > end) return;
    Machine& machine = next->second;
    now_ = std::max(now_, machine.next_due());
    Event event = Tick{};
    if (!machine.coming.empty() && machine.coming.begin()->first <= now_) {
      event = std::move(machine.coming.begin()->second);
      machine.coming.erase(machine.coming.begin());
    }
    handle(next->first, machine, event);
  }
}

void Replay::handle(const std::string& csci_id, Machine& machine, const Event& event) {
  ++counts_.events;
  for (const Action& action : machine.sci.handle(event, now())) {
    ++counts_.actions;
    v1::Record record;
    record.set_csci_id(csci_id);
    to_wire(action, now(), record);
    sink_(json_line(record));
    if (!machine.ticks_recorded) answer(machine, action);
  }
}

// As the prober does: what takes longer than its time limit has failed at it.
void Replay::answer(Machine& machine, const Action& action) {
  if (const auto* probe = std::get_if<ProbeRequest>(&action)) {
    const auto found = machine.answering.find(probe->id);
    if (found == machine.answering.end()) return;
    const Answering& a = found->second;
    std::optional<Outcome> outcome = probe->kind == CheckKind::kLiveness ? a.liveness : a.readiness;
    if (!outcome) return;
    const bool late = now_ + a.latency > probe->deadline;
    CheckResult result{.id = probe->id,
                       .kind = probe->kind,
                       .serial = probe->serial,
                       .outcome = *outcome,
                       .latency = a.latency,
                       .detail = a.detail,
                       .silent = late};
    if (late) result.outcome = Outcome::kFail;
    if (late) result.detail = "no answer within the time limit";
    machine.coming.emplace(late ? probe->deadline : now_ + a.latency, std::move(result));
  } else if (const auto* scrape = std::get_if<ScrapeRequest>(&action)) {
    const auto found = machine.answering.find(scrape->id);
    if (found == machine.answering.end()) return;
    const Answering& a = found->second;
    const bool ok = !a.samples.empty() && now_ + a.latency <= scrape->deadline;
    machine.coming.emplace(std::min(now_ + a.latency, scrape->deadline),
                           ScrapeResult{scrape->id, scrape->serial, ok, ok ? a.samples : std::vector<Sample>{}});
  }
}

Result<Replay::Counts> replay_file(const std::string& in, const std::string& out, std::vector<SciSpec> site) {
  std::ifstream from(in);
  if (!from) return Error{in + ": " + std::strerror(errno)};
  std::error_code none;
  if (std::filesystem::equivalent(in, out, none)) return Error{out + ": is the input"};
  std::ofstream to(out, std::ios::trunc);
  if (!to) return Error{out + ": " + std::strerror(errno)};

  Replay replay(std::move(site), [&to](std::string_view line) { to << line << '\n'; });
  if (auto done = read_lines(from, in, [&](std::string_view line) { return replay.line(line); }); !done) {
    return done.error();
  }
  if (!to.flush()) return Error{out + ": " + std::strerror(errno)};
  return replay.counts();
}

}  // namespace margay::control
