// SPDX-License-Identifier: Apache-2.0
#pragma once

// The C-SMA as a part of margay-control: joins its core to the world. Reports in, from SCIs of this process and by
// streams; rows out to each C-PS; audit, log and saved state beside it. One thread at a time: the control loop's, or
// whoever holds its turn. Nothing here waits but for the nonces' file.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/log_limit.h"
#include "common/result.h"
#include "control/agent/collection_port.h"
#include "control/agent/cps_link.h"
#include "control/agent/puller.h"
#include "control/agent/state_writer.h"
#include "control/audit_log.h"
#include "control/c_sma/c_sma.h"
#include "control/epoch_store.h"
#include "control/northbound/core/row_store.h"
#include "control/record/recorder.h"
#include "control/site_reader.h"

namespace margay::control {

class Agent {
 public:
  static constexpr Nanoseconds kSaveInterval = 5 * kSecond;
  static constexpr Nanoseconds kSaveGap = 200 * kMillisecond;  // when the set of SCIs changed
  // Of the loop's time goes at most one part in so many into what is saved: many SCIs are saved less often.
  static constexpr Nanoseconds kSaveShare = 50;
  static constexpr Nanoseconds kWatchInterval = kSecond;  // of the certificates' files
  static constexpr Nanoseconds kTurnMax = kSecond;        // a loop that was held up for longer says so (D-29)

  struct Outside {
    std::function<void(const std::string& csci_id)> pull;  // an SCI of this process is to report now
    Puller::Ask ask;
    Recorder& recorder;  // of what the core is told and wants; outlives the Agent
  };
  // Errors name the key of the site file.
  static Result<std::unique_ptr<Agent>> make(const SiteSpec& spec, Outside outside, uint64_t seed, int epoll, Time now);

  // Of an SCI of this process.
  void report(const Report& report, Time now);
  // Of the Prober. False: it is somebody else's.
  bool answer(const Prober::Answer& answer, Time now);
  void turn(Time now);
  Nanoseconds next_due() const;
  // A site file that was read again, in two steps: what can fail, and what cannot.
  using Links = std::vector<std::unique_ptr<CpsLink>>;
  Result<std::optional<Links>> prepare(const SiteSpec& next, Time now) const;
  void reload(const SiteSpec& next, std::optional<Links> links, Time now);
  // What is known is written down. Nothing is to come after it.
  void stop(Time now);
  // An operator's order, and what the core does about it.
  void tell(const c_sma::Event& event, Time now);

  // ---- for whoever looks

  const c_sma::CSma& core() const { return core_; }
  const northbound::RowStore& store() const { return store_; }
  const CollectionPort* port() const { return port_.get(); }
  const Puller* puller() const { return puller_.get(); }  // nullptr: without certificates nobody is asked
  bool is_co_located(const std::string& csci_id) const { return co_located_.contains(csci_id); }
  const Links& links() const { return links_; }
  Links& links() { return links_; }
  AuditLog::Status audit_status() const { return audit_->status(); }
  const CSmaSpec& spec() const { return spec_; }
  struct Verdicts {
    std::array<uint64_t, c_sma::kVerdicts> verdicts = {};
    std::map<std::string, uint64_t> reasons;     // refusals and anomalies, by name
    std::map<std::string, c_sma::Cause> causes;  // of the last commit, by CS-ID
    uint64_t commits = 0, critical = 0;
  };
  const Verdicts& verdicts() const { return verdicts_; }

 private:
  Agent(const SiteSpec& spec, const c_sma::SavedState& saved, uint64_t epoch, Outside outside, uint64_t seed, int epoll,
        Time now);

  void note_own_scis(const SiteSpec& spec);
  Result<void> open(const SiteSpec& spec, Time now);
  Result<Links> links_for(const CSmaSpec& spec, Time now) const;
  void perform(const c_sma::Commit& a, Time now);
  void perform(const c_sma::PullWanted& a, Time now);
  void perform(const c_sma::Judged& a, Time now);
  void perform(const c_sma::CloseStream& a, Time now);
  void perform(const c_sma::SourceChanged& a, Time now);
  void perform(const c_sma::FirstRoundOver& a, Time now);
  void perform(const c_sma::Audit& a, Time now);
  void watch_certificates(Time now);
  void watch_loop(Time now);
  void save(Time now);

  CSmaSpec spec_;
  Outside outside_;
  uint64_t seed_;
  int epoll_;
  std::shared_ptr<const c_sma::Peer> own_;  // SCIs of this process
  std::set<std::string> co_located_;        // CSCI-IDs
  c_sma::CSma core_;
  northbound::RowStore store_;
  std::unique_ptr<AuditLog> audit_;
  std::shared_ptr<security::Credentials> credentials_;
  std::unique_ptr<Sealer> sealer_;
  std::unique_ptr<CollectionPort> port_;
  std::unique_ptr<Puller> puller_;
  Links links_;
  std::unique_ptr<StateWriter> writer_;
  std::deque<c_sma::Event> waiting_;  // made by an action
  Verdicts verdicts_;
  LogLimit log_;
  Nanoseconds save_at_ = 0, may_save_at_ = 0, watch_at_ = 0, turned_at_ = 0;
  bool more_ = false, telling_ = false;
};

}  // namespace margay::control
