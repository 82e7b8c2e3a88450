// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the core of a C-SMA is told, and what it wants done. Plain values.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/time_point.h"
#include "control/c_sma/config.h"
#include "control/c_sma/judgement.h"
#include "control/c_sma/peer.h"
#include "control/c_sma/update_controller.h"
#include "control/northbound/core/row.h"
#include "control/sci/report.h"

namespace margay::c_sma {

// ---- events

struct ReportReceived {
  control::Report report;
  std::shared_ptr<const Peer> peer;  // never null
  StreamId stream = 0;               // 0: it came without a stream
  bool pulled = false;               // the answer to a PullWanted
};
struct ReportUnreadable {  // no report, or one without its health summary
  std::string identity, csci_id, why;
  StreamId stream = 0;
};
struct StreamClosed {
  StreamId stream = 0;
};
struct PullFailed {
  std::string csci_id, why;
};
struct Revoked {  // the identity's certificate
  std::string identity;
};
struct ConfigChanged {
  CSmaConfig config;
};
struct QuarantineRelease {  // the operator believes it
  std::string csci_id, who;
};
struct QuarantineDrop {
  std::string csci_id, who;
};
struct EpochReset {  // the next report of the SCI is believed to be new, whatever its epoch (D-14)
  std::string csci_id, who;
};
struct LoopLate {  // the thread that calls was held up; before the Tick that it comes too late with (D-29)
  Nanoseconds by = 0;
};
struct Tick {};

using Event = std::variant<ReportReceived, ReportUnreadable, StreamClosed, PullFailed, Revoked, ConfigChanged,
                           QuarantineRelease, QuarantineDrop, EpochReset, LoopLate, Tick>;

// ---- actions

// For every C-PS. The versions are the sender's to give.
struct Commit {
  northbound::Change change;
  bool critical = false;  // D-34
  Cause cause{};
};
struct PullWanted {  // CSMA-69, D-10
  std::string csci_id, why;
};
// The answer to a report.
struct Judged {
  StreamId stream = 0;
  std::string csci_id;
  uint64_t epoch = 0, sequence = 0;
  Verdict verdict{};
  std::string_view reason;  // a name; empty: nothing to say
  std::string detail;
  int64_t received_ms = 0;  // our wall clock, Unix
};
struct CloseStream {
  StreamId stream = 0;
  std::string why;
};
struct SourceChanged {
  std::string csci_id, cs_id;
  std::optional<northbound::SourceState> from;  // absent: discovered
  std::optional<northbound::SourceState> to;    // absent: gone
  std::string why;
};
// Every SCI that the state file knew has reported, or was waited for long enough: a snapshot is whole now (D-55).
struct FirstRoundOver {
  uint32_t missing = 0;
};

enum class AuditKind : uint8_t {  // CSMA-169, 193
  kRefused,
  kAnomaly,
  kConfirmed,  // an anomaly, by a second report
  kSourceFailed,
  kEvicted,
  kDeregistered,
  kRevoked,
  kTakeOver,  // of a stream, too often
  kSkew,
  kOwnClock,
  kSelfDoubt,
  kInconsistent,  // CSMA-51..53
  kOperator,      // release, drop, reset
  kPullFailed,
};
inline constexpr size_t kAuditKinds = 14;
std::string_view name_of(AuditKind k);  // "REFUSED"

struct Audit {
  AuditKind kind{};
  std::string who;   // an identity or an operator; empty: this C-SMA
  std::string what;  // a CSCI-ID or CS-ID; empty: all
  std::string detail;
};

using Action = std::variant<Commit, PullWanted, Judged, CloseStream, SourceChanged, FirstRoundOver, Audit>;

}  // namespace margay::c_sma
