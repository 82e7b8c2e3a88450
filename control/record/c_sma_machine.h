// SPDX-License-Identifier: Apache-2.0
#pragma once

// A C-SMA under replay: its core, and where a stream tells of C-PSes, its sessions with them.

#include <map>
#include <string>

#include "control/c_sma/c_sma.h"
#include "control/record/c_ps_stand_in.h"
#include "control/record/c_sma_wire.h"
#include "control/record/machine.h"

namespace margay::control {

class CSmaMachine : public Machine {
 public:
  CSmaMachine(const CSmaBeginning& beginning, bool ticks_recorded, Time now, Tape& tape)
      : config_(beginning.config),
        core_(beginning.config, beginning.saved, now),
        store_(beginning.epoch),
        ticks_recorded_(ticks_recorded),
        tape_(tape) {}

  Nanoseconds next_due() const override;
  void run(Time now) override;
  Result<void> take(const v1::Record& record, Time now) override;

 private:
  Result<void> take_c_ps(const v1::CPs& c_ps, Time now);
  Result<void> take_words(const v1::CPsSays& says, Time now);
  void fill_in(v1::Report& report, Time now);
  void handle(const c_sma::Event& event, Time now);
  void write(v1::Record& record, Time now);

  c_sma::CSmaConfig config_;
  c_sma::CSma core_;
  northbound::RowStore store_;
  bool ticks_recorded_;
  Tape& tape_;
  std::map<std::string, CPsStandIn> c_pses_;            // by identity
  std::map<std::string, c_sma::ReportOrder> reported_;  // the newest by hand, by CSCI-ID
};

}  // namespace margay::control
