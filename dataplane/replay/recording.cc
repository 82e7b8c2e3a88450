// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/recording.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/line_file.h"

namespace margay::dp {

using shared_table::InstanceRecord;
using shared_table::SciRecord;
using shared_table::Snapshot;

namespace {

std::string list_of(const std::vector<Prefix>& prefixes) {
  std::string list;
  for (const Prefix& p : prefixes) list += (list.empty() ? "" : ", ") + p.format();
  return list.empty() ? "no address" : list;
}

// Is it this site file's data plane that was recorded?
Result<void> check_ports(const RecordedState& state, const SiteConfig& site) {
  for (size_t p = 0; p < std::max(state.ports.size(), site.ports.size()); ++p) {
    const std::string where = "state.ports[" + std::to_string(p) + "]";
    if (p >= site.ports.size()) {
      return Error{where + ": " + state.ports[p].name + ", expected no such port, as in " + site.file};
    }
    const PortConfig& port = site.ports[p];
    if (p >= state.ports.size() || state.ports[p].name != port.name) {
      const std::string name = p < state.ports.size() ? state.ports[p].name : "is missing";
      return Error{where + ": " + name + ", expected " + port.name + ", as in " + site.file};
    }
    const RecordedPort& was = state.ports[p];
    if (was.addresses != port.addresses) {
      return Error{where + ": " + port.name + " had " + list_of(was.addresses) + ", expected " +
                   list_of(port.addresses) + ", as in " + site.file};
    }
    if (port.mac && *was.mac != *port.mac) {
      return Error{where + ": " + port.name + " had " + was.mac->format() + ", expected " + port.mac->format() +
                   ", as in " + site.file};
    }
  }
  return {};
}

}  // namespace

Result<Recording> Recording::read(const std::string& file, const SiteConfig& site) {
  std::ifstream from(file);
  if (!from) return Error{file + ": " + std::strerror(errno)};
  Recording recording(file);
  const auto done = read_lines(from, file, [&](std::string_view text) { return recording.take(text, site); });
  if (!done) return done.error();
  if (recording.lines_ == 0) return Error{file + ": is empty, expected a recorded table"};
  return recording;
}

Result<void> Recording::take(std::string_view text, const SiteConfig& site) {
  auto line = parse_line(text);
  if (!line) return line.error();
  ++lines_;
  if (const auto* state = std::get_if<RecordedState>(&line->what)) {
    if (lines_ > 1) return Error{"state: expected in the first line only"};
    if (auto done = check_ports(*state, site); !done) return done;
    make_room(state->table);
    state_ = std::move(*line);
    return {};
  }
  if (lines_ == 1) return Error{"state: is missing, expected in the first line"};
  const Nanoseconds before = changes_.empty() ? state_.time : changes_.back().recorded.time;
  if (line->time < before) {
    return Error{"time: " + std::to_string(line->time) + ", expected at least " + std::to_string(before) +
                 ", of the line before"};
  }
  if (const auto* snapshot = std::get_if<Snapshot>(&line->what)) make_room(*snapshot);
  changes_.push_back({lines_, std::move(*line)});
  return {};
}

void Recording::make_room(const Snapshot& snapshot) {
  for (const SciRecord& sci : snapshot.scis) {
    scis_max_ = std::max<size_t>(scis_max_, sci.index + 1);
    for (const InstanceRecord& i : sci.instances) instances_max_ = std::max<size_t>(instances_max_, i.index + 1);
  }
}

std::vector<MacAddress> Recording::port_macs() const {
  std::vector<MacAddress> macs;
  for (const RecordedPort& port : state().ports) macs.push_back(*port.mac);
  return macs;
}

std::vector<IpAddress> Recording::instance_addresses() const {
  std::vector<IpAddress> addresses;
  const auto add = [&](const Snapshot& snapshot) {
    for (const SciRecord& sci : snapshot.scis) {
      for (const InstanceRecord& i : sci.instances) addresses.push_back(i.config.address);
    }
  };
  add(state().table);
  for (const Change& change : changes_) {
    if (const auto* snapshot = std::get_if<Snapshot>(&change.recorded.what)) add(*snapshot);
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

Error Recording::at(uint64_t line, const Error& error) const { return in(file_ + ":" + std::to_string(line), error); }

}  // namespace margay::dp
