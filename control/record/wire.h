// SPDX-License-Identifier: Apache-2.0
#pragma once

// Values of the SCI's core as messages of proto/margay/v1, and back. Pure functions; any thread. What comes from a
// message is checked as the site file is: enums known, durations, shares and counts in range; the error names the
// field. What goes into a message is always good: text that is not UTF-8 gets U+FFFD for what is wrong in it, a wall
// clock beyond the years 1 to 9999 stops there.

#include <string>
#include <string_view>

#include "common/result.h"
#include "control/sci/events.h"
#include "control/sci/sci.h"

namespace google::protobuf {
class Duration;
class Message;
class Timestamp;
}  // namespace google::protobuf
namespace margay::v1 {
class Record;
class Report;
class SciConfig;
class Start;
}  // namespace margay::v1

namespace margay::control {

// What an Sci is made from, but for the time.
struct Beginning {
  SciSpec config;
  uint64_t seed = 0, epoch = 0;
  std::vector<Sci::Known> known = {};
};

// Fill in the message, which is empty before.
void to_wire(const Report& report, v1::Report& out);
void to_wire(const SciSpec& config, v1::SciConfig& out);
void to_wire(const Beginning& beginning, v1::Start& out);
// Those that a Record holds: its time and body.
void to_wire(const Event& event, Time at, v1::Record& out);
void to_wire(const Action& action, Time at, v1::Record& out);

void put_time(Time at, v1::Record& out);

// A report as an SCI sent it. A health that is not known here is UNHEALTHY. What the values may be is for the Validator
// to say.
Result<Report> report_of(const v1::Report& report);
// The same in Protobuf's JSON mapping.
Result<Report> report_of_json(std::string_view text);

Result<Time> time_of(const v1::Record& record);
Result<SciSpec> config_of(const v1::SciConfig& config);
// The configuration of a Start that has none is `otherwise`; nullptr: that is an error.
Result<Beginning> beginning_of(const v1::Start& start, const SciSpec* otherwise);
Result<void> event_of(const v1::Record& record, Event& out);

// Protobuf's JSON mapping on one line, without its end, by the names of the .proto files.
std::string json_line(const google::protobuf::Message& message);
std::string json_line(const Report& report);

}  // namespace margay::control
