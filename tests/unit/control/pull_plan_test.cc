// SPDX-License-Identifier: Apache-2.0
// When SCIs are asked for their reports (CSMA-29, CSMA-31, CSMA-69).
#include "control/agent/pull_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace margay::control {
namespace {

using Names = std::vector<std::string>;

PullTarget target(const std::string& csci_id, Nanoseconds every = 60 * kSecond) {
  return {.csci_id = csci_id, .grpc = "h:1", .every = every};
}

struct Rig {
  explicit Rig(const std::vector<PullTarget>& targets, uint64_t seed = 1) : plan(seed) { plan.configure(targets, now); }
  Names begin_at(Nanoseconds when) {
    now = when;
    return plan.begin(now);
  }
  const PullPlan::Pull& of(const std::string& csci_id) const { return plan.pulls().at(csci_id); }

  Nanoseconds now = 1000 * kSecond;
  PullPlan plan;
};

TEST(PullPlan, BeginsWithinASecondAndGoesByItsInterval) {
  Rig r({target("a")});
  EXPECT_LE(r.plan.next_due(), 1001 * kSecond);
  EXPECT_EQ(r.begin_at(1001 * kSecond), Names{"a"});
  EXPECT_EQ(r.plan.next_due(), kNever);  // one question at a time
  EXPECT_EQ(r.begin_at(1500 * kSecond), Names{});
  // An answer that takes its time does not move the next question.
  const auto finished = r.plan.answered("a", 1004 * kSecond);
  ASSERT_TRUE(finished);
  EXPECT_FALSE(finished->wanted);
  EXPECT_EQ(r.plan.next_due(), 1061 * kSecond);
  EXPECT_EQ(r.of("a").answered, 1u);
}

TEST(PullPlan, ManyBeginSpreadOverTheSecond) {
  std::vector<PullTarget> targets;
  for (int i = 0; i < 1000; ++i) targets.push_back(target(std::to_string(i)));
  const Rig r(targets);
  const auto early = std::count_if(r.plan.pulls().begin(), r.plan.pulls().end(),
                                   [](const auto& p) { return p.second.due < 1000 * kSecond + kSecond / 2; });
  EXPECT_GT(early, 400);
  EXPECT_LT(early, 600);
}

TEST(PullPlan, FailuresAreTriedAgainByABackoffOfAtMostTheInterval) {
  Rig r({target("a", 5 * kSecond)});
  Nanoseconds now = 1001 * kSecond;
  // 1, 2, 4, 5, 5 s, each a quarter more or less
  for (const Nanoseconds nominal : {1 * kSecond, 2 * kSecond, 4 * kSecond, 5 * kSecond, 5 * kSecond}) {
    ASSERT_EQ(r.begin_at(now), Names{"a"});
    ASSERT_TRUE(r.plan.failed("a", "refused", now));
    const Nanoseconds wait = r.plan.next_due() - now;
    EXPECT_GE(wait, nominal - nominal / 4);
    EXPECT_LE(wait, nominal + nominal / 4);
    now = r.plan.next_due();
  }
  EXPECT_EQ(r.of("a").failed, 5u);
  EXPECT_EQ(r.plan.totals().failed, 5u);
  ASSERT_EQ(r.begin_at(now), Names{"a"});
  ASSERT_TRUE(r.plan.answered("a", now));
  EXPECT_EQ(r.plan.next_due(), now + 5 * kSecond);
  ASSERT_EQ(r.begin_at(r.plan.next_due()), Names{"a"});
  ASSERT_TRUE(r.plan.failed("a", "refused", r.now));
  EXPECT_LE(r.plan.next_due(), r.now + 1250 * kMillisecond);  // begun anew
}

TEST(PullPlan, OneFaultIsNewsOnce) {
  Rig r({target("a", kSecond)});
  const auto fail = [&](const char* why) {
    r.begin_at(r.plan.next_due());
    return r.plan.failed("a", why, r.now)->news;
  };
  EXPECT_TRUE(fail("refused"));
  EXPECT_FALSE(fail("refused"));
  EXPECT_TRUE(fail("timed out"));
  r.begin_at(r.plan.next_due());
  EXPECT_TRUE(r.plan.answered("a", r.now)->news);
  r.begin_at(r.plan.next_due());
  EXPECT_FALSE(r.plan.answered("a", r.now)->news);
  EXPECT_EQ(r.of("a").fault, "");
}

TEST(PullPlan, WhatTheCoreWantsGoesAtOnceAndFirst_CSMA69) {
  std::vector<PullTarget> targets;
  for (size_t i = 0; i < PullPlan::kAtOnceMax + 10; ++i) targets.push_back(target(std::to_string(i)));
  targets.push_back(target("zz"));
  Rig r(targets);
  ASSERT_TRUE(r.plan.want("zz"));
  EXPECT_FALSE(r.plan.want("unknown"));
  EXPECT_EQ(r.begin_at(r.now), Names{"zz"});
  ASSERT_TRUE(r.plan.want("zz"));  // it is under way: that answer counts
  EXPECT_TRUE(r.plan.failed("zz", "refused", r.now)->wanted);
  r.now = 1001 * kSecond;
  ASSERT_TRUE(r.plan.want("zz"));
  EXPECT_EQ(r.begin_at(r.now).front(), "zz");
  EXPECT_TRUE(r.plan.answered("zz", r.now)->wanted);
  EXPECT_FALSE(r.plan.answered("zz", r.now));  // once
}

TEST(PullPlan, SoManyAtOnceAndNoMore) {
  std::vector<PullTarget> targets;
  for (size_t i = 0; i < 3 * PullPlan::kAtOnceMax; ++i) targets.push_back(target(std::to_string(i)));
  Rig r(targets);
  const Names first = r.begin_at(1001 * kSecond);
  EXPECT_EQ(first.size(), PullPlan::kAtOnceMax);
  EXPECT_EQ(r.plan.next_due(), kNever);
  EXPECT_EQ(r.begin_at(1002 * kSecond), Names{});
  r.plan.answered(first[0], r.now);
  EXPECT_EQ(r.begin_at(1002 * kSecond).size(), 1u);
}

TEST(PullPlan, OneWithoutAnIntervalIsAskedOnDemand_CSMA31) {
  Rig r({target("a", 0)});
  EXPECT_EQ(r.plan.next_due(), kNever);
  ASSERT_TRUE(r.plan.want("a"));
  EXPECT_EQ(r.begin_at(r.now), Names{"a"});
  r.plan.failed("a", "refused", r.now);
  EXPECT_EQ(r.plan.next_due(), kNever);  // the core says when again
}

TEST(PullPlan, AReloadKeepsWhatStays) {
  Rig r({target("a"), target("b"), target("c")});
  ASSERT_EQ(r.begin_at(1001 * kSecond).size(), 3u);
  r.plan.failed("b", "refused", r.now);
  const Nanoseconds due = r.plan.next_due();
  r.plan.configure({target("a"), target("b"), target("c", 5 * kSecond), target("d")}, r.now);
  EXPECT_TRUE(r.of("a").under_way);
  EXPECT_EQ(r.of("b").due, due);
  EXPECT_EQ(r.of("b").fault, "refused");
  EXPECT_FALSE(r.plan.answered("c", r.now));  // that was another question
  EXPECT_LE(r.of("d").due, r.now + kSecond);
  EXPECT_TRUE(r.plan.answered("a", r.now));
  r.plan.configure({}, r.now);
  EXPECT_EQ(r.plan.next_due(), kNever);
  EXPECT_FALSE(r.plan.want("a"));
}

}  // namespace
}  // namespace margay::control
