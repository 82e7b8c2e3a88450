// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table_record.h"

#include "common/json_fields.h"
#include "common/shared_table/snapshot_fields.h"

namespace margay::dp {

using shared_table::kAny;
using shared_table::Snapshot;

namespace {

constexpr uint32_t kPortsNamed = 255;
constexpr uint32_t kAddressesMax = 4096;  // of a port

template <class Walker, class Value>
void pass_setting(Walker& w, Value& s) {
  w.text("csci_id", s.csci_id, kIdBytesMax);
  w.text("si_id", s.si_id, kIdBytesMax);
  w.maybe("admin", s.admin, [](auto& walker, auto& v) { walker.word("admin", v, Admin::kDisabled); });
  w.maybe("drain_deadline", s.drain_deadline,
          [](auto& walker, auto& v) { walker.number("drain_deadline", v, 0, kAny); });
  w.maybe("max_sessions", s.max_sessions,
          [](auto& walker, auto& v) { walker.number("max_sessions", v, 0, kSessionsMax); });
  w.maybe("weight", s.weight, [](auto& walker, auto& v) { walker.number("weight", v, 0, 65535); });
}

template <class Walker, class Value>
void pass_port(Walker& w, Value& p) {
  w.text("name", p.name, kIdBytesMax);
  w.mac("mac", p.mac);
  w.list("addresses", p.addresses, kAddressesMax, [](auto& walker, auto& a) { walker.prefix("address", a); });
}

template <class Walker, class Value>
void pass_state(Walker& w, Value& s) {
  w.maybe("site", s.site, [](auto& walker, auto& v) { walker.text("site", v, kIdBytesMax); });
  w.number("monotonic", s.monotonic, 0, kAny);
  w.list("ports", s.ports, kPortsNamed, [](auto& walker, auto& p) { pass_port(walker, p); });
  w.flag("forwarding", s.forwarding);
  w.flag("waiting", s.waiting);
  w.object("table", s.table, [](auto& walker, auto& t) { pass_snapshot(walker, t); });
  w.list("set", s.set, shared_table::kInstancesMax, [](auto& walker, auto& v) { pass_setting(walker, v); });
}

// Each kind of line under its own name.
template <class Walker>
void pass(Walker& w, auto& state) requires requires {
  state.monotonic;
}
{
  w.object("state", state, [](auto& walker, auto& s) { pass_state(walker, s); });
}
template <class Walker>
void pass(Walker& w, auto& snapshot) requires requires {
  snapshot.base;
}
{
  w.object("snapshot", snapshot, [](auto& walker, auto& s) { pass_snapshot(walker, s); });
}
template <class Walker>
void pass(Walker& w, auto& setting) requires requires {
  setting.si_id;
}
{
  w.object("instance", setting, [](auto& walker, auto& s) { pass_setting(walker, s); });
}
template <class Walker>
void pass(Walker& w, auto& forwarding) requires requires {
  forwarding.on;
}
{ w.flag("forwarding", forwarding.on); }

void pick_kind(const JsonReader& r, TableLine& line) {
  if (r.has("state")) {
    line.what = RecordedState{};
  } else if (r.has("snapshot")) {
    line.what = Snapshot{};
  } else if (r.has("instance")) {
    line.what = RecordedSetting{};
  } else {
    line.what = RecordedForwarding{};
  }
}

Result<void> check(const Snapshot& snapshot) {
  const auto read = shared_table::decode(shared_table::encode(snapshot));
  if (!read) return read.error();
  return {};
}

Result<void> check(const RecordedSetting& setting) {
  if (setting.admin != Admin::kDraining || setting.drain_deadline) return {};
  return Error{setting.csci_id + " " + setting.si_id + ": drain_deadline is missing, expected beside draining"};
}

Result<void> check(const TableLine& line) {
  if (const auto* setting = std::get_if<RecordedSetting>(&line.what)) return check(*setting);
  if (const auto* snapshot = std::get_if<Snapshot>(&line.what)) return check(*snapshot);
  const auto* state = std::get_if<RecordedState>(&line.what);
  if (state == nullptr) return {};
  if (state->table.base != 0) return Error{"state.table.base: expected 0, a complete table"};
  for (const RecordedPort& port : state->ports) {
    if (!port.mac) return Error{"state.ports: " + port.name + " has no mac"};
  }
  for (const RecordedSetting& setting : state->set) {
    if (auto done = check(setting); !done) return done;
  }
  return check(state->table);
}

}  // namespace

std::string format_line(const TableLine& line) {
  JsonWriter w;
  w.number("time", line.time, 0, kAny);
  std::visit([&](const auto& what) { pass(w, what); }, line.what);
  return w.line();
}

Result<TableLine> parse_line(std::string_view text) {
  TableLine line;
  const auto read = JsonReader::read(text, line, [](JsonReader& r, TableLine& to) {
    r.number("time", to.time, 0, kAny);
    pick_kind(r, to);
    std::visit([&](auto& what) { pass(r, what); }, to.what);
  });
  if (!read) return read.error();
  if (auto done = check(line); !done) return done.error();
  return line;
}

Nanoseconds shifted(Nanoseconds time, int64_t ahead) {
  const auto by = static_cast<Nanoseconds>(ahead < 0 ? -ahead : ahead);
  if (ahead < 0) return time > by ? time - by : 1;
  return time < kNever - by ? time + by : kNever;
}

void shift_times(Snapshot& snapshot, int64_t ahead) {
  for (shared_table::SciRecord& sci : snapshot.scis) {
    for (shared_table::InstanceRecord& i : sci.instances) {
      for (Nanoseconds* time : {&i.drain_deadline, &i.health_since, &i.serves_since, &i.load_until}) {
        if (*time != 0) *time = shifted(*time, ahead);
      }
    }
  }
}

}  // namespace margay::dp
