// SPDX-License-Identifier: Apache-2.0
// Both ends of the shared table over a real socket, and a control plane that does everything wrong.
#include "dataplane/table_link.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>

#include <gtest/gtest.h>

#include "common/shared_table/writer.h"
#include "tests/support/temp_folder.h"

namespace margay::dp {
namespace {

using namespace std::chrono_literals;
using shared_table::MemoryFile;
using shared_table::Message;
using shared_table::MessageKind;
using shared_table::Received;
using shared_table::Snapshot;
using shared_table::Writer;

Snapshot snapshot_of(uint64_t generation, uint64_t base = 0) {
  shared_table::SciRecord sci;
  sci.policy.csci_id = "192.0.2.10:80";
  sci.policy.cs_id = "ARS";
  sci.policy.endpoints = {{*IpAddress::parse("192.0.2.10"), 80, Protocol::kTcp}};
  Snapshot s;
  s.generation = generation;
  s.base = base;
  s.scis = {sci};
  return s;
}

struct Target : SnapshotTarget {
  uint64_t generation() const override { return applied.empty() ? 0 : applied.back().generation; }
  Snapshot complete() const override { return applied.back(); }
  Result<void> apply(const Snapshot& s) override {
    if (!refusal.empty()) return Error{refusal};
    applied.push_back(s);
    return {};
  }
  std::vector<Snapshot> applied;
  std::string refusal;
};

class TableLinkTest : public ::testing::Test {
 protected:
  TableLinkTest() { link_ = std::move(*TableLink::open(path(), target_, counters_)); }

  std::string path() const { return folder_.path() + "/dataplane.sock"; }

  Result<std::unique_ptr<Writer>> connect() {
    auto writer = std::async(std::launch::async, [this] { return Writer::connect(path(), 5s); });
    while (writer.wait_for(0s) != std::future_status::ready) link_->poll(1ms);
    return writer.get();
  }

  // A connection that is welcomed and speaks for itself.
  Fd connect_raw(Message* hello = nullptr, std::vector<Fd>* descriptors = nullptr) {
    Fd socket = std::move(*connect_unix(path(), SOCK_SEQPACKET));
    link_->poll(1s);
    Received received = shared_table::receive(socket.get(), 2);
    EXPECT_EQ(received.state, Received::State::kMessage);
    if (hello != nullptr) *hello = received.message;
    if (descriptors != nullptr) *descriptors = std::move(received.descriptors);
    return socket;
  }

  MemoryFile counters_ = std::move(*MemoryFile::create("counters", 4096, MemoryFile::Writers::kMaker));
  Target target_;
  test::TempFolder folder_;
  std::unique_ptr<TableLink> link_;
};

TEST_F(TableLinkTest, ACommitIsAppliedAndAcked) {
  auto writer = connect();
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_FALSE((*writer)->running());
  ASSERT_TRUE((*writer)->commit(snapshot_of(1)));
  link_->poll(1s);
  ASSERT_EQ(target_.applied.size(), 1u);
  EXPECT_EQ(target_.applied[0], snapshot_of(1));
  EXPECT_FALSE((*writer)->news().acked);
  link_->acked(1);
  EXPECT_EQ((*writer)->news().acked, 1u);
  link_->stalled(3);
  EXPECT_EQ((*writer)->news().stalled, std::vector<uint32_t>{3});
  EXPECT_EQ(link_->status().control, ::getpid());
}

TEST_F(TableLinkTest, TheNextControlPlaneReadsBackWhatRuns) {
  target_.applied = {snapshot_of(41)};
  auto writer = connect();
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE((*writer)->running());
  EXPECT_EQ(*(*writer)->running(), snapshot_of(41));
}

TEST_F(TableLinkTest, ARefusalCarriesItsReasonAndGivesTheBufferBack) {
  auto writer = connect();
  target_.refusal = "scis[x]: no port reaches it";
  for (uint64_t generation = 1; generation <= 10; ++generation) {
    ASSERT_TRUE((*writer)->commit(snapshot_of(generation)));
    link_->poll(1s);
    const auto news = (*writer)->news();
    ASSERT_EQ(news.refused.size(), 1u);
    EXPECT_EQ(news.refused[0].generation, generation);
    EXPECT_EQ(news.refused[0].why, target_.refusal);
  }
  EXPECT_EQ(link_->status().refused, 10u);
  EXPECT_EQ(link_->status().last_refusal, target_.refusal);
}

TEST_F(TableLinkTest, EveryBufferLentMeansWait) {
  auto writer = connect();
  for (uint32_t i = 1; i <= shared_table::kBuffers; ++i) ASSERT_TRUE((*writer)->commit(snapshot_of(i)));
  EXPECT_FALSE((*writer)->commit(snapshot_of(9)));
  link_->poll(1s);
  EXPECT_FALSE((*writer)->news().gone);
  EXPECT_TRUE((*writer)->commit(snapshot_of(9)));
}

TEST_F(TableLinkTest, ASecondControlPlaneIsTold) {
  auto first = connect();
  auto second = connect();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            path() + ": process " + std::to_string(::getpid()) + " is connected as control plane");
  ASSERT_TRUE((*first)->commit(snapshot_of(1)));
  link_->poll(1s);
  EXPECT_EQ(target_.applied.size(), 1u) << "the first one is still served";
  first->reset();
  link_->poll(1s);
  EXPECT_EQ(link_->status().control, 0);
  EXPECT_TRUE(connect());
}

TEST_F(TableLinkTest, NeitherSideCanTakeMemoryAway) {
  std::vector<Fd> descriptors;
  const Fd socket = connect_raw(nullptr, &descriptors);
  ASSERT_EQ(descriptors.size(), 2u);
  for (const Fd& fd : descriptors) {
    EXPECT_NE(::ftruncate(fd.get(), 0), 0);
    EXPECT_NE(::ftruncate(fd.get(), 1 << 30), 0);
    EXPECT_NE(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  }
  void* counters = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[1].get(), 0);
  EXPECT_EQ(counters, MAP_FAILED) << "counters are read-only for the control plane";
  EXPECT_NE(::pwrite(descriptors[1].get(), "x", 1, 0), 1);
}

class Hostile : public TableLinkTest {
 protected:
  Hostile() : socket_(connect_raw(nullptr, &descriptors_)) {
    buffers_ = std::move(*MemoryFile::adopt(std::move(descriptors_[0]),
                                            shared_table::kBuffers * shared_table::kSnapshotBytesMax,
                                            MemoryFile::Writers::kBoth));
  }

  Message good(uint64_t generation = 1) {
    const std::vector<std::byte> bytes = shared_table::encode(snapshot_of(generation));
    std::copy(bytes.begin(), bytes.end(), buffers_->bytes().begin());
    Message m;
    m.kind = MessageKind::kCommit;
    m.generation = generation;
    m.length = bytes.size();
    m.checksum = shared_table::checksum(bytes);
    return m;
  }
  // The text of the answer; "taken", or "closed".
  std::string answer(const Message& m) {
    EXPECT_EQ(shared_table::send(socket_.get(), m), shared_table::SendResult::kSent);
    return answer();
  }
  std::string answer() {
    link_->poll(1s);
    const Received r = shared_table::receive(socket_.get());
    if (r.state != Received::State::kMessage) return "closed";
    return r.message.kind == MessageKind::kTaken ? "taken" : std::string(r.message.said());
  }

  std::vector<Fd> descriptors_;
  Fd socket_;
  std::optional<MemoryFile> buffers_;
};

TEST_F(Hostile, AWrongCommitIsRefusedByItsReason) {
  Message m = good();
  m.buffer = 3;
  EXPECT_EQ(answer(m), "buffer 3, expected 0 to 2");
  m = good();
  m.length = shared_table::kSnapshotBytesMax + 1;
  EXPECT_EQ(answer(m), "length 16777217, expected at most 16777216");
  m = good();
  m.length = 0;
  EXPECT_EQ(answer(m), "checksum of buffer 0 is not the one that the commit names");
  m = good();
  m.generation = 2;
  EXPECT_EQ(answer(m), "generation 1 in the snapshot, 2 in the commit");
  m = good();
  m.length = m.length - 1;
  m.checksum = shared_table::checksum(std::as_const(*buffers_).bytes().first(m.length));
  EXPECT_EQ(answer(m), "removed: ends early");
  m = good();
  buffers_->bytes()[40] ^= std::byte{1};
  EXPECT_EQ(answer(m), "checksum of buffer 0 is not the one that the commit names");
  EXPECT_EQ(target_.applied.size(), 0u);
  EXPECT_EQ(answer(good()), "taken");
  EXPECT_EQ(target_.applied.size(), 1u);
}

TEST_F(Hostile, WhatIsNoMessageEndsTheConnection) {
  Message m = good();
  m.kind = MessageKind::kAck;
  EXPECT_EQ(answer(m), "closed");
  EXPECT_EQ(link_->status().last_refusal, "sent a message that is the data plane's to send");
  EXPECT_EQ(link_->status().control, 0);
}

TEST_F(Hostile, AMessageOfAnotherSizeEndsTheConnection) {
  const Message m = good();
  ASSERT_EQ(::send(socket_.get(), &m, 100, MSG_NOSIGNAL), 100);
  EXPECT_EQ(answer(), "closed");
  EXPECT_EQ(link_->status().last_refusal, "sent a message of 100 bytes, expected 256");
}

TEST_F(Hostile, AnotherVersionEndsTheConnection) {
  Message m = good();
  m.version = 2;
  EXPECT_EQ(answer(m), "closed");
  EXPECT_EQ(link_->status().last_refusal, "sent protocol version 2, expected 1");
}

TEST_F(Hostile, DescriptorsThatNobodyAskedForEndTheConnection) {
  const std::array<int, 1> mine{0};
  ASSERT_EQ(shared_table::send(socket_.get(), good(), mine), shared_table::SendResult::kSent);
  EXPECT_EQ(answer(), "closed");
  EXPECT_EQ(link_->status().last_refusal, "sent descriptors that nobody asked for");
}

TEST_F(Hostile, AClosedConnectionLeavesTheTable) {
  EXPECT_EQ(answer(good()), "taken");
  socket_.reset();
  link_->poll(1s);
  EXPECT_EQ(link_->status().control, 0);
  EXPECT_EQ(target_.generation(), 1u);
  EXPECT_TRUE(connect());
}

TEST_F(Hostile, WhoReadsNoAnswersIsLeft) {
  const Message m = good();
  for (int i = 0; i < 100'000 && link_->status().control != 0; ++i) {
    (void)shared_table::send(socket_.get(), m);
    link_->poll(0ms);
  }
  EXPECT_EQ(link_->status().control, 0);
  EXPECT_EQ(link_->status().last_refusal, "reads no answers");
}

// Buffers belong to one connection: who kept an old mapping writes into nothing.
TEST_F(Hostile, AnOldMappingReachesNothing) {
  EXPECT_EQ(answer(good()), "taken");
  socket_.reset();
  link_->poll(1s);
  auto writer = connect();
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->commit(snapshot_of(2)));
  std::fill(buffers_->bytes().begin(), buffers_->bytes().begin() + 4096, std::byte{0xee});
  link_->poll(1s);
  EXPECT_TRUE((*writer)->news().refused.empty());
  EXPECT_EQ(target_.generation(), 2u);
}

}  // namespace
}  // namespace margay::dp
