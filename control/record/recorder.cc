// SPDX-License-Identifier: Apache-2.0
#include "control/record/recorder.h"

#include "control/record/wire_values.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {

void Recorder::begin(const Beginning& beginning, Time at) {
  if (!on()) return;
  v1::Record record;
  put_time(at, record);
  to_wire(beginning, *record.mutable_start());
  record.mutable_start()->set_ticks_recorded(true);
  write(beginning.config.csci_id, record);
}

void Recorder::event(const std::string& csci_id, const Event& event, Time at) {
  if (!on()) return;
  v1::Record record;
  to_wire(event, at, record);
  write(csci_id, record);
}

void Recorder::action(const std::string& csci_id, const Action& action, Time at) {
  if (!on()) return;
  v1::Record record;
  to_wire(action, at, record);
  write(csci_id, record);
}

void Recorder::write(const std::string& csci_id, v1::Record& record) {
  record.set_csci_id(utf8(csci_id));
  file_.write(json_line(record));
}

}  // namespace margay::control
