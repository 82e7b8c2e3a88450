// SPDX-License-Identifier: Apache-2.0
#pragma once

// Validator & Sanitizer: judges every report before it may touch the Metric Cache (CSMA-34..55; D-10, D-14, D-15). In
// two halves, for between them its stream and its place in the cache are looked at: check() refuses, weigh() finds
// anomalies. Pure; one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/time_point.h"
#include "control/c_sma/anomaly_watch.h"
#include "control/c_sma/clock_watch.h"
#include "control/c_sma/config.h"
#include "control/c_sma/judgement.h"
#include "control/c_sma/peer.h"
#include "control/sci/report.h"

namespace margay::c_sma {

// Of the last report of an SCI that was not refused (D-14). Compared in this order.
struct ReportOrder {
  uint64_t epoch = 0, sequence = 0;
  auto operator<=>(const ReportOrder&) const = default;
};

class Validator {
 public:
  struct Checked {
    std::optional<Judgement> refusal = {};
    bool own_clock = false;  // too far off, but by our own clock's fault
    std::optional<int64_t> skew_alarm_ms = {};
  };

  explicit Validator(const CSmaConfig& config);
  // What is known of SCIs that stay listed is kept.
  void configure(const CSmaConfig& config);

  // True: our own wall clock has jumped.
  bool watch_clock(Time now) { return clocks_.watch_own(now, config_.validation, config_.self_doubt.hold); }

  Checked check(const control::Report& report, const Peer& peer, Time now);
  // REQUIRES: check() did not refuse it
  Judgement weigh(const control::Report& report, bool own_clock, Nanoseconds now);
  // An operator believes what waits in quarantine.
  void release(const std::string& csci_id, Nanoseconds now);

  // nullptr: the site file does not list it
  const AcceptedSci* listed(const std::string& csci_id) const;
  std::optional<ReportOrder> order(const std::string& csci_id) const;
  std::vector<std::pair<std::string, ReportOrder>> orders() const;  // by CSCI-ID
  void set_order(const std::string& csci_id, std::optional<ReportOrder> order);
  const ClockWatch& clocks() const { return clocks_; }

 private:
  struct Known {
    AcceptedSci accepted;
    std::optional<ReportOrder> order;
    AnomalyWatch anomalies;
  };

  std::optional<Judgement> check_authority(const control::Report& report, const Peer& peer) const;
  std::optional<Judgement> check_order(const control::Report& report) const;

  CSmaConfig config_;
  std::unordered_map<std::string, Known> known_;  // those listed
  ClockWatch clocks_;
};

}  // namespace margay::c_sma
