// SPDX-License-Identifier: Apache-2.0
#include "control/record/replay.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/line_file.h"
#include "control/record/c_sma_machine.h"
#include "control/record/sci_machine.h"
#include "control/record/wire_values.h"

namespace margay::control {
namespace {

// "12.5s"
std::string text_of(Nanoseconds time) {
  google::protobuf::Duration duration;
  control::put(time, duration);
  const std::string json = json_line(duration);
  return json.substr(1, json.size() - 2);
}

Result<v1::Record> parse(std::string_view json) {
  v1::Record record;
  const auto status = google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &record);
  if (status.ok()) return record;
  const std::string_view message(status.message().data(), status.message().size());
  return Error{std::string(message.substr(0, message.find('\n')))};
}

}  // namespace

Time Replay::now() const { return {now_, wall_less_monotonic_ms_ + static_cast<int64_t>(now_ / kMillisecond)}; }

void Replay::set_clock(const v1::Record& record, Time at) {
  now_ = at.monotonic;
  if (record.has_wall()) wall_less_monotonic_ms_ += at.unix_ms - now().unix_ms;
}

Result<void> Replay::line(std::string_view json) {
  const auto record = parse(json);
  if (!record) return record.error();
  ++tape_.counts.records;
  const auto at = time_of(*record);
  if (!at) return at.error();
  if (!record->csci_id().empty() && !record->c_sma().empty()) return Error{"expected csci_id or c_sma, not both"};
  const bool is_c_sma = !record->c_sma().empty();
  const Key key{is_c_sma, is_c_sma ? record->c_sma() : record->csci_id()};

  if (is_c_sma ? record->has_c_sma_start() : record->has_start()) return start(key, *record, *at);
  if (at->monotonic < now_) return Error{"time goes back, from " + text_of(now_) + " to " + text_of(at->monotonic)};
  run_until(at->monotonic);
  set_clock(*record, *at);
  const auto machine = machines_.find(key);
  if (machine == machines_.end()) return Error{"`" + key.second + "` has no start before this"};
  return machine->second->take(*record, now());
}

// Of a control plane that began anew nothing goes on; the machine may have been started anew too, and its clock.
Result<void> Replay::start(const Key& key, const v1::Record& record, Time at) {
  if (at.monotonic < now_) machines_.clear();
  run_until(at.monotonic);
  set_clock(record, at);
  auto machine = make(key, record, now());
  if (!machine) return machine.error();
  machines_[key] = std::move(*machine);
  return {};
}

Result<std::unique_ptr<Machine>> Replay::make(const Key& key, const v1::Record& record, Time at) {
  const bool is_c_sma = key.first;
  const std::string& id = key.second;
  const auto wrong = [&id](const std::string& other) {
    return Error{"start of `" + id + "` with the config of `" + other + "`"};
  };
  if (is_c_sma) {
    auto beginning = beginning_of(record.c_sma_start(), site_.c_sma ? &*site_.c_sma : nullptr);
    if (!beginning) return beginning.error();
    if (beginning->config.identity.empty()) beginning->config.identity = id;
    if (beginning->config.identity != id) return wrong(beginning->config.identity);
    return std::unique_ptr<Machine>(
        std::make_unique<CSmaMachine>(*beginning, record.c_sma_start().ticks_recorded(), at, tape_));
  }
  const auto own = std::find_if(site_.scis.begin(), site_.scis.end(), [&](const auto& s) { return s.csci_id == id; });
  const auto beginning = beginning_of(record.start(), own == site_.scis.end() ? nullptr : &*own);
  if (!beginning) return beginning.error();
  if (beginning->config.csci_id != id) return wrong(beginning->config.csci_id);
  return std::unique_ptr<Machine>(
      std::make_unique<SciMachine>(*beginning, record.start().ticks_recorded(), at.monotonic, tape_));
}

// All that is due up to and including `end`; of equal times SCIs before C-SMAs, and then by their names.
void Replay::run_until(Nanoseconds end) {
  for (;;) {
    Machine* next = nullptr;
    Nanoseconds due = kNever;
    for (const auto& [key, machine] : machines_) {
      const Nanoseconds at = machine->next_due();
      if (at >= due) continue;
      next = machine.get();
      due = at;
    }
    if (next == nullptr || due > end) return;
    now_ = std::max(now_, due);
    next->run(now());
  }
}

Result<Replay::Counts> replay_file(const std::string& in, const std::string& out, ReplaySite site) {
  std::ifstream from(in);
  if (!from) return Error{in + ": " + std::strerror(errno)};
  std::error_code none;
  if (std::filesystem::equivalent(in, out, none)) return Error{out + ": is the input"};
  std::ofstream to(out, std::ios::trunc);
  if (!to) return Error{out + ": " + std::strerror(errno)};

  Replay replay(std::move(site), [&to](std::string_view line) { to << line << '\n'; });
  if (auto done = read_lines(from, in, [&](std::string_view line) { return replay.line(line); }); !done) {
    return done.error();
  }
  if (!to.flush()) return Error{out + ": " + std::strerror(errno)};
  return replay.counts();
}

}  // namespace margay::control
