// SPDX-License-Identifier: Apache-2.0
// What is counted and timed of an instance as its flows' packets pass by.
#include <gtest/gtest.h>

#include "tests/support/small_site.h"

namespace margay::test {
namespace {

using dp::kMillisecond;
using dp::kSecond;

const char* const kClient = "198.51.100.7:40000";

class InstanceCountersTest : public ::testing::Test {
 protected:
  explicit InstanceCountersTest(Protocol protocol = Protocol::kTcp)
      : site_(small_site(1, 10, dp::Balance::kRoundRobin, dp::Mode::kNat, protocol)) {}

  void client(unsigned flags, uint32_t seq, uint32_t ack = 0, size_t payload = 0) {
    site_.send(0,
               tcp(kClient, kSci).flags(flags).seq(seq).ack(ack).payload_size(payload).ether(kSiteRouter, kSitePort0));
  }
  void instance(unsigned flags, uint32_t seq, uint32_t ack, size_t payload = 0) {
    const auto from = mac("02:00:00:01:00:01");
    site_.send(
        1, tcp("10.1.0.11:8080", kClient).flags(flags).seq(seq).ack(ack).payload_size(payload).ether(from, kSitePort1));
  }
  void establish() {
    client(kSyn, 1000);
    instance(kSyn | kAck, 5000, 1001);
    client(kAck, 1001, 5001);
  }
  void wait(dp::Nanoseconds time) { site_.now += time; }
  const InstanceCounters& counted() { return site_.shared.counters(0, 0); }
  static Histogram of(const DurationCounters& counters) {
    Histogram h;
    counters.add_to(h);
    return h;
  }
  Histogram handshakes() { return of(site_.shared.times(0, 0).handshakes); }
  Histogram responses() { return of(site_.shared.times(0, 0).responses); }

  SmallSite site_;
};

TEST_F(InstanceCountersTest, AHandshakeLastsFromTheSynToItsAnswer) {
  client(kSyn, 1000);
  wait(3 * kMillisecond);
  client(kSyn, 1000);  // repeated: the first one counts
  wait(4 * kMillisecond);
  instance(kSyn | kAck, 5000, 1001);
  wait(kMillisecond);
  instance(kSyn | kAck, 5000, 1001);  // repeated
  EXPECT_EQ(handshakes().count(), 1u);
  EXPECT_EQ(handshakes().sum, 7 * kMillisecond);
  client(kAck, 1001, 5001);
  EXPECT_EQ(site_.trace.state_after, dp::FlowState::kEstablished) << "the instance's numbers are its own";
  EXPECT_EQ(handshakes().count(), 1u);
}

TEST_F(InstanceCountersTest, AResponseLastsFromTheLastNewDataOfARequestToItsFirst) {
  establish();
  client(kAck, 1001, 5001, 100);
  wait(5 * kMillisecond);
  client(kAck, 1101, 5001, 50);  // the rest of the request
  wait(2 * kMillisecond);
  client(kAck, 1101, 5001, 50);  // the same again: no new data
  instance(kAck, 5001, 1151);    // no data
  EXPECT_EQ(responses().count(), 0u);
  wait(7 * kMillisecond);
  instance(kAck, 5001, 1151, 200);
  wait(kMillisecond);
  instance(kAck, 5201, 1151, 200);  // more of the response
  EXPECT_EQ(responses().count(), 1u);
  EXPECT_EQ(responses().sum, 9 * kMillisecond);
  client(kAck, 1151, 5401, 10);
  wait(kMillisecond);
  instance(kAck, 5001, 1151, 200);  // the old response once more
  EXPECT_EQ(responses().count(), 1u);
  wait(kMillisecond);
  instance(kAck, 5401, 1161, 1);
  EXPECT_EQ(responses().count(), 2u);
  EXPECT_EQ(responses().sum, 11 * kMillisecond);
}

TEST_F(InstanceCountersTest, DataThatNobodyAskedForIsNoResponse) {
  establish();
  instance(kAck, 5001, 1001, 20);  // it speaks first
  EXPECT_EQ(responses().count(), 0u);
}

// The entry of a flow that asked and got no answer serves another flow, whose instance speaks first.
TEST_F(InstanceCountersTest, ARequestEndsWithItsFlow) {
  establish();
  client(kAck, 1001, 5001, 100);
  client(kRst | kAck, 1101, 5001);
  site_.pass(3 * kSecond);
  ASSERT_TRUE(site_.empty());
  establish();
  instance(kAck, 5001, 1001, 20);
  EXPECT_EQ(responses().count(), 0u);
}

// D-45: provisional until the client acknowledges the instance's own number.
TEST_F(InstanceCountersTest, ProvisionalIsWhatIsNotProven) {
  client(kSyn, 1000);
  EXPECT_EQ(counted().provisional.get(), 1u);
  instance(kSyn | kAck, 5000, 1001);
  EXPECT_EQ(counted().provisional.get(), 1u);
  client(kAck, 1001, 5001);
  EXPECT_EQ(counted().provisional.get(), 0u);
  EXPECT_EQ(counted().active.get(), 1u);
}

TEST_F(InstanceCountersTest, SynWithoutAnAnswer) {
  client(kSyn, 1000);
  site_.pass(6 * kSecond);
  EXPECT_EQ(counted().syn_unanswered.get(), 1u);
  EXPECT_EQ(counted().provisional.get(), 0u);
  client(kSyn, 1000);
  instance(kSyn | kAck, 5000, 1001);
  site_.pass(6 * kSecond);
  EXPECT_EQ(counted().syn_unanswered.get(), 1u) << "answered, and given up by the client";
}

TEST_F(InstanceCountersTest, ResetsAreTheInstancesOwn) {
  client(kSyn, 1000);
  instance(kRst | kAck, 0, 1001);
  instance(kRst | kAck, 0, 1001);
  EXPECT_EQ(counted().resets.get(), 1u);
  site_.pass(3 * kSecond);
  EXPECT_EQ(counted().syn_unanswered.get(), 0u) << "a reset is an answer";
  establish();
  client(kRst | kAck, 1001, 5001);
  EXPECT_EQ(counted().resets.get(), 1u);
}

// An index that serves another instance begins at 0, its times too.
TEST_F(InstanceCountersTest, AnotherInstanceBeginsAtZero) {
  establish();
  client(kAck, 1001, 5001, 100);
  instance(kAck, 5001, 1101, 20);
  client(kRst | kAck, 1101, 5021);
  site_.pass(3 * kSecond);
  ASSERT_EQ(handshakes().count() + responses().count(), 2u);
  site_.shared.serve(0, 0, 1);
  EXPECT_EQ(handshakes().count(), 1u) << "the same one";
  site_.shared.serve(0, 0, 2);
  EXPECT_EQ(handshakes(), Histogram());
  EXPECT_EQ(responses(), Histogram());
  EXPECT_EQ(counted().opened.get(), 0u);
}

class UdpInstanceCountersTest : public InstanceCountersTest {
 protected:
  UdpInstanceCountersTest() : InstanceCountersTest(Protocol::kUdp) {}
};

TEST_F(UdpInstanceCountersTest, AResponseToTheFirstDatagramAndToLaterOnes) {
  const auto ask = [&] { site_.send(0, udp(kClient, kSci).payload_size(30).ether(kSiteRouter, kSitePort0)); };
  const auto answer = [&] {
    site_.send(1, udp("10.1.0.11:8080", kClient).payload_size(60).ether(mac("02:00:00:01:00:01"), kSitePort1));
  };
  ask();
  wait(2 * kMillisecond);
  answer();
  answer();
  ask();
  wait(4 * kMillisecond);
  answer();
  EXPECT_EQ(responses().count(), 2u);
  EXPECT_EQ(responses().sum, 6 * kMillisecond);
}

}  // namespace
}  // namespace margay::test
