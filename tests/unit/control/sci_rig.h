// SPDX-License-Identifier: Apache-2.0
#pragma once

// A shell for one Sci in simulated time: answers probes and scrapes as it is told, keeps what came out.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/sci/sci.h"

namespace margay::control::test {

struct Behaviour {
  Outcome liveness = Outcome::kPass, readiness = Outcome::kPass;
  Nanoseconds latency = 2 * kMillisecond;
  bool hangs = false;   // probes are never answered
  bool silent = false;  // their failures are time-outs
  bool scrape_ok = true;
  std::vector<Sample> samples;  // of each scrape
};

inline SciSpec two_instances() {
  return {.csci_id = "192.0.2.10:80",
          .cs_id = "ARS",
          .instances = {{.id = "si-1", .address = "10.1.0.11", .port = 8080, .max_sessions = 200},
                        {.id = "si-2", .address = "10.1.0.12", .port = 8080, .max_sessions = 200}}};
}
inline constexpr Nanoseconds kBegin = 1000 * kSecond;

class SciRig {
 public:
  template <class T>
  using Stamped = std::vector<std::pair<Nanoseconds, T>>;

  explicit SciRig(const SciSpec& config = two_instances(), const std::vector<Sci::Known>& known = {})
      : sci(config, 42, 7, known, kBegin) {}

  void handle(const Event& event) {
    std::vector<Event> answers;
    for (const Action& action : sci.handle(event, {now, unix_ms})) keep(action, answers);
    for (const Event& answer : answers) handle(answer);
  }
  void tick() { handle(Tick{}); }

  // Handles all that is due within so much time.
  void run_for(Nanoseconds span) {
    const Nanoseconds end = now + span;
    while (sci.next_due() <= end) {
      now = std::max(now, sci.next_due());
      tick();
    }
    now = end;
    tick();
  }
  // Counters of the data plane: sessions held, by instance.
  void ledger(std::initializer_list<std::pair<std::string, uint32_t>> active) {
    LedgerSample sample;
    for (const auto& [id, n] : active) sample.instances.push_back({id, {.active = n}, responses[id]});
    handle(sample);
  }
  // Long enough for every probe to pass twice; the reports of the start are left out.
  void settle() {
    ledger({});
    run_for(10 * kSecond);
    forget();
  }
  void forget() {
    reports.clear();
    transitions.clear();
    tables.clear();
    probes.clear();
    scrapes.clear();
  }
  HealthState state_of(const std::string& id) const { return sci.monitor(id)->state(); }
  const Report& last() const { return reports.at(reports.size() - 1).second; }
  const HealthChange& last_change() const { return transitions.at(transitions.size() - 1).second.change; }
  size_t count(CheckKind kind) const {
    return static_cast<size_t>(
        std::count_if(probes.begin(), probes.end(), [kind](const auto& p) { return p.second.kind == kind; }));
  }
  const Report* first_with(Trigger trigger) const {
    for (const auto& [at, report] : reports) {
      if (report.trigger == trigger) return &report;
    }
    return nullptr;
  }

  Nanoseconds now = kBegin;
  int64_t unix_ms = 1'700'000'000'000;
  Sci sci;
  std::map<std::string, Behaviour> behaviours;
  std::map<std::string, Histogram> responses;
  Stamped<Report> reports;
  Stamped<Transition> transitions;
  Stamped<TableChanged> tables;
  Stamped<ProbeRequest> probes;
  Stamped<ScrapeRequest> scrapes;

 private:
  void keep(const Action& action, std::vector<Event>& answers) {
    if (const auto* report = std::get_if<ReportReady>(&action)) reports.emplace_back(now, report->report);
    if (const auto* transition = std::get_if<Transition>(&action)) transitions.emplace_back(now, *transition);
    if (const auto* table = std::get_if<TableChanged>(&action)) tables.emplace_back(now, *table);
    if (const auto* probe = std::get_if<ProbeRequest>(&action)) {
      probes.emplace_back(now, *probe);
      const Behaviour& b = behaviours[probe->id];
      const Outcome outcome = probe->kind == CheckKind::kLiveness ? b.liveness : b.readiness;
      if (!b.hangs)
        answers.emplace_back(CheckResult{probe->id, probe->kind, probe->serial, outcome, b.latency, "so",
                                         outcome == Outcome::kFail && b.silent});
    }
    if (const auto* scrape = std::get_if<ScrapeRequest>(&action)) {
      scrapes.emplace_back(now, *scrape);
      const Behaviour& b = behaviours[scrape->id];
      answers.emplace_back(ScrapeResult{scrape->id, scrape->serial, b.scrape_ok, b.samples});
    }
  }
};

}  // namespace margay::control::test
