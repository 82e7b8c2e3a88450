// SPDX-License-Identifier: Apache-2.0
// Both ends of the northbound against each other under faults (CSMA-157, 161, 171, 177). MARGAY_SCHEDULES: how many
// schedules, MARGAY_SEED: that of the first; the seed of one that fails is printed and repeats it with
// MARGAY_SCHEDULES=1.
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/simulation/northbound_world.h"

namespace margay::test {
namespace {

using northbound::Change;
using northbound::Row;
using northbound::RowKey;
using northbound::Withdrawal;
using northbound::WithdrawReason;

// Rows of three CS-IDs with four SCIs each; an SCI goes together with its CS-ID's new site row.
Change random_change(Random& random) {
  const std::string cs_id(1, static_cast<char>('a' + random.below(3)));
  Change change{cs_id};
  const auto row = [&](RowKey key) {
    Row out{std::move(key)};
    out.metrics.gas = random.below(1000);
    out.valid_for = 180 * kSecond;
    if (out.key.csci_id) out.source = northbound::SourceState::kHealthy;
    return out;
  };
  for (uint32_t n = 1 + random.below(2); n > 0; --n) {
    const RowKey key{cs_id, "sci-" + std::to_string(n) + std::to_string(random.below(2))};
    if (random.one_in(4)) {
      change.withdrawals.push_back(Withdrawal{key, {}, WithdrawReason::kFailed});
    } else {
      change.rows.push_back(row(key));
    }
  }
  if (!change.withdrawals.empty() || random.one_in(2)) change.rows.push_back(row(RowKey{cs_id}));
  return change;
}

void one_fault(World& world, CPsHost& host) {
  Random& random = world.random();
  switch (random.below(12)) {
    case 0:
      return world.cut(host);
    case 1:
      return world.drop(host);
    case 2:
      return world.reorder(host);
    case 3:
    case 4:
      return world.repeat(host);
    case 5:
      host.frozen = !host.frozen;
      return;
    case 6:
      host.black_hole = !host.black_hole;
      return;
    case 7:
      host.latency = random.below(3000) * kMillisecond;
      return;
    case 8:
      return world.restart_c_ps(host, random.one_in(2), host.persists || random.one_in(2));
    case 9:
      if (random.one_in(3)) return world.restart_c_sma((1 + random.below(10)) * kSecond);
      return;
    case 10:
      host.clock_ms = host.clock_ms != 0 ? 0 : int64_t{random.below(200'000)} - 100'000;
      return;
    default:
      if (!host.persists) host.saved = save(host.table, host.peers, Time{world.now(), 1'700'000'000'000});
      if (host.session) host.session->request_sync({});
  }
}

// "": all that must hold did.
std::string run_schedule(uint64_t seed, uint64_t& deliveries) {
  World world(seed);
  Random& random = world.random();
  const uint32_t faults_one_in = 2 + random.below(8);
  const Nanoseconds pace = random.one_in(3) ? 20 * kMillisecond : (random.one_in(2) ? 300 : 2000) * kMillisecond;
  for (uint32_t actions = 20 + random.below(60); actions > 0 && world.wrong().empty(); --actions) {
    world.run_until(world.now() + random.below(pace / kMillisecond) * kMillisecond);
    CPsHost& host = world.hosts()[random.below(world.hosts().size())];
    if (random.one_in(faults_one_in)) {
      one_fault(world, host);
    } else {
      world.commit(random_change(random), random.one_in(3));
    }
  }
  world.heal_all();
  const Nanoseconds heartbeat = 60 * kSecond;
  world.run_until(world.now() + heartbeat);
  deliveries += world.deliveries();
  return world.wrong().empty() ? world.difference() : world.wrong();
}

TEST(NorthboundSimulation, BothTablesAreEqualWithinAHeartbeatOfTheLastFault) {
  const char* given = std::getenv("MARGAY_SCHEDULES");
  const uint64_t schedules = given != nullptr ? std::strtoull(given, nullptr, 0) : 1000;
  const uint64_t first = test_seed();
  uint64_t deliveries = 0;
  for (uint64_t i = 0; i < schedules; ++i) {
    const std::string wrong = run_schedule(first + i, deliveries);
    ASSERT_EQ(wrong, "") << seed_text(first + i);
  }
  EXPECT_GT(deliveries, 10 * schedules);  // it was no empty exercise
}

}  // namespace
}  // namespace margay::test
