// SPDX-License-Identifier: Apache-2.0
#include "control/service.h"

#include <time.h>

#include <random>

#include <spdlog/spdlog.h>

#include "control/record/wire.h"

namespace margay::control {
namespace {

int64_t nanoseconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * static_cast<int64_t>(kSecond) + now.tv_nsec;
}

}  // namespace

Time read_clocks() {
  return {.monotonic = static_cast<Nanoseconds>(nanoseconds_of(CLOCK_MONOTONIC)),
          .unix_ms = nanoseconds_of(CLOCK_REALTIME) / static_cast<int64_t>(kMillisecond)};
}

Result<std::unique_ptr<Service>> Service::make(SiteSpec spec, int epoll) {
  std::unique_ptr<Service> service(new Service);
  if (auto opened = service->lines_.open(spec.reports); !opened) return opened.error();
  Site::Parts parts;
  parts.ask = [raw = service.get()](const Prober::Question& question) { raw->prober_.ask(question); };
  parts.report = [raw = service.get()](const Report& report) { raw->lines_.write(json_line(report)); };
  std::random_device random;
  const uint64_t seed = uint64_t{random()} << 32 | random();
  auto site = Site::make(std::move(spec), std::move(parts), seed, epoll, read_clocks().monotonic);
  if (!site) return site.error();
  service->site_ = std::move(*site);
  return service;
}

void Service::turn() {
  lines_.flush();
  site_->turn(read_clocks());
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
  if (changes) lines_.take_place(std::move(lines));
  return changes;
}

void Service::finish() {
  site_->stop(read_clocks());
  lines_.flush();
}

}  // namespace margay::control
