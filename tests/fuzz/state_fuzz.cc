// SPDX-License-Identifier: Apache-2.0
// Any bytes as what an earlier process wrote down: the first says whether a C-SMA (0) or a C-PS. Nothing may crash;
// what is refused says where; what is taken can be advertised, and is the same when it is written and read again.

#include <algorithm>

#include "common/check.h"
#include "control/agent/agent_state.h"
#include "control/c_sma/c_sma.h"
#include "control/cps/core/saved_state.h"
#include "control/cps/state_wire.h"
#include "control/northbound/wire/advertisement.h"
#include "margay/v1/advertisement.pb.h"
#include "tests/fuzz/target.h"

namespace {

using namespace margay;

constexpr Time kNow{1000 * kSecond, 1'700'000'000'000};

void refused(const std::string& why) { MARGAY_CHECK(!why.empty() && why.find('\n') == std::string::npos); }

void check(const northbound::Row& row, Nanoseconds now) {
  northbound::Row versioned = row;
  versioned.version = {1, 1};
  v1::Row wire;
  northbound::to_wire(versioned, now, wire);
  MARGAY_CHECK(northbound::row_of(wire, now).has_value());
}

// For an hour nobody reports.
void of_c_sma(const std::string& bytes) {
  const auto saved = control::agent_state_of(bytes);
  if (!saved) return refused(saved.error().message);
  c_sma::CSmaConfig config;
  config.identity = "edge-1";
  config.accept = {{"192.0.2.21:80", "WEB", 100}, {"192.0.2.22:80", "VRS", 100}};
  Time now = kNow;
  c_sma::CSma core(config, *saved, now);
  for (int n = 0; n < 1000 && core.next_due() < kNow.monotonic + 3600 * kSecond; ++n) {
    now.monotonic = std::max(now.monotonic, core.next_due());
    for (const c_sma::Action& action : core.handle(c_sma::Tick{}, now)) {
      const auto* commit = std::get_if<c_sma::Commit>(&action);
      if (commit == nullptr) continue;
      for (const northbound::Row& row : commit->change.rows) check(row, now.monotonic);
    }
    if (n > 0) continue;
    const c_sma::SavedState again = core.save(now);
    const auto read = control::agent_state_of(control::bytes_of(again));
    MARGAY_CHECK(read && *read == again);
  }
}

void of_c_ps(const std::string& bytes) {
  const auto saved = cps::state_of(bytes, kNow.monotonic);
  if (!saved) return refused(saved.error().message);
  cps::ServiceTable table;
  cps::Peers peers;
  if (const auto restored = cps::restore(*saved, kNow, table, peers); !restored) {
    MARGAY_CHECK(table.sites().empty() && peers.empty());
    return;
  }
  (void)table.aged(kNow.monotonic);
  const cps::SavedState again = cps::save(table, peers, kNow);
  const std::string written = cps::bytes_of(again, kNow.monotonic);
  const auto read = cps::state_of(written, kNow.monotonic);
  MARGAY_CHECK(read && cps::bytes_of(*read, kNow.monotonic) == written);
  cps::ServiceTable second;
  MARGAY_CHECK(cps::restore(again, kNow, second, peers));
  for (const auto& [c_sma, site] : table.sites()) {
    MARGAY_CHECK(second.resume(c_sma) == table.resume(c_sma) && second.sites().at(c_sma).rows == site.rows);
  }
}

}  // namespace

FUZZ_TARGET(state) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  data[0] == 0 ? of_c_sma(bytes) : of_c_ps(bytes);
  return 0;
}
