// SPDX-License-Identifier: Apache-2.0
#include "control/http/agent_metrics.h"

#include "control/http/family.h"

namespace margay::control {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr northbound::SourceState kSourceStates[] = {northbound::SourceState::kActive,
                                                     northbound::SourceState::kHealthy, northbound::SourceState::kStale,
                                                     northbound::SourceState::kFailed};

void collect_reports(const Agent& agent, std::vector<MetricFamily>& out) {
  Family sources("margay_c_sma_sources", "SCIs in the Metric Cache, by source state", MetricType::Gauge);
  Family reports("margay_c_sma_reports_total", "Reports, by verdict", MetricType::Counter);
  Family reasons("margay_c_sma_report_reasons_total",
                 "Reports that were not accepted as they are, by the reason's name", MetricType::Counter);
  Family quarantine("margay_c_sma_quarantined", "Reports that wait for a second one or an operator", MetricType::Gauge);
  for (const auto state : kSourceStates) {
    sources.add({{"state", lower(northbound::name_of(state))}}, uint64_t{agent.core().metric_cache().count(state)});
  }
  for (size_t v = 0; v < c_sma::kVerdicts; ++v) {
    reports.add({{"verdict", lower(c_sma::name_of(static_cast<c_sma::Verdict>(v)))}}, agent.verdicts().verdicts[v]);
  }
  for (const auto& [reason, count] : agent.verdicts().reasons) reasons.add({{"reason", lower(reason)}}, count);
  quarantine.add({}, uint64_t{agent.core().quarantine().size()});
  for (Family* family : {&sources, &reports, &reasons, &quarantine}) family->move_to(out);
}

void collect_rows(const Agent& agent, std::vector<MetricFamily>& out) {
  Family gas("margay_site_gas", "Global Available Slots of a service, as advertised", MetricType::Gauge);
  Family rows("margay_c_sma_rows", "Rows that are advertised, by CS-ID", MetricType::Gauge);
  Family commits("margay_c_sma_commits_total", "Changes of rows", MetricType::Counter);
  for (const auto& [cs_id, part] : agent.store().parts()) {
    rows.add({{"cs_id", cs_id}}, uint64_t{part.rows});
    const auto site = part.entries.find(std::nullopt);
    if (site == part.entries.end() || !site->second.row || !site->second.row->metrics.gas) continue;
    gas.add({{"cs_id", cs_id}}, uint64_t{*site->second.row->metrics.gas});
  }
  commits.add({{"kind", "critical"}}, agent.verdicts().critical);
  commits.add({{"kind", "routine"}}, agent.verdicts().commits - agent.verdicts().critical);
  for (Family* family : {&gas, &rows, &commits}) family->move_to(out);
}

void collect_peers(const Agent& agent, std::vector<MetricFamily>& out) {
  Family up("margay_c_ps_in_step", "1 while the C-PS has acked all that it was sent", MetricType::Gauge);
  Family connections("margay_c_ps_connections_total", "Connections to the C-PS", MetricType::Counter);
  Family messages("margay_c_ps_messages_total", "Messages, by direction", MetricType::Counter);
  Family faults("margay_c_ps_faults_total", "Messages of the C-PS that were refused, by reason", MetricType::Counter);
  for (const auto& link : agent.links()) {
    const std::string& c_ps = link->target().identity;
    up.add({{"c_ps", c_ps}}, uint64_t{link->session().all_acked()});
    connections.add({{"c_ps", c_ps}}, link->status().connections);
    messages.add({{"c_ps", c_ps}, {"direction", "sent"}}, link->status().sent);
    messages.add({{"c_ps", c_ps}, {"direction", "received"}}, link->status().received);
    for (size_t f = 0; f < northbound::kFaults; ++f) {
      const auto fault = static_cast<northbound::Fault>(f);
      const uint64_t count = link->session().peer().faults.of(fault);
      if (count > 0) faults.add({{"c_ps", c_ps}, {"reason", std::string(northbound::name_of(fault))}}, count);
    }
  }
  for (Family* family : {&up, &connections, &messages, &faults}) family->move_to(out);
}

void collect_pulls(const Puller& puller, std::vector<MetricFamily>& out) {
  Family pulls("margay_c_sma_pulls_total", "Questions to SCIs for their reports, by what came of them",
               MetricType::Counter);
  Family failing("margay_c_sma_pulls_failing", "SCIs whose last question failed", MetricType::Gauge);
  uint64_t failing_now = 0;
  for (const auto& [csci_id, pull] : puller.plan().pulls()) failing_now += !pull.fault.empty();
  pulls.add({{"result", "answered"}}, puller.plan().totals().answered);
  pulls.add({{"result", "failed"}}, puller.plan().totals().failed);
  failing.add({}, failing_now);
  for (Family* family : {&pulls, &failing}) family->move_to(out);
}

void collect_port(const CollectionPort& port, std::vector<MetricFamily>& out) {
  Family connections("margay_collection_connections", "Connections of SCIs", MetricType::Gauge);
  Family streams("margay_collection_streams", "Streams of SCIs", MetricType::Gauge);
  Family refused("margay_collection_refused_total", "Peers turned away by their certificate, by reason",
                 MetricType::Counter);
  const rpc::Counters counters = port.counters();
  connections.add({}, counters.connections);
  streams.add({}, counters.streams);
  for (size_t r = 0; r < security::kRefusals; ++r) {
    refused.add({{"reason", std::string(security::name_of(static_cast<security::Refusal>(r)))}}, counters.refused[r]);
  }
  for (Family* family : {&connections, &streams, &refused}) family->move_to(out);
}

}  // namespace

void collect_agent(const Agent& agent, std::vector<MetricFamily>& out) {
  collect_reports(agent, out);
  collect_rows(agent, out);
  collect_peers(agent, out);
  if (agent.port() != nullptr) collect_port(*agent.port(), out);
  if (agent.puller() != nullptr) collect_pulls(*agent.puller(), out);
  const AuditLog::Status audit = agent.audit_status();
  Family lines("margay_audit_lines_total", "Lines of the audit log, those of processes before too",
               MetricType::Counter);
  Family unsaid("margay_audit_unsaid_total", "Entries that could not be written", MetricType::Counter);
  lines.add({}, audit.lines);
  unsaid.add({}, audit.unsaid);
  for (Family* family : {&lines, &unsaid}) family->move_to(out);
}

}  // namespace margay::control
