// SPDX-License-Identifier: Apache-2.0
#include "control/cli/kinds.h"

#include <string>
#include <utility>
#include <vector>

namespace margay::control {
namespace {

using Names = std::vector<std::string>;

Names sci_names(Service& service) {
  Names names;
  for (const SciSpec& spec : service.site().spec().scis) names.push_back(spec.csci_id);
  return names;
}

// Of the SCI that the word before names.
Names instance_names(Service& service, std::span<const Word> before) {
  Names names;
  for (const SciSpec& spec : service.site().spec().scis) {
    if (before.empty() || spec.csci_id != before.back().text) continue;
    for (const InstanceSpec& instance : spec.instances) names.push_back(instance.id);
  }
  return names;
}

}  // namespace

void add_kinds(CommandTable& table, Service& service) {
  table.add_kind({.name = "CSCI-ID", .expected = "the CSCI-ID of an SCI", .names = [&service](auto) {
                    return sci_names(service);
                  }});
  table.add_kind({.name = "SI-ID",
                  .expected = "the SI-ID of an instance of that SCI",
                  .names = [&service](auto before) { return instance_names(service, before); }});
  table.add_kind({.name = "SOURCE", .expected = "the CSCI-ID of an SCI that may report", .names = [&service](auto) {
                    Names names;
                    for (const auto& accepted : service.agent()->spec().core.accept) names.push_back(accepted.csci_id);
                    return names;
                  }});
}

std::vector<std::string> chosen_scis(Service& service, const Arguments& arguments) {
  const auto* one = arguments.option("sci");
  if (one != nullptr) return {one->front().text()};
  return sci_names(service);
}

uint64_t seconds_of(Nanoseconds time) { return time / kSecond; }
double milliseconds_of(Nanoseconds time) {
  const Nanoseconds microseconds = time / 1000;
  return static_cast<double>(microseconds) / 1000;
}

}  // namespace margay::control
