// SPDX-License-Identifier: Apache-2.0
#include "control/record/recorder.h"

#include "control/record/wire_values.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {

void Recorder::begin(const Beginning& beginning, Time at) {
  if (!on()) return;
  v1::Record record;
  put_time(at, record);
  record.set_csci_id(utf8(beginning.config.csci_id));
  to_wire(beginning, *record.mutable_start());
  record.mutable_start()->set_ticks_recorded(true);
  file_.write(json_line(record));
}

void Recorder::begin_c_sma(const CSmaBeginning& beginning, Time at) {
  if (!on()) return;
  v1::Record record;
  put_time(at, record);
  record.set_c_sma(utf8(beginning.config.identity));
  to_wire(beginning, *record.mutable_c_sma_start());
  record.mutable_c_sma_start()->set_ticks_recorded(true);
  file_.write(json_line(record));
}

template <class Value>
void Recorder::write(const Value& value, Time at, const std::string& csci_id, const std::string& c_sma) {
  if (!on()) return;
  v1::Record record;
  record.set_csci_id(utf8(csci_id));
  record.set_c_sma(utf8(c_sma));
  to_wire(value, at, record);
  file_.write(json_line(record));
}

void Recorder::event(const std::string& csci_id, const Event& event, Time at) { write(event, at, csci_id, ""); }
void Recorder::action(const std::string& csci_id, const Action& action, Time at) { write(action, at, csci_id, ""); }
void Recorder::event(const std::string& c_sma, const c_sma::Event& event, Time at) { write(event, at, "", c_sma); }
void Recorder::action(const std::string& c_sma, const c_sma::Action& action, Time at) { write(action, at, "", c_sma); }

}  // namespace margay::control
