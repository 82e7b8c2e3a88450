// SPDX-License-Identifier: Apache-2.0
// The DPDK shell over software rings: every outcome is carried out, every refusal is a named drop, and every
// packet buffer comes back. Expected frames come from tests/support/packet_builder.h, built from the RFCs.

#include "dataplane/dpdk/port_io.h"

#include <gtest/gtest.h>
#include <rte_eal.h>
#include <spdlog/spdlog.h>

#include "common/rcu.h"
#include "dataplane/core/fast_path.h"
#include "dataplane/dpdk/clock.h"
#include "dataplane/worker.h"
#include "tests/eal/rig.h"
#include "tests/support/test_arena.h"

namespace margay::dp {
namespace {

using test::Bytes;
using test::kSyn;
using test::tcp;

const MacAddress kForwarder = test::mac("02:00:00:00:00:01");
const MacAddress kPort0 = test::mac("02:00:00:00:0f:00");
const MacAddress kPort1 = test::mac("02:00:00:00:0f:01");
const MacAddress kInstance = test::mac("02:00:00:00:01:11");

Bytes numbered_frame(uint32_t number) {
  return tcp("198.51.100.7:40000", "192.0.2.10:80").seq(number).ether(kForwarder, kPort0).build();
}

uint64_t drops(const WorkerCounters& counters, DropReason reason) {
  return counters.drops[static_cast<size_t>(reason)].get();
}

// One worker's shell, with outcomes given by the test.
struct Shell {
  Shell(Rig& rig, WorkerIndex self) : io(rig.ports(), self) {}

  uint32_t receive(PortIndex port) {
    io.receive(port, burst, counters);
    return burst.count;
  }
  uint32_t take_over() {
    io.receive_handed_over(burst, counters);
    return burst.count;
  }
  void all(Outcome outcome) {
    for (uint32_t i = 0; i < burst.count; ++i) burst.outcomes[i] = outcome;
    io.carry_out(burst, counters);
  }

  PortIo io;
  Burst burst;
  WorkerCounters counters;
};

TEST(PortIo, TransmitsWhatTheFastPathLeftOfAPacket) {
  Rig rig(two_port_site(1), 1);
  Shell shell(rig, 0);
  const Bytes frame = numbered_frame(1);
  rig.arrive(0, 0, frame);
  ASSERT_EQ(shell.receive(0), 1u);
  Packet& packet = shell.burst.packets[0];
  EXPECT_EQ(packet.port, 0);
  EXPECT_EQ(packet.length, frame.size());
  EXPECT_GE(packet.headroom, 8);
  packet.trim_front(4);
  packet.prepend(8);
  std::memset(packet.data, 0xab, 8);
  packet.resize(static_cast<uint16_t>(packet.length - 3));
  shell.all(Outcome::transmit(1));

  Bytes expected(8, 0xab);
  expected.insert(expected.end(), frame.begin() + 4, frame.end() - 3);
  EXPECT_EQ(rig.sent(1, 0), std::vector<Bytes>{expected});
  EXPECT_EQ(rig.sent(0, 0), std::vector<Bytes>{});
  EXPECT_EQ(shell.counters.transmitted.get(), 1u);
}

TEST(PortIo, FullTransmitRingIsANamedDropAndFreesThePackets) {
  Rig rig(two_port_site(1), 1, 16);  // room for 15
  const unsigned before = rig.free_buffers();
  Shell shell(rig, 0);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 10; ++i) rig.arrive(0, 0, numbered_frame(i));
    ASSERT_EQ(shell.receive(0), 10u);
    shell.all(Outcome::transmit(1));
  }
  EXPECT_EQ(shell.counters.transmitted.get(), 15u);
  EXPECT_EQ(drops(shell.counters, DropReason::kTransmitFull), 5u);
  EXPECT_EQ(rig.free_buffers(), before - 15);
  EXPECT_EQ(rig.sent(1, 0).size(), 15u);
  EXPECT_EQ(rig.free_buffers(), before);
}

// The second port stands in for the first one's kernel interface.
TEST(PortIo, FullKernelInterfaceIsANamedDropAndFreesThePackets) {
  Rig rig(two_port_site(1), 1, 16);  // room for 15
  const unsigned before = rig.free_buffers();
  Wiring& wiring = rig.ports().wiring();
  wiring.kernels[0].emplace(std::move(wiring.ports[1]));
  wiring.ports.pop_back();
  Shell shell(rig, 0);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 10; ++i) rig.arrive(0, 0, numbered_frame(i));
    ASSERT_EQ(shell.receive(0), 10u);
    shell.all(Outcome::kernel(0));
  }
  EXPECT_EQ(shell.counters.to_kernel.get(), 15u);
  EXPECT_EQ(drops(shell.counters, DropReason::kKernelFull), 5u);
  EXPECT_EQ(drops(shell.counters, DropReason::kTransmitFull), 0u);
  EXPECT_EQ(rig.sent(1, 0).size(), 15u);
  EXPECT_EQ(rig.free_buffers(), before);
}

TEST(PortIo, HandedOverPacketsArriveWholeInOrderAndKeepTheirFirstPort) {
  Rig rig(two_port_site(2), 2);
  Shell first(rig, 0), second(rig, 1);
  for (uint32_t i = 0; i < 5; ++i) rig.arrive(1, 0, numbered_frame(i));
  ASSERT_EQ(first.receive(1), 5u);
  first.all(Outcome::hand_over(1));
  EXPECT_EQ(first.counters.handed_over.get(), 5u);
  ASSERT_EQ(second.take_over(), 5u);
  EXPECT_EQ(second.counters.taken_over.get(), 5u);
  for (uint32_t i = 0; i < 5; ++i) {
    const Packet& packet = second.burst.packets[i];
    EXPECT_EQ(packet.port, 1);
    EXPECT_EQ(Bytes(packet.data, packet.data + packet.length), numbered_frame(i));
  }
  second.all(Outcome::transmit(0));
  EXPECT_EQ(rig.sent(0, 1).size(), 5u);
  EXPECT_EQ(first.take_over(), 0u);
}

TEST(PortIo, FullHandOverRingIsANamedDropAndFreesThePackets) {
  Rig rig(two_port_site(2), 2);
  const unsigned before = rig.free_buffers();
  Shell first(rig, 0), second(rig, 1);
  const uint32_t room = kRingPackets - 1;
  for (uint32_t given = 0; given < room + 9;) {
    const uint32_t count = std::min<uint32_t>(kBurstMax, room + 9 - given);
    for (uint32_t i = 0; i < count; ++i) rig.arrive(0, 0, numbered_frame(i));
    ASSERT_EQ(first.receive(0), count);
    first.all(Outcome::hand_over(1));
    given += count;
  }
  EXPECT_EQ(first.counters.handed_over.get(), room);
  EXPECT_EQ(drops(first.counters, DropReason::kHandOverFull), 9u);
  while (second.take_over() > 0) second.all(Outcome::drop(DropReason::kStopped));
  EXPECT_EQ(second.counters.taken_over.get(), room);
  EXPECT_EQ(rig.free_buffers(), before);
}

TEST(PortIo, DroppedAndConsumedPacketsAreFreedHeldOnesAreNot) {
  Rig rig(two_port_site(1), 1);
  const unsigned before = rig.free_buffers();
  Shell shell(rig, 0);
  for (uint32_t i = 0; i < 3; ++i) rig.arrive(0, 0, numbered_frame(i));
  ASSERT_EQ(shell.receive(0), 3u);
  const Packet held = shell.burst.packets[1];
  shell.burst.outcomes[0] = Outcome::drop(DropReason::kStopped);
  shell.burst.outcomes[1] = Outcome::held();
  shell.burst.outcomes[2] = Outcome::consumed();
  shell.io.carry_out(shell.burst, shell.counters);
  EXPECT_EQ(rig.free_buffers(), before - 1);

  shell.burst.packets[0] = held;
  shell.burst.count = 1;
  shell.all(Outcome::transmit(1));
  EXPECT_EQ(rig.sent(1, 0), std::vector<Bytes>{numbered_frame(1)});
  EXPECT_EQ(rig.free_buffers(), before);
}

TEST(PortIo, PacketInTwoBuffersIsANamedDrop) {
  Rig rig(two_port_site(1), 1);
  const unsigned before = rig.free_buffers();
  Shell shell(rig, 0);
  rte_mbuf* m = rig.make(numbered_frame(1));
  ASSERT_EQ(rte_pktmbuf_chain(m, rig.make(Bytes(100, 1))), 0);
  rig.arrive(0, 0, m);
  rig.arrive(0, 0, numbered_frame(2));
  ASSERT_EQ(shell.receive(0), 1u);
  EXPECT_EQ(drops(shell.counters, DropReason::kMultiSegment), 1u);
  EXPECT_EQ(shell.counters.packets.get(), 1u);
  shell.all(Outcome::consumed());
  EXPECT_EQ(rig.free_buffers(), before);
}

TEST(PortIo, TagThatTheDeviceTookOffIsBackInTheFrame) {
  Rig rig(two_port_site(1), 1);
  Shell shell(rig, 0);
  const auto packet = tcp("198.51.100.7:40000", "192.0.2.10:80").ether(kForwarder, kPort0);
  rte_mbuf* m = rig.make(packet.build());
  m->vlan_tci = 100;
  m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
  rig.arrive(0, 0, m);
  ASSERT_EQ(shell.receive(0), 1u);
  const Packet& got = shell.burst.packets[0];
  EXPECT_EQ(Bytes(got.data, got.data + got.length), packet.vlan(100).build());
  shell.all(Outcome::consumed());
}

// Two workers, devices with one queue: the second worker receives nothing and sends through the first.
TEST(PortIo, WorkerWithoutQueuesSendsThroughOneThatHasThem) {
  Rig rig(two_port_site(2), 1);
  const unsigned before = rig.free_buffers();
  Shell first(rig, 0), second(rig, 1);
  rig.arrive(0, 0, numbered_frame(7));
  EXPECT_EQ(second.receive(0), 0u);
  ASSERT_EQ(first.receive(0), 1u);
  first.all(Outcome::hand_over(1));
  ASSERT_EQ(second.take_over(), 1u);
  second.all(Outcome::transmit(1));
  EXPECT_EQ(rig.sent(1, 0), std::vector<Bytes>{});
  EXPECT_EQ(first.receive(1), 0u);
  EXPECT_EQ(rig.sent(1, 0), std::vector<Bytes>{numbered_frame(7)});
  EXPECT_EQ(first.counters.transmitted.get() + second.counters.transmitted.get(), 1u);
  EXPECT_EQ(rig.free_buffers(), before);
}

TEST(PortIo, OwnFramesAreCopiedOutOrHandedOver) {
  Rig rig(two_port_site(2), 2);
  const unsigned before = rig.free_buffers();
  Shell first(rig, 0), second(rig, 1);
  const auto table = SiteTable::build(rig.config(), rig.ports().macs());
  Outbox outbox;
  for (uint8_t i = 0; i < Outbox::kFramesMax; ++i) {
    Frame* frame = outbox.add();
    frame->bytes.fill(i);
    frame->length = 60;
    frame->port = 1;
    frame->outcome = i == 5 ? Outcome::hand_over(1) : Outcome::transmit(1);
  }
  first.io.send(outbox, *table, first.counters);
  std::vector<Bytes> expected;
  for (uint8_t i = 0; i < Outbox::kFramesMax; ++i) {
    if (i != 5) expected.emplace_back(60, i);
  }
  EXPECT_EQ(rig.sent(1, 0), expected);
  ASSERT_EQ(second.take_over(), 1u);
  EXPECT_EQ(second.burst.packets[0].port, 1);
  EXPECT_EQ(second.burst.packets[0].data[0], 5);
  EXPECT_EQ(first.counters.own_frames.get(), Outbox::kFramesMax - 1);
  second.all(Outcome::consumed());
  EXPECT_EQ(rig.free_buffers(), before);
}

TEST(PortIo, OwnFramesWithoutABufferAreNamedDrops) {
  Rig rig(two_port_site(1), 1);
  const unsigned before = rig.free_buffers();
  Shell shell(rig, 0);
  auto table = SiteTable::build(rig.config(), rig.ports().macs());
  ASSERT_TRUE(table);
  std::vector<rte_mbuf*> taken;
  while (rte_mbuf* m = rte_pktmbuf_alloc(rig.pool())) taken.push_back(m);
  rte_pktmbuf_free(taken.back());  // one is left
  taken.pop_back();
  Outbox outbox;
  for (int n = 0; n < 3; ++n) {
    Frame* frame = outbox.add();
    frame->length = 60;
    frame->outcome = Outcome::transmit(1);
  }
  shell.io.send(outbox, *table, shell.counters);
  EXPECT_EQ(drops(shell.counters, DropReason::kNoBuffer), 2u);
  EXPECT_EQ(shell.counters.own_frames.get(), 1u);
  EXPECT_EQ(rig.sent(1, 0).size(), 1u);
  for (rte_mbuf* m : taken) rte_pktmbuf_free(m);
  EXPECT_EQ(rig.free_buffers(), before);
}

// Whole workers on a real site.
class Site {
 public:
  Site(Rig& rig, uint16_t workers)
      : arena_(size_t{64} << 20),
        shared_(arena_, workers, 4, 1),
        table_(SiteTable::build(rig.config(), rig.ports().macs())),
        pointer_(table_.get()),
        mailboxes_(workers) {
    shared_.open_instances(*table_);
    for (uint16_t w = 0; w < workers; ++w) {
      FastPathConfig config;
      config.self = static_cast<WorkerIndex>(w);
      config.workers = static_cast<WorkerIndex>(workers);
      config.flows = 4096;
      config.secret.words.fill(0x9e3779b97f4a7c15);
      parts_.push_back(std::make_unique<Parts>(rig, config, *this));
    }
  }
  void poll(WorkerIndex w) { parts_[w]->worker.poll(); }
  const WorkerCounters& counters(WorkerIndex w) const { return shared_.worker_counters[w]; }

 private:
  struct Parts {
    Parts(Rig& rig, const FastPathConfig& config, Site& site)
        : io(rig.ports(), config.self),
          fast_path(config, site.shared_, site.arena_, tsc_now()),
          worker(io, fast_path, site.pointer_, site.mailboxes_[config.self], Idle::kSpin) {}
    PortIo io;
    FastPath fast_path;
    Worker<PortIo, UrcuQsbr> worker;
  };
  TestArena arena_;
  SharedState shared_;
  std::unique_ptr<SiteTable> table_;
  UrcuQsbr::Pointer<const SiteTable> pointer_;
  std::vector<Mailbox> mailboxes_;
  std::vector<std::unique_ptr<Parts>> parts_;
};

// ARP that we send is none of these tests' business.
std::vector<Bytes> sent_ip(Rig& rig, PortIndex port, uint16_t queue) {
  std::vector<Bytes> frames = rig.sent(port, queue);
  std::erase_if(frames, [](const Bytes& frame) { return frame[12] == 0x08 && frame[13] == 0x06; });
  return frames;
}

TEST(PortIoWorker, NatsAConnectionBetweenTwoPortsByteForByte) {
  Rig rig(two_port_site(1), 1);
  Site site(rig, 1);
  const auto syn = tcp("198.51.100.7:40000", "192.0.2.10:80").flags(kSyn).seq(1000);
  rig.arrive(0, 0, syn.ether(kForwarder, kPort0).build());
  site.poll(0);
  EXPECT_EQ(sent_ip(rig, 1, 0), std::vector<Bytes>{syn.to("10.1.0.11:8080").ether(kPort1, kInstance).ttl(63).build()});

  const auto reply = tcp("10.1.0.11:8080", "198.51.100.7:40000").flags(kSyn | test::kAck).seq(5000).ack(1001);
  rig.arrive(1, 0, reply.ether(kInstance, kPort1).build());
  site.poll(0);
  EXPECT_EQ(sent_ip(rig, 0, 0),
            std::vector<Bytes>{reply.from("192.0.2.10:80").ether(kPort0, kForwarder).ttl(63).build()});
}

TEST(PortIoWorker, WorkersHandOverWhatTheOtherOwnsAndNothingIsLost) {
  Rig rig(two_port_site(2), 2);
  const unsigned before = rig.free_buffers();
  Site site(rig, 2);
  constexpr int kFlows = 24;
  for (int i = 0; i < kFlows; ++i) {
    const auto client = "198.51.100.7:" + std::to_string(40000 + i);
    rig.arrive(0, 0, tcp(client, "192.0.2.10:80").flags(kSyn).ether(kForwarder, kPort0).build());
  }
  site.poll(0);
  const size_t own = sent_ip(rig, 1, 0).size();
  const uint64_t handed_over = site.counters(0).handed_over.get();
  EXPECT_GT(own, 0u);
  EXPECT_GT(handed_over, 0u);
  EXPECT_EQ(own + handed_over, kFlows);
  site.poll(1);
  EXPECT_EQ(sent_ip(rig, 1, 1).size(), handed_over);
  EXPECT_EQ(site.counters(1).taken_over.get(), handed_over);
  rig.sent(0, 0);
  rig.sent(0, 1);
  EXPECT_EQ(rig.free_buffers(), before);
}

}  // namespace
}  // namespace margay::dp

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::vector<std::string> args{"port_io_test",   "--no-huge", "--no-pci", "--no-shconf",           "--no-telemetry",
                                "--iova-mode=va", "-m",        "512",      "--log-level=*:warning", "--lcores=0"};
  std::vector<char*> pointers;
  for (std::string& arg : args) pointers.push_back(arg.data());
  if (rte_eal_init(static_cast<int>(pointers.size()), pointers.data()) < 0) return 1;
  spdlog::set_level(spdlog::level::warn);
  margay::dp::start_clock();
  const int status = RUN_ALL_TESTS();
  rte_eal_cleanup();
  return status;
}
