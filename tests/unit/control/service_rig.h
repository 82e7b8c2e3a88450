// SPDX-License-Identifier: Apache-2.0
#pragma once

// A whole control plane without its loop, on its own clocks, over a data plane and instances that the test plays. Site:
// SCI 192.0.2.10:80 with si-1 and si-2, SCI 192.0.2.20:80 with si-3.

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "control/service.h"
#include "control/site_reader.h"
#include "tests/support/fake_data_plane.h"
#include "tests/support/marked_text.h"
#include "tests/support/temp_folder.h"

namespace margay::control {

class ServiceRig {
 public:
  ServiceRig() {
    write(text());
    auto spec = read_site_file(file());
    EXPECT_TRUE(spec) << spec.error().message;
    auto made = Service::make(std::move(*spec), -1, "");
    EXPECT_TRUE(made) << made.error().message;
    service = std::move(*made);
  }

  std::string file() const { return folder_.path() + "/site.yaml"; }
  void write(const std::string& site) const { std::ofstream(file()) << site; }
  std::string text() const {
    return "site: edge-1\nstate_directory: " + folder_.path() + "/state\ndataplane:\n  control: " + plane.path() + R"(
  ports:
    - {name: net0, device: net_null0, addresses: [10.1.0.2/24]}
forwarders:
  - {port: net0, mac: "02:00:00:00:00:01"}
scis:
  - csci_id: 192.0.2.10:80
    cs_id: ARS
    health: {confirm_interval: 10ms, liveness: {interval: 10ms, timeout: 9ms, fall: 2, rise: 2}}
    metrics: {prometheus: "http://{address}/metrics", interval: 500ms, names: {load: work}}
    instances:
      - {id: si-1, address: 10.1.0.11, max_sessions: 100}
      - {id: si-2, address: 10.1.0.12, max_sessions: 50, weight: 3}
  - csci_id: 192.0.2.20:80
    cs_id: WEB
    health: {confirm_interval: 10ms}
    instances:
      - {id: si-3, address: 10.1.0.13, max_sessions: 7}
)";
  }

  // A turn of the loop. Every instance that was asked has answered, in 2 ms, as `answer` says.
  void turn() {
    if (plays && (plane.connected() || plane.accept())) {
      if (!std::exchange(welcomed_, true)) plane.welcome();
      if (beats) plane.beat();
      plane.take();
    }
    service->turn();
    std::vector<Prober::Answer> answers;
    for (size_t n = service->site().asking(); n > 0; --n) {
      answers.push_back(answer);
      answers.back().ticket = ++answered_;
    }
    service->answer(answers);
  }
  void await(const char* what, const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << what;
      turn();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  HealthState health(const std::string& csci_id, const std::string& id) const {
    const auto sci = service->site().scis().find(csci_id);
    return sci == service->site().scis().end() ? HealthState::kUnknown : sci->second.monitor(id)->state();
  }
  // Until all instances are in that health and the data plane, which is alive, knows.
  void await_all(HealthState state) {
    await("all instances", [&] {
      const bool all = health("192.0.2.10:80", "si-1") == state && health("192.0.2.10:80", "si-2") == state &&
                       health("192.0.2.20:80", "si-3") == state;
      return all && service->site().link().status().alive && !service->site().plan().pending() &&
             service->site().link().status().acked == service->site().plan().generation();
    });
  }
  void hold(const std::string& csci_id, const std::string& id, uint32_t worker, uint64_t sessions) {
    for (const auto& i : service->site().plan().scis().at(csci_id).instances) {
      if (i.config.id != id) continue;
      plane.counts(worker, i.index).generation.set(i.generation);
      plane.counts(worker, i.index).active.set(sessions);
    }
  }

  FakeDataPlane plane;
  bool plays = true, beats = true;
  Prober::Answer answer{.ticket = 0,
                        .verdict = Prober::Verdict::kOk,
                        .detail = "",
                        .silent = false,
                        .took = 2 * kMillisecond,
                        .body = "work 7\n"};
  std::unique_ptr<Service> service;

 private:
  test::TempFolder folder_;
  bool welcomed_ = false;
  uint64_t answered_ = 0;
};

}  // namespace margay::control
