// SPDX-License-Identifier: Apache-2.0
#include "control/site_diff.h"

#include <map>
#include <string_view>

namespace margay::control {
namespace {

// Calls `gone` and `come` with those that only one of the two has, `both` with the others.
template <class T, class Name, class Gone, class Come, class Both>
void match(const std::vector<T>& now, const std::vector<T>& next, Name name, Gone gone, Come come, Both both) {
  std::map<std::string_view, size_t> left;
  for (size_t i = 0; i < now.size(); ++i) left[name(now[i])] = i;
  for (size_t i = 0; i < next.size(); ++i) {
    const auto found = left.find(name(next[i]));
    if (found == left.end()) {
      come(name(next[i]));
      continue;
    }
    both(found->second, i);
    left.erase(found);
  }
  for (const auto& [what, i] : left) gone(what);
}

class Differ {
 public:
  std::vector<std::string> run(const SiteSpec& now, const SiteSpec& next) {
    const auto name = [](const SciSpec& s) { return std::string_view(s.csci_id); };
    match(
        now.scis, next.scis, name, [&](auto what) { add(sci(what), "removed"); },
        [&](auto what) { add(sci(what), "added"); },
        [&](size_t i, size_t j) {
          compare_sci(now.scis[i], next.scis[j]);
          const std::string& csci_id = now.scis[i].csci_id;
          const auto to = [&](const SiteSpec& spec) {
            const auto found = spec.reports_to.find(csci_id);
            return found == spec.reports_to.end() ? ReportsTo{} : found->second;
          };
          compare(sci(csci_id) + ".reports_to", to(now) == to(next));
          compare_policy(now.site.scis[i], next.site.scis[j]);
          compare_instances(now.site.scis[i], next.site.scis[j]);
        });
    if (now.c_sma && next.c_sma) compare_c_sma(*now.c_sma, *next.c_sma);
    return std::move(lines_);
  }

 private:
  static std::string sci(std::string_view name) { return "scis[" + std::string(name) + "]"; }
  void add(const std::string& where, const char* what) { lines_.push_back(where + ": " + what); }
  void compare(const std::string& where, bool same) {
    if (!same) add(where, "changed");
  }

  void compare_sci(const SciSpec& a, const SciSpec& b) {
    const std::string at = sci(a.csci_id) + ".";
    compare(at + "health", a.health == b.health);
    compare(at + "metrics", a.metrics == b.metrics);
    compare(at + "computing_time", a.computing_time == b.computing_time);
    compare(at + "report", a.report == b.report);
    compare(at + "safety_margin", a.safety_margin == b.safety_margin);
    compare(at + "price", a.price == b.price);
    compare(at + "reputation", a.reputation == b.reputation);
    compare(at + "security_level", a.security_level == b.security_level);
  }

  void compare_c_sma(const CSmaSpec& a, const CSmaSpec& b) {
    compare("c_sma.accept", a.core.accept == b.core.accept);
    compare("c_sma.pull", a.pull == b.pull);
    compare("c_sma.validation", a.core.validation == b.core.validation);
    compare("c_sma.cache", a.core.cache == b.core.cache);
    compare("c_sma.self_doubt", a.core.self_doubt == b.core.self_doubt);
    compare("c_sma.transform", a.core.transform == b.core.transform);
    compare("c_sma.updates", a.core.updates == b.core.updates);
    compare("c_sma.c_ps", a.c_ps == b.c_ps);
  }

  void compare_policy(const SciConfig& a, const SciConfig& b) {
    const std::string at = sci(a.csci_id) + ".";
    compare(at + "cs_id", a.cs_id == b.cs_id);
    compare(at + "endpoints", a.endpoints == b.endpoints);
    compare(at + "mode", a.mode == b.mode);
    compare(at + "gue", a.gue == b.gue);
    compare(at + "mss_clamp", a.mss_clamp == b.mss_clamp);
    compare(at + "balance", a.balance == b.balance);
    compare(at + "selection", a.cheapest_first == b.cheapest_first && a.security_level_min == b.security_level_min);
    compare(at + "affinity", a.affinity_timeout == b.affinity_timeout);
    compare(at + "timers", a.timers == b.timers);
    compare(at + "when_none_healthy", a.when_none_healthy == b.when_none_healthy);
    compare(at + "when_full", a.when_full == b.when_full);
    compare(at + "on_unhealthy", a.on_unhealthy == b.on_unhealthy);
    compare(at + "unknown_flow", a.unknown_flow == b.unknown_flow);
    compare(at + "provisional", a.provisional_share == b.provisional_share);
    compare(at + "degradation_factor", a.degradation_factor == b.degradation_factor);
    compare(at + "drain_deadline", a.drain_deadline == b.drain_deadline);
    compare(at + "ramp", a.ramp == b.ramp);
  }

  void compare_instances(const SciConfig& a, const SciConfig& b) {
    const auto name = [](const InstanceConfig& i) { return std::string_view(i.id); };
    const auto at = [&](std::string_view what) { return sci(a.csci_id) + ".instances[" + std::string(what) + "]"; };
    match(
        a.instances, b.instances, name, [&](auto what) { add(at(what), "removed"); },
        [&](auto what) { add(at(what), "added"); },
        [&](size_t i, size_t j) { compare(at(a.instances[i].id), a.instances[i] == b.instances[j]); });
  }

  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> differences(const SiteSpec& now, const SiteSpec& next) { return Differ().run(now, next); }

}  // namespace margay::control
