// SPDX-License-Identifier: Apache-2.0
#include "control/service.h"

#include <time.h>

#include <random>
#include <utility>

#include <spdlog/spdlog.h>

#include "common/monotonic.h"
#include "control/record/wire.h"

namespace margay::control {
namespace {

int64_t unix_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Time read_clocks() { return {.monotonic = monotonic_now(), .unix_ms = unix_milliseconds()}; }

Site::Parts Service::parts() {
  Site::Parts parts;
  parts.ask = [this](const Prober::Question& question) { questions_.push_back(question); };
  parts.report = [this](const Report& report) { lines_.write(json_line(report)); };
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

void Service::handled(const std::string& csci_id, const Event& event, const std::vector<Action>& actions, Time at) {
  statistics_.handled(csci_id, event, actions, site_->scis().at(csci_id).next_due(), at.monotonic);
  if (!recorder_.on()) return;
  recorder_.event(csci_id, event, at);
  for (const Action& action : actions) recorder_.action(csci_id, action, at);
  if (!recorder_.on()) spdlog::error("msg=\"recording ended\" why={:?}", recorder_.fault());
}

SiteNumbers Service::numbers() const {
  const DataPlaneLink::Status& link = site_->link().status();
  return {.data_plane_connected = link.connected,
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
  }
  std::random_device random;
  const uint64_t seed = uint64_t{random()} << 32 | random();
  auto site = Site::make(std::move(spec), service->parts(), seed, epoll, read_clocks().monotonic);
  if (!site) return site.error();
  service->site_ = std::move(*site);
  return service;
}

void Service::turn() {
  lines_.flush();
  site_->turn(read_clocks());
  for (const Prober::Question& question : std::exchange(questions_, {})) prober_.ask(question);
}

void Service::answer(const std::vector<Prober::Answer>& answers) {
  const Time now = read_clocks();
  for (const Prober::Answer& a : answers) site_->answer(a, now);
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
  auto changes = site_->reload(std::move(*next), read_clocks());
  if (changes) {
    lines_.take_place(std::move(lines));
    statistics_.keep(site_->spec().scis);
  }
  return changes;
}

void Service::finish() {
  site_->stop(read_clocks());
  lines_.flush();
}

}  // namespace margay::control
