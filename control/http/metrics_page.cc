// SPDX-License-Identifier: Apache-2.0
#include "control/http/metrics_page.h"

#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>

#include "control/http/family.h"

namespace margay::control {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr HealthState kStates[] = {HealthState::kHealthy, HealthState::kDegraded, HealthState::kUnhealthy,
                                   HealthState::kUnknown};

void collect_scis(const std::map<std::string, Sci>& scis, std::vector<MetricFamily>& out) {
  Family gas("margay_sci_gas", "Global Available Slots", MetricType::Gauge);
  Family time("margay_sci_computing_time_seconds", "Computing Time", MetricType::Gauge);
  Family counts("margay_sci_instances", "Instances by health", MetricType::Gauge);
  Family health("margay_instance_health", "1 for the health that the instance has", MetricType::Gauge);
  Family active("margay_instance_active_sessions", "Slots held", MetricType::Gauge);
  Family limit("margay_instance_session_limit", "Sessions that it may hold before it takes no new one",
               MetricType::Gauge);
  Family enabled("margay_instance_enabled", "0 while it is drained or disabled", MetricType::Gauge);
  for (const auto& [id, sci] : scis) {
    const SciState state = sci.state();
    const HealthSummary& h = state.health;
    if (state.gas) gas.add({{"csci_id", id}}, uint64_t{state.gas->value});
    if (state.computing_time.value) time.add({{"csci_id", id}}, *state.computing_time.value / 1000.0);
    const uint32_t by_state[] = {h.healthy, h.degraded, h.unhealthy - h.unknown, h.unknown};
    for (const HealthState s : kStates) {
      counts.add({{"csci_id", id}, {"health", lower(name_of(s))}}, uint64_t{by_state[static_cast<size_t>(s)]});
    }
    for (const InstanceDetail& i : state.instances) {
      const Labels labels = {{"csci_id", id}, {"si_id", i.id}};
      for (const HealthState s : kStates) {
        health.add({{"csci_id", id}, {"si_id", i.id}, {"health", lower(name_of(s))}}, uint64_t{i.health == s});
      }
      active.add(labels, uint64_t{i.active});
      limit.add(labels, uint64_t{i.limit});
      enabled.add(labels, uint64_t{i.admin == Admin::kEnabled});
    }
  }
  for (Family* family : {&gas, &time, &counts, &health, &active, &limit, &enabled}) family->move_to(out);
}

void add_check(const Labels& labels, const CheckCounts& counted, Family& checks, Family& latency) {
  static constexpr const char* kOutcomes[] = {"pass", "fail", "error"};
  latency.add(labels, counted.latency);
  for (size_t o = 0; o < counted.outcomes.size(); ++o) {
    Labels with_outcome = labels;
    with_outcome.push_back({"outcome", kOutcomes[o]});
    checks.add(std::move(with_outcome), counted.outcomes[o]);
  }
}

void collect_statistics(const Statistics& statistics, std::vector<MetricFamily>& out) {
  Family transitions("margay_instance_transitions_total", "Changes of health, by what it went to", MetricType::Counter);
  Family reports("margay_sci_reports_total", "Reports, by their trigger", MetricType::Counter);
  Family checks("margay_checks_total", "Answered probes, by outcome", MetricType::Counter);
  Family latency("margay_check_latency_seconds", "How long probes took that passed", MetricType::Summary);
  Family scrapes("margay_scrapes_total", "Scrapes of instances, by outcome", MetricType::Counter);
  for (const auto& [csci_id, sci] : statistics.scis()) {
    for (size_t t = 0; t < kTriggers; ++t) {
      reports.add({{"csci_id", csci_id}, {"trigger", lower(name_of(static_cast<Trigger>(t)))}}, sci.reports[t]);
    }
    for (const auto& [si_id, instance] : sci.instances) {
      const auto labels = [&csci_id = csci_id, &si_id = si_id](const char* key, const std::string& value) {
        return Labels{{"csci_id", csci_id}, {"si_id", si_id}, {key, value}};
      };
      for (const HealthState s : kStates) {
        transitions.add(labels("to", lower(name_of(s))), instance.entered[static_cast<size_t>(s)]);
      }
      scrapes.add(labels("outcome", "pass"), instance.scrapes_passed);
      scrapes.add(labels("outcome", "fail"), instance.scrapes_failed);
      for (size_t k = 0; k < instance.checks.size(); ++k) {
        const Labels check = labels("check", std::string(name_of(static_cast<CheckKind>(k))));
        if (instance.checks[k]) add_check(check, *instance.checks[k], checks, latency);
      }
    }
  }
  Family slip("margay_work_slip_seconds", "How late what was due began", MetricType::Summary);
  slip.add({}, statistics.slip());
  for (Family* family : {&transitions, &reports, &checks, &latency, &scrapes, &slip}) family->move_to(out);
}

void collect_traffic(const TrafficNumbers& traffic, std::vector<MetricFamily>& out) {
  Family packets("margay_data_plane_packets_total", "Packets that workers took", MetricType::Counter);
  Family drops("margay_data_plane_drops_total", "Packets dropped, by reason", MetricType::Counter);
  Family refused("margay_data_plane_refused_total", "Clients' packets answered with a reset or an ICMP error, by cause",
                 MetricType::Counter);
  packets.add({}, traffic.packets);
  for (size_t r = 1; r < kDropReasons; ++r) {
    drops.add({{"reason", std::string(kDropReasonTexts[r].name)}}, traffic.drops[r]);
  }
  for (size_t r = 1; r < kRefusals; ++r) {
    refused.add({{"cause", std::string(kRefusalTexts[r].name)}}, traffic.refused[r]);
  }
  for (Family* family : {&packets, &drops, &refused}) family->move_to(out);
}

void collect_site(const SiteNumbers& site, std::vector<MetricFamily>& out) {
  const auto one = [&out](const char* name, const char* help, MetricType type, uint64_t value) {
    Family family(name, help, type);
    family.add({}, value);
    family.move_to(out);
  };
  one("margay_report_lines_total", "Reports written as JSON lines", MetricType::Counter, site.report_lines);
  one("margay_report_lines_lost_total", "Reports that could not be written", MetricType::Counter,
      site.report_lines_lost);
  if (!site.has_data_plane) return;
  one("margay_data_plane_connected", "1 while its socket is open", MetricType::Gauge, site.data_plane_connected);
  one("margay_data_plane_up", "1 while it is there and its workers make progress", MetricType::Gauge,
      site.data_plane_alive);
  one("margay_data_plane_connections_total", "Connections to it", MetricType::Counter, site.connections);
  one("margay_table_generation", "The last one given to a snapshot", MetricType::Gauge, site.generation);
  one("margay_table_acked_generation", "The last one that every worker has passed", MetricType::Gauge, site.acked);
  one("margay_table_taken_total", "Snapshots that the data plane took", MetricType::Counter, site.taken);
  one("margay_table_refused_total", "Snapshots that the data plane refused", MetricType::Counter, site.refused);
}

}  // namespace

std::vector<MetricFamily> collect(const std::map<std::string, Sci>& scis, const Statistics& statistics,
                                  const SiteNumbers& site) {
  std::vector<MetricFamily> families;
  collect_scis(scis, families);
  collect_statistics(statistics, families);
  collect_site(site, families);
  if (site.traffic) collect_traffic(*site.traffic, families);
  return families;
}

TrafficNumbers traffic_of(std::span<const WorkerCounters> workers) {
  TrafficNumbers sum;
  for (const WorkerCounters& w : workers) {
    sum.packets += w.packets.get();
    for (size_t r = 0; r < kDropReasons; ++r) sum.drops[r] += w.drops[r].get();
    for (size_t r = 0; r < kRefusals; ++r) sum.refused[r] += w.refused[r].get();
  }
  return sum;
}

std::string text_of(const std::vector<MetricFamily>& families) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace margay::control
