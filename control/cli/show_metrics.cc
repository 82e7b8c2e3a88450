// SPDX-License-Identifier: Apache-2.0
// show metrics
#include "control/cli/commands.h"
#include "control/cli/kinds.h"

namespace margay::control {
namespace {

void show_scraped(const SciSpec& spec, const Sci& sci, Reply& reply) {
  const Nanoseconds now = read_clocks().monotonic;
  for (const InstanceSpec& instance : spec.instances) {
    for (size_t m = 0; m < kMetrics; ++m) {
      const auto metric = static_cast<Metric>(m);
      const auto reading = sci.reading(instance.id, metric, now);
      if (reading) {
        reply.row({spec.csci_id, instance.id, name_of(metric), reading->value, milliseconds_of(reading->age)});
      }
    }
  }
}

void show_path(const SciSpec& spec, const Sci& sci, Reply& reply) {
  for (const InstanceSpec& instance : spec.instances) {
    const Histogram* responses = sci.responses(instance.id);
    if (responses == nullptr) continue;
    const uint64_t count = responses->count();
    reply.row({spec.csci_id, instance.id, count, count > 0 ? Cell(milliseconds_of(responses->mean())) : Cell()});
  }
}

template <class Show>
void for_each(Service& service, const Arguments& arguments, Show show) {
  const auto& scis = service.site().scis();
  const auto* one = arguments.option("sci");
  for (const SciSpec& spec : service.site().spec().scis) {
    const auto sci = scis.find(spec.csci_id);
    const bool wanted = one == nullptr || one->front().text() == spec.csci_id;
    if (sci != scis.end() && wanted) show(spec, sci->second);
  }
}

}  // namespace

void add_show_metrics(CommandTable& table, Service& service) {
  table.add({"show metrics [sci CSCI-ID]", "what instances tell of themselves, and response times seen in the path",
             "reads the cores; what is stale is left out",
             [&service](const Arguments& arguments, Reply& reply) -> CommandResult {
               reply.table("metrics", {"csci_id", "si_id", "metric", "value", "age_ms"});
               for_each(service, arguments, [&](const auto& spec, const auto& sci) { show_scraped(spec, sci, reply); });
               reply.table("path", {"csci_id", "si_id", "responses", "mean_ms"});
               for_each(service, arguments, [&](const auto& spec, const auto& sci) { show_path(spec, sci, reply); });
               return {};
             }});
}

}  // namespace margay::control
