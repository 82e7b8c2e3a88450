// SPDX-License-Identifier: Apache-2.0
#include "control/service.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

#include "control/record/wire.h"

namespace margay::control {
Site::Parts Service::parts() {
  Site::Parts parts;
  parts.ask = [this](const Prober::Question& question) { questions_.push_back(question); };
  parts.report = [this](const Report& report) { reported(report); };
  parts.samples = [this](const SciSpec& sci, const std::string& si_id, const std::vector<Series>& series) {
    return samples_.make(sci, si_id, series);
  };
  parts.begun = [this](const SciSpec& sci, uint64_t seed, uint64_t epoch, const std::vector<Sci::Known>& known,
                       Time at) {
    statistics_.begun(sci.csci_id);
    recorder_.begin({sci, seed, epoch, known}, at);
  };
  parts.handled = [this](const std::string& csci_id, const Event& event, const std::vector<Action>& actions, Time at) {
    handled(csci_id, event, actions, at);
  };
  return parts;
}

void Service::reported(const Report& report) {
  lines_.write(json_line(report));
  if (agent_) agent_->report(report, now_);
  const bool answered = pull_port_ && pull_port_->report(report);
  if (streams_) streams_->report(report, answered);
}

bool Service::want_report(const std::string& csci_id) {
  const bool here = site_->scis().count(csci_id) > 0;
  if (here) site_->tell(csci_id, Pull{}, now_);
  return here;
}

void Service::pull(const std::string& csci_id, PullPort::Respond respond) {
  now_ = read_clocks();
  pull_port_->ask(csci_id, std::move(respond), now_);
}

void Service::handled(const std::string& csci_id, const Event& event, const std::vector<Action>& actions, Time at) {
  statistics_.handled(csci_id, event, actions, site_->scis().at(csci_id).next_due(), at.monotonic);
  if (!recorder_.on()) return;
  recorder_.event(csci_id, event, at);
  for (const Action& action : actions) recorder_.action(csci_id, action, at);
}

SiteNumbers Service::numbers() const {
  const DataPlaneLink::Status& link = site_->link().status();
  return {.has_data_plane = !site_->spec().site.control_socket.empty(),
          .data_plane_connected = link.connected,
          .data_plane_alive = link.alive,
          .connections = link.connections,
          .generation = site_->plan().generation(),
          .acked = link.acked,
          .taken = link.taken,
          .refused = link.refused,
          .report_lines = lines_.written(),
          .report_lines_lost = lines_.lost(),
          .traffic = link.connected ? std::optional(traffic_of(site_->link().workers())) : std::nullopt};
}

Result<std::unique_ptr<Service>> Service::make(SiteSpec spec, int epoll, const std::string& recording) {
  std::unique_ptr<Service> service(new Service);
  if (auto opened = service->lines_.open(spec.reports); !opened) return opened.error();
  if (!recording.empty()) {
    if (auto opened = service->recorder_.open(recording); !opened) return in("--record", opened.error());
    service->recording_ = true;
  }
  std::random_device random;
  service->seed_ = uint64_t{random()} << 32 | random();
  service->epoll_ = epoll;
  service->now_ = read_clocks();
  auto site = Site::make(std::move(spec), service->parts(), service->seed_, epoll, service->now_.monotonic);
  if (!site) return site.error();
  service->site_ = std::move(*site);
  if (auto joined = service->join(); !joined) return joined.error();
  return service;
}

// The C-SMA here, and those elsewhere.
Result<void> Service::join() {
  const SiteSpec& spec = site_->spec();
  auto streams = ReportStreams::open(spec, seed_, epoll_, now_.monotonic);
  if (!streams) return in(spec.site.file, streams.error());
  streams_ = std::move(*streams);
  if (spec.pulled_by.grpc || spec.pulled_by.http) {
    auto port = PullPort::open(spec.pulled_by, spec.security, epoll_,
                               [this](const std::string& csci_id) { return want_report(csci_id); });
    if (!port) return in(spec.site.file, in("control.pulled_by", port.error()));
    pull_port_ = std::move(*port);
  }
  if (!spec.c_sma) return {};
  auto agent = Agent::make(spec,
                           {.pull = [this](const std::string& csci_id) { want_report(csci_id); },
                            .ask = [this](const Prober::Question& question) { questions_.push_back(question); },
                            .recorder = recorder_},
                           seed_, epoll_, now_);
  if (!agent) return in(spec.site.file, agent.error());
  agent_ = std::move(*agent);
  return {};
}

Nanoseconds Service::next_due() const {
  const Nanoseconds agent = agent_ ? agent_->next_due() : kNever;
  const Nanoseconds port = pull_port_ ? pull_port_->next_due() : kNever;
  return std::min({site_->next_due(), streams_->next_due(), port, agent});
}

void Service::turn() {
  now_ = read_clocks();
  lines_.flush();
  site_->turn(now_);
  streams_->turn(now_, [this](const std::string& csci_id) { want_report(csci_id); });
  if (pull_port_) pull_port_->turn(now_);
  if (agent_) agent_->turn(now_);
  for (const Prober::Question& question : std::exchange(questions_, {})) prober_.ask(question);
  if (std::exchange(recording_, recorder_.on()) && !recorder_.on()) {
    spdlog::error("msg=\"recording ended\" why={:?}", recorder_.fault());
  }
}

void Service::answer(const std::vector<Prober::Answer>& answers) {
  now_ = read_clocks();
  for (const Prober::Answer& a : answers) {
    if (!agent_ || !agent_->answer(a, now_)) site_->answer(a, now_);
  }
}

Result<std::vector<std::string>> Service::reload() {
  auto changes = take_over();
  if (!changes) {
    spdlog::error("msg=\"reload refused, the running configuration stays\" why={:?}", changes.error().message);
    return changes;
  }
  spdlog::info("msg=\"reloaded\" file={:?} changes={}", site_->spec().site.file, changes->size());
  for (const std::string& change : *changes) spdlog::info("msg=\"reload\" change={:?}", change);
  return changes;
}

Result<std::vector<std::string>> Service::take_over() {
  auto next = read_site_file(site_->spec().site.file);
  if (!next) return next.error();
  ReportLines lines;
  if (auto opened = lines.open(next->reports); !opened) return opened.error();
  now_ = read_clocks();
  std::unique_ptr<ReportStreams> streams;
  if (next->reports_to != site_->spec().reports_to) {
    auto opened = ReportStreams::open(*next, seed_, epoll_, now_.monotonic);
    if (!opened) return opened.error();
    streams = std::move(*opened);
  }
  auto links = agent_ ? agent_->prepare(*next, now_) : Result<std::optional<Agent::Links>>(std::nullopt);
  if (!links) return links.error();
  auto changes = site_->reload(std::move(*next), now_);
  if (!changes) return changes;
  if (streams) streams_ = std::move(streams);
  if (agent_) agent_->reload(site_->spec(), std::move(*links), now_);
  lines_.take_place(std::move(lines));
  statistics_.keep(site_->spec().scis);
  return changes;
}

void Service::finish() {
  now_ = read_clocks();
  site_->stop(now_);
  if (pull_port_) pull_port_->stop();
  // The last reports are to arrive: a C-SMA elsewhere learns from them that the SCI ended in order.
  const Nanoseconds give_up = now_.monotonic + kSecond;
  for (; !streams_->settled() && now_.monotonic < give_up; now_ = read_clocks()) {
    streams_->turn(now_, [](const std::string&) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (agent_) agent_->stop(now_);
  lines_.flush();
}

}  // namespace margay::control
