// SPDX-License-Identifier: Apache-2.0
// Bindings that come over from an earlier process (SCI-83, SCI-84): by what their indices meant, to the worker that
// owns them now, with their slots; what cannot be a binding is left out by name.
#include "dataplane/core/adoption.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/support/kept_site.h"
#include "tests/support/seed.h"

namespace margay::test {
namespace {

using dp::FlowState;
using dp::kSecond;
using dp::LeftOut;
using dp::Verdict;

PacketBuilder from_instance(unsigned n, dp::InstanceIndex i, unsigned flags, uint32_t seq, uint32_t ack) {
  return tcp("10.1.0." + std::to_string(11 + i) + ":8080", client(n))
      .flags(flags)
      .seq(seq)
      .ack(ack)
      .ether(MacAddress{{0x02, 0, 0, 1, 0, static_cast<uint8_t>(i + 1)}}, kSitePort1);
}
// Returns the instance that has it.
dp::InstanceIndex open(SmallSite& site, unsigned n) {
  site.send(0, from_client(n, kSyn, 1000));
  return site.trace.instance;
}
dp::InstanceIndex establish(SmallSite& site, unsigned n) {
  const dp::InstanceIndex i = open(site, n);
  site.send(1, from_instance(n, i, kSyn | kAck, 5000, 1001));
  site.send(0, from_client(n, kAck, 1001, 5001));
  return i;
}
uint64_t left_out(const dp::Adopted& adopted, LeftOut reason) { return adopted.left_out[static_cast<size_t>(reason)]; }
uint64_t left_out(const dp::Adopted& adopted) {
  uint64_t sum = 0;
  for (const uint64_t n : adopted.left_out) sum += n;
  return sum;
}

TEST(Adoption, WithAsManyMoreAndFewerWorkers) {
  for (const int workers : {3, 8, 1, 2}) {
    SCOPED_TRACE(testing::Message() << workers << " workers");
    KeptSite before(small_site(2, 40), 3, 64);
    std::vector<dp::InstanceIndex> bound;
    for (unsigned n = 0; n < 50; ++n) bound.push_back(establish(*before, n));
    KeptSite after(small_site(2, 40), static_cast<dp::WorkerIndex>(workers), 64);
    const dp::Adopted adopted = after.adopt(before);
    EXPECT_EQ(adopted.bindings, 50u);
    EXPECT_EQ(adopted.sessions, 50u);
    EXPECT_EQ(left_out(adopted), 0u);
    EXPECT_TRUE(after.agrees());
    for (unsigned n = 0; n < 50; ++n) {  // both directions
      after->send(0, from_client(n, kAck | kPsh, 1001, 5001).payload("GET"));
      EXPECT_EQ(after->outcome.verdict, Verdict::kTransmit);
      EXPECT_EQ(after->trace.instance, bound[n]);
      EXPECT_FALSE(after->trace.new_binding);
      after->send(1, from_instance(n, bound[n], kAck, 5001, 1004));
      EXPECT_EQ(after->outcome.verdict, Verdict::kTransmit);
    }
    EXPECT_TRUE(after.audited());
    after->pass(301 * kSecond);  // Part C: TCP idle 300 s
    EXPECT_TRUE(after->empty());
  }
}

// Each goes on where it was: state by state, with the timer that was running (Part C).
TEST(Adoption, StatesAndTimersGoOn) {
  KeptSite before(small_site(1, 10));
  open(*before, 1);
  establish(*before, 2);
  establish(*before, 3);
  before->send(0, from_client(3, kFin | kAck, 1001, 5001));
  establish(*before, 4);
  before->send(0, from_client(4, kFin | kAck, 1001, 5001));
  before->send(1, from_instance(4, 0, kFin | kAck, 5001, 1002));
  before->send(0, from_client(4, kAck, 1002, 5002));
  before->pass(2 * kSecond);
  KeptSite after(small_site(1, 10));
  const dp::Adopted adopted = after.adopt(before);
  EXPECT_EQ(adopted.bindings, 4u);
  EXPECT_EQ(adopted.sessions, 3u);  // SCI-92: none in TIME_WAIT
  EXPECT_EQ(after->shared.provisional.view(0).active, 1u);
  std::map<FlowState, int> states;
  for (const dp::FlowEntry& e : after.entries()) {
    states[e.state] += e.state != FlowState::kFree;
    EXPECT_TRUE(e.state == FlowState::kFree || ((e.flags & dp::kAdopted) != 0 && e.adoption == 1));
  }
  EXPECT_EQ(states[FlowState::kSynSent], 1);
  EXPECT_EQ(states[FlowState::kEstablished], 1);
  EXPECT_EQ(states[FlowState::kHalfClosed], 1);
  EXPECT_EQ(states[FlowState::kTimeWait], 1);
  after->pass(3 * kSecond - 2 * dp::kTickLength);  // embryonic: 5 s from its last packet, 2 s of them before
  EXPECT_EQ(after->worker().flows(), 4u);
  after->pass(4 * dp::kTickLength);
  EXPECT_EQ(after->worker().flows(), 3u);
  EXPECT_TRUE(after.agrees());
  EXPECT_EQ(after->shared.provisional.view(0).active, 0u);
}

// The clocks of two processes have nothing to do with each other, and while there is none no timer runs: a client whose
// packets were lost then has the rest of its time to send them again.
TEST(Adoption, TimersStandStillBetweenTwoProcesses) {
  for (const int64_t apart : {-3600, 0, 3, 3600}) {
    SCOPED_TRACE(apart);
    KeptSite before(small_site(1, 10));
    open(*before, 1);
    before->pass(2 * kSecond);
    before.image().set_clock(dp::to_tick(before->now));
    PageBytes left = before.bytes();
    const auto found = dp::open_image(left.span(), kBootId);
    ASSERT_TRUE(found);
    KeptSite after(small_site(1, 10), 1, 64, static_cast<dp::Nanoseconds>(10'000 + apart) * kSecond);
    after.adopt(*found);
    after->pass(3 * kSecond - 2 * dp::kTickLength);  // embryonic: 5 s from its last packet, 2 s of them before
    EXPECT_EQ(after->worker().flows(), 1u);
    after->pass(4 * dp::kTickLength);
    EXPECT_EQ(after->worker().flows(), 0u);
  }
}

// SCI-33: what is beyond the limit goes on, shows as over, and nothing new is admitted until it is paid off.
TEST(Adoption, MoreSessionsThanTheLimit) {
  KeptSite before(small_site(1, 10));
  for (unsigned n = 0; n < 10; ++n) establish(*before, n);
  KeptSite after(small_site(1, 4));
  EXPECT_EQ(after.adopt(before).sessions, 10u);
  EXPECT_EQ(after->slots(0).over, 6u);
  EXPECT_TRUE(after.agrees());
  const auto refused = [&](unsigned n) {
    open(*after, n);
    return !after->trace.new_binding;
  };
  EXPECT_TRUE(refused(20));
  for (unsigned n = 0; n < 7; ++n) after->send(0, from_client(n, kRst, 1001));
  after->pass(3 * kSecond);  // Part C: the grace of a reset
  EXPECT_EQ(after->active(0), 3u);
  EXPECT_FALSE(refused(21));
  EXPECT_TRUE(refused(22));
  EXPECT_TRUE(after.agrees());
  EXPECT_TRUE(after.audited());
}

// What has become of the instances in the new site file, and of their sessions.
TEST(Adoption, ByWhatIndicesMeant) {
  struct Row {
    const char* what;
    std::function<void(dp::SiteConfig&)> change;
    uint64_t adopted;
    LeftOut reason;
  };
  const auto instances = [](dp::SiteConfig & c) -> auto& { return c.scis[0].instances; };
  const Row rows[] = {
      {"other order", [&](auto& c) { std::swap(instances(c)[0], instances(c)[2]); }, 6, {}},
      {"one gone, the others move up", [&](auto& c) { instances(c).erase(instances(c).begin()); }, 4,
       LeftOut::kInstanceGone},
      {"one has another name", [&](auto& c) { instances(c)[1].id = "si-9"; }, 4, LeftOut::kInstanceGone},
      {"one has another address", [&](auto& c) { instances(c)[1].address = ip("10.1.0.99"); }, 4, LeftOut::kMoved},
      {"one has another port", [&](auto& c) { instances(c)[1].port = 8081; }, 4, LeftOut::kMoved},
      {"SCI by another name", [](auto& c) { c.scis[0].csci_id = "other"; }, 0, LeftOut::kInstanceGone},
      {"SCI at another address", [](auto& c) { c.scis[0].endpoints[0].address = ip("192.0.2.11"); }, 0,
       LeftOut::kSciGone},
      {"SCI at another port", [](auto& c) { c.scis[0].endpoints[0].port = 81; }, 0, LeftOut::kSciGone},
      {"one endpoint more, in front",
       [](auto& c) {
         auto& endpoints = c.scis[0].endpoints;
         endpoints.insert(endpoints.begin(), {ip("192.0.2.9"), 80, Protocol::kTcp});
       },
       6,
       {}},
      {"another mode",
       [&](auto& c) {
         c.scis[0].mode = dp::Mode::kL2Dsr;
         for (auto& i : instances(c)) i.port = 8080;
       },
       0, LeftOut::kModeChanged},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    KeptSite before(small_site(3, 10));
    std::vector<IpAddress> bound;
    for (unsigned n = 0; n < 6; ++n) bound.push_back(before->table->instances[establish(*before, n)].address);
    dp::SiteConfig config = small_site(3, 10);
    row.change(config);
    KeptSite after(config, 2);
    const dp::Adopted adopted = after.adopt(before);
    EXPECT_EQ(adopted.bindings, row.adopted);
    EXPECT_EQ(left_out(adopted), 6 - row.adopted);
    EXPECT_EQ(left_out(adopted, row.reason), 6 - row.adopted);
    EXPECT_TRUE(after.agrees());
    for (unsigned n = 0; row.adopted == 6 && n < 6; ++n) {
      after->send(0, from_client(n, kAck, 1001, 5001));
      ASSERT_NE(after->trace.instance, dp::kNoIndex);
      EXPECT_EQ(after->table->instances[after->trace.instance].address, bound[n]);
    }
    EXPECT_TRUE(after.audited());
  }
}

// A client's side is all that there is of them, whatever carries its packets: also from one such mode into another.
TEST(Adoption, OneWayModes) {
  using dp::Mode;
  const std::pair<Mode, Mode> rows[] = {
      {Mode::kIpip, Mode::kIpip}, {Mode::kGue, Mode::kGue}, {Mode::kL2Dsr, Mode::kIpip}, {Mode::kIpip, Mode::kGue}};
  for (const auto& [was, is] : rows) {
    SCOPED_TRACE(std::string(word_of(was)) + " to " + std::string(word_of(is)));
    KeptSite before(small_site(2, 10, dp::Balance::kRoundRobin, was));
    std::vector<dp::InstanceIndex> bound;
    for (unsigned n = 0; n < 6; ++n) {
      bound.push_back(open(*before, n));
      before->send(0, from_client(n, kAck, 1001, 5001));
    }
    KeptSite after(small_site(2, 10, dp::Balance::kRoundRobin, is), 3);
    const dp::Adopted adopted = after.adopt(before);
    EXPECT_EQ(adopted.sessions, 6u);
    EXPECT_EQ(left_out(adopted), 0u);
    EXPECT_TRUE(after.agrees());
    for (unsigned n = 0; n < 6; ++n) {
      const size_t came = from_client(n, kAck, 1001, 5001).build().size();
      after->send(0, from_client(n, kAck, 1001, 5001));
      EXPECT_EQ(after->trace.instance, bound[n]);
      EXPECT_EQ(after->sent.size(), came + (is == Mode::kIpip ? 20 : 32));
      EXPECT_EQ(after->sent[23], is == Mode::kIpip ? 4 : 17);  // protocol of the outer header
    }
    EXPECT_TRUE(after.audited());
    after->pass(301 * kSecond);
    EXPECT_TRUE(after->empty());
  }
}

// An index that another instance got meanwhile: the generation tells.
TEST(Adoption, OtherGeneration) {
  KeptSite before(small_site(1, 10));
  establish(*before, 1);
  before.entries()[0].instance_generation = 2;
  KeptSite after(small_site(1, 10));
  EXPECT_EQ(left_out(after.adopt(before), LeftOut::kInstanceGone), 1u);
  EXPECT_TRUE(after.agrees());
}

// Established bindings first, whatever their order in the image.
TEST(Adoption, TableWithLessRoom) {
  KeptSite before(small_site(1, 100), 1, 64);
  for (unsigned n = 0; n < 30; ++n) open(*before, n);
  for (unsigned n = 100; n < 120; ++n) establish(*before, n);
  KeptSite after(small_site(1, 100), 1, 25);
  const dp::Adopted adopted = after.adopt(before);
  EXPECT_EQ(adopted.bindings, 25u);
  EXPECT_EQ(left_out(adopted, LeftOut::kTableFull), 25u);
  for (unsigned n = 100; n < 120; ++n) {
    after->send(0, from_client(n, kAck, 1001, 5001));
    EXPECT_NE(after->trace.entry, dp::kNoIndex) << n;
  }
  EXPECT_TRUE(after.agrees());
}

TEST(Adoption, EntriesThatAreNone) {
  using E = dp::FlowEntry;
  struct Row {
    const char* what;
    std::function<void(E&)> change;
    LeftOut reason;
  };
  const Row rows[] = {
      {"not whole", [](E& e) { e.adoption = 0; }, LeftOut::kTorn},
      {"adoption word", [](E& e) { e.adoption = 2; }, LeftOut::kDamaged},
      {"state", [](E& e) { e.state = FlowState{10}; }, LeftOut::kDamaged},
      {"protocol of another state", [](E& e) { e.state = FlowState::kUdpReplied; }, LeftOut::kDamaged},
      {"protocol", [](E& e) { e.protocol = Protocol{7}; }, LeftOut::kDamaged},
      {"flag that there is not", [](E& e) { e.flags |= 0x80; }, LeftOut::kDamaged},
      {"provisional slot without a slot",
       [](E& e) { e.flags = static_cast<uint8_t>((e.flags & ~dp::kHoldsSlot) | dp::kHoldsProvisional); },
       LeftOut::kDamaged},
      {"slot in TIME_WAIT", [](E& e) { e.state = FlowState::kTimeWait; }, LeftOut::kDamaged},
      {"client's port", [](E& e) { e.client_port = 0; }, LeftOut::kDamaged},
      {"client's address", [](E& e) { e.client = ip("224.0.0.1"); }, LeftOut::kDamaged},
      {"client of another family", [](E& e) { e.client = ip("2001:db8::7"); }, LeftOut::kDamaged},
      {"frontend", [](E& e) { e.frontend = 1; }, LeftOut::kDamaged},
      {"no frontend", [](E& e) { e.frontend = dp::kNoIndex; }, LeftOut::kDamaged},
      {"instance", [](E& e) { e.instance = 1; }, LeftOut::kInstanceGone},
      {"no instance", [](E& e) { e.instance = dp::kNoIndex; }, LeftOut::kInstanceGone},
      {"directions", [](E& e) { e.flags &= static_cast<uint8_t>(~dp::kTwoKeys); }, LeftOut::kModeChanged},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    KeptSite before(small_site(1, 10));
    establish(*before, 1);
    establish(*before, 2);
    row.change(before.entries()[0]);
    KeptSite after(small_site(1, 10));
    const dp::Adopted adopted = after.adopt(before);
    EXPECT_EQ(adopted.bindings, 1u);
    EXPECT_EQ(left_out(adopted), 1u);
    EXPECT_EQ(left_out(adopted, row.reason), 1u);
    EXPECT_TRUE(after.agrees());
    EXPECT_TRUE(after.audited());
  }
}

TEST(Adoption, TwoOfOneFlow) {
  KeptSite before(small_site(1, 10));
  establish(*before, 1);
  before.entries()[7] = before.entries()[0];
  KeptSite after(small_site(1, 10));
  const dp::Adopted adopted = after.adopt(before);
  EXPECT_EQ(adopted.bindings, 1u);
  EXPECT_EQ(left_out(adopted, LeftOut::kDuplicate), 1u);
  EXPECT_TRUE(after.agrees());
}

// Killed between the end of a session and the state that says so.
TEST(Adoption, SlotGivenBackBeforeTheState) {
  KeptSite before(small_site(1, 10));
  establish(*before, 1);
  before.entries()[0].flags &= static_cast<uint8_t>(~dp::kHoldsSlot);
  KeptSite after(small_site(1, 10));
  const dp::Adopted adopted = after.adopt(before);
  EXPECT_EQ(adopted.bindings, 1u);
  EXPECT_EQ(adopted.sessions, 0u);
  EXPECT_EQ(after.entries()[0].state, FlowState::kTimeWait);
  after->pass(61 * kSecond);  // Part C: TIME_WAIT 60 s
  EXPECT_TRUE(after->empty());
}

// A time of the future is of no clock: it does not keep a binding for ever.
TEST(Adoption, LastSeenInTheFuture) {
  KeptSite before(small_site(1, 10));
  establish(*before, 1);
  before.entries()[0].last_seen += 1u << 30;
  KeptSite after(small_site(1, 10));
  after.adopt(before);
  after->pass(301 * kSecond);
  EXPECT_TRUE(after->empty());
}

// An instance that is gone from its SCI's health: adopted, and ended as any other (SCI-85).
TEST(Adoption, InstanceThatKeepsNoSessions) {
  KeptSite before(small_site(1, 10));
  establish(*before, 1);
  KeptSite after(small_site(1, 10));
  after->table->instances.edit(0).health = dp::HealthState::kUnhealthy;
  EXPECT_EQ(after.adopt(before).sessions, 1u);
  after->pass(kSecond);
  EXPECT_EQ(after->ended(0, EndReason::kUnhealthy), 1u);
  EXPECT_TRUE(after->empty());
}

TEST(Adoption, AnyBytesAsEntries) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  for (int n = 0; n < 50; ++n) {
    KeptSite before(short_lived_site(20), 2);
    for (unsigned k = 0; k < 20; ++k) random.one_in(2) ? establish(*before, k) : open(*before, k);
    for (dp::WorkerIndex w = 0; w < 2; ++w) {
      const auto bytes = std::as_writable_bytes(before.entries(w));
      for (uint32_t flips = random.below(200); flips > 0; --flips) {
        bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
      }
    }
    KeptSite after(short_lived_site(20), static_cast<dp::WorkerIndex>(1 + random.below(3)));
    after.adopt(before);
    ASSERT_TRUE(after.agrees()) << n;
    ASSERT_TRUE(after.audited()) << n;
    after->pass(6 * kSecond);
    ASSERT_TRUE(after->empty()) << n;
  }
}

}  // namespace
}  // namespace margay::test
