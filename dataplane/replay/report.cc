// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/report.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

namespace margay::dp {
namespace {

using Json = nlohmann::ordered_json;

struct NamedCounter {
  const char* name;
  Counter WorkerCounters::*counter;
};

constexpr NamedCounter kWorkerCounters[] = {
    {"packets", &WorkerCounters::packets},
    {"hits", &WorkerCounters::hits},
    {"misses", &WorkerCounters::misses},
    {"handed_over", &WorkerCounters::handed_over},
    {"taken_over", &WorkerCounters::taken_over},
    {"held", &WorkerCounters::held},
    {"released", &WorkerCounters::released},
    {"consumed", &WorkerCounters::consumed},
    {"transmitted", &WorkerCounters::transmitted},
    {"to_kernel", &WorkerCounters::to_kernel},
    {"from_kernel", &WorkerCounters::from_kernel},
    {"own_frames", &WorkerCounters::own_frames},
    {"evicted", &WorkerCounters::evicted},
    {"flow_insert_failed", &WorkerCounters::flow_insert_failed},
    {"replies_handed_over", &WorkerCounters::replies_handed_over},
    {"timers_fired", &WorkerCounters::timers_fired},
    {"timers_late", &WorkerCounters::timers_late},
    {"audit_passes", &WorkerCounters::audit_passes},
    {"audit_differences", &WorkerCounters::audit_differences},
    {"polls", &WorkerCounters::polls},
    {"idle_polls", &WorkerCounters::idle_polls},
};

static_assert(offsetof(WorkerCounters, refused) == std::size(kWorkerCounters) * sizeof(Counter), "one is missing");

struct NamedInstanceCounter {
  const char* name;
  Counter InstanceCounters::*counter;
};

constexpr NamedInstanceCounter kInstanceCounters[] = {
    {"packets_in", &InstanceCounters::packets_in},
    {"bytes_in", &InstanceCounters::bytes_in},
    {"packets_out", &InstanceCounters::packets_out},
    {"bytes_out", &InstanceCounters::bytes_out},
    {"active", &InstanceCounters::active},
    {"bindings", &InstanceCounters::bindings},
    {"opened", &InstanceCounters::opened},
    {"provisional", &InstanceCounters::provisional},
    {"syn_unanswered", &InstanceCounters::syn_unanswered},
    {"resets", &InstanceCounters::resets},
};
static_assert(offsetof(InstanceCounters, ended) - offsetof(InstanceCounters, packets_in) ==
                  std::size(kInstanceCounters) * sizeof(Counter),
              "one is missing");

Json drops_of(std::span<const WorkerCounters> workers, uint64_t truncated) {
  Json json = {{"truncated_in_capture", truncated}};
  for (size_t reason = 1; reason < kDropReasons; ++reason) {
    uint64_t n = 0;
    for (const WorkerCounters& w : workers) n += w.drops[reason].get();
    json[std::string(kDropReasonTexts[reason].name)] = n;
  }
  return json;
}

Json refusals(auto count) {
  Json json;
  for (size_t r = 1; r < kRefusals; ++r) json[std::string(kRefusalTexts[r].name)] = count(static_cast<Refusal>(r));
  return json;
}

Json to_json(const Account& a) {
  return {{"input", a.input},   {"forwarded", a.forwarded}, {"answered", a.answered}, {"consumed", a.consumed},
          {"kernel", a.kernel}, {"dropped", a.dropped},     {"held", a.held},         {"difference", a.difference()}};
}

Json to_json(const SlotView& v) {
  return {{"limit", v.limit}, {"pool", v.pool}, {"idle", v.idle}, {"active", v.active}, {"over", v.over}};
}

Json to_json(FastPath& fast_path) {
  const WorkerCounters& counters = fast_path.counters();
  Json json = {{"worker", fast_path.self()}, {"flows", fast_path.flows()}, {"held_now", fast_path.held()}};
  for (const auto& [name, counter] : kWorkerCounters) json[name] = (counters.*counter).get();
  json["refused"] = refusals([&](Refusal r) { return counters.refused[static_cast<size_t>(r)].get(); });
  json["drops"] = drops_of({&counters, 1}, 0);
  json["drops"].erase("truncated_in_capture");
  return json;
}

Json totals_of(const ReportInput& in) {
  uint64_t flows = 0, held = 0, slots = 0, provisional = 0, handed_over = 0;
  for (const auto& fast_path : in.fast_paths) {
    flows += fast_path->flows();
    held += fast_path->held();
    handed_over += fast_path->counters().handed_over.get();
  }
  for (InstanceIndex i = 0; i < in.table.instances.size(); ++i) {
    slots += in.shared.slots.view(i).active;
    provisional += in.shared.provisional.view(i).active;
  }
  return {{"flows", flows},
          {"slots", slots},
          {"provisional_slots", provisional},
          {"held", held},
          {"handed_over", handed_over},
          {"own_frames", in.account.own_frames},
          {"copies_between_workers", in.account.copies},
          {"assumed_answers", in.account.assumed_answers}};
}

// Did another one get the index, of the instance or of its SCI?
bool is_taken(const SiteTable& now, const SiteTable& next, InstanceIndex i) {
  const Instance& instance = now.instances[i];
  return next.instances[i].generation != instance.generation ||
         next.scis[instance.sci].csci_id != now.scis[instance.sci].csci_id;
}

}  // namespace

void NamedCounters::change(const SiteTable& now, const SiteTable& next) {
  take_refusals(now);
  for (InstanceIndex i = 0; i < now.instances.size(); ++i) {
    const Instance& instance = now.instances[i];
    if (instance.si_id.empty() || now.waiting || !is_taken(now, next, i)) continue;
    if (!told_.emplace(i, instance.generation).second) continue;
    earlier_.push_back(to_json(now, i));
    for (const char* ledger : {"slots", "provisional"}) earlier_.back().erase(ledger);  // the next one's already
  }
}

void NamedCounters::take_refusals(const SiteTable& table) {
  for (SciIndex s = 0; s < table.scis.size(); ++s) {
    const std::string& name = table.scis[s].csci_id;
    if (name.empty()) continue;
    auto sum = std::find_if(refused_.begin(), refused_.end(), [&](const auto& r) { return r.first == name; });
    if (sum == refused_.end()) sum = refused_.insert(sum, {name, {}});
    for (size_t r = 1; r < kRefusals; ++r) {
      const uint64_t total = shared_.refused(s, static_cast<Refusal>(r));
      sum->second[r] += total - std::exchange(seen_[s][r], total);
    }
  }
}

Json NamedCounters::refused(const SiteTable& last) {
  take_refusals(last);
  Json json = Json::object();
  for (const auto& [name, counts] : refused_) {
    json[name] = refusals([&counts = counts](Refusal why) { return counts[static_cast<size_t>(why)]; });
  }
  return json;
}

Json NamedCounters::instances(const SiteTable& last) {
  Json json = std::move(earlier_);
  for (InstanceIndex i = 0; i < last.instances.size(); ++i) {
    const Instance& instance = last.instances[i];
    if (!instance.si_id.empty() && told_.count({i, instance.generation}) == 0) json.push_back(to_json(last, i));
  }
  return json;
}

Json NamedCounters::to_json(const SiteTable& table, InstanceIndex index) const {
  const Instance& instance = table.instances[index];
  Json json = {{"sci", table.scis[instance.sci].csci_id}, {"instance", instance.si_id}};
  if (changing_) json.update({{"index", index}, {"generation", instance.generation}});
  const auto total = [&](auto get) {
    uint64_t n = 0;
    for (size_t w = 0; w < shared_.workers; ++w) {
      const InstanceCounters& counters = shared_.counters(static_cast<WorkerIndex>(w), index);
      const uint64_t whose = counters.generation.get();  // may be an earlier one's, still
      if (whose == 0 || whose == instance.generation) n += get(counters);
    }
    return n;
  };
  for (const auto& [name, counter] : kInstanceCounters) {
    json[name] = total([counter = counter](const InstanceCounters& c) { return (c.*counter).get(); });
  }
  Json& ended = json["ended"];
  for (size_t r = 0; r < kEndReasons; ++r) {
    ended[std::string(name_of(static_cast<EndReason>(r)))] =
        total([r](const InstanceCounters& c) { return c.ended[r].get(); });
  }
  json["passed_over"] = refusals([&](Refusal why) {
    return total([why](const InstanceCounters& c) { return c.passed_over[static_cast<size_t>(why)].get(); });
  });
  json["slots"] = margay::dp::to_json(shared_.slots.view(index));
  json["provisional"] = margay::dp::to_json(shared_.provisional.view(index));
  return json;
}

Result<void> write_report(const std::string& file, const ReportInput& in) {
  Json json = {{"site", in.site.site},           {"seed", in.seed},
               {"workers", in.shared.workers},   {"started", format_time(in.started)},
               {"ended", format_time(in.ended)}, {"account", to_json(in.account)},
               {"totals", totals_of(in)},        {"drops", drops_of(in.shared.worker_counters, in.account.truncated)}};
  for (const CaptureReader& r : in.readers) json["stamps_clamped"][in.site.ports[r.port()].name] = r.clamped();
  json["refused"] = in.named.refused(in.table);
  json["instances"] = in.named.instances(in.table);
  json["per_worker"] = Json::array();
  for (const auto& fast_path : in.fast_paths) json["per_worker"].push_back(to_json(*fast_path));
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  out.close();
  if (!out) return Error{file + ": cannot write: " + std::strerror(errno)};
  return {};
}

}  // namespace margay::dp
