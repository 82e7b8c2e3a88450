// SPDX-License-Identifier: Apache-2.0
// What EAL is told, for machines that the test makes up. EAL itself does not run.

#include "dataplane/dpdk/eal_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/dpdk/buffer_plan.h"
#include "dataplane/dpdk/eal_args.h"

namespace margay::dp {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr size_t kMiB = size_t{1} << 20;

SiteConfig site(std::initializer_list<const char*> devices, uint16_t workers = 1) {
  SiteConfig config;
  config.workers = workers;
  for (const char* device : devices) {
    PortConfig port;
    port.name = "net" + std::to_string(config.ports.size());
    port.device = device;
    config.ports.push_back(port);
  }
  return config;
}

Host host(std::vector<int> cpus, size_t huge_mib = 4096) {
  return {.huge_bytes_free = huge_mib * kMiB, .cpus = std::move(cpus), .process_id = 42};
}

EalPlan plan(const SiteConfig& config, const Host& machine, std::vector<std::string> operator_args = {}) {
  auto result = plan_eal(config, 100 * kMiB, machine, operator_args);
  EXPECT_TRUE(result) << result.error().message;
  return *result;
}

TEST(EalPlan, PciPortsAreAllowedByAddressAndNothingElseIsProbed) {
  const EalPlan p = plan(site({"0000:3b:02.0", "3b:02.1"}), host({0, 1}));
  EXPECT_THAT(p.args, AllOf(Contains("-a").Times(2), Contains("0000:3b:02.0"), Contains("3b:02.1")));
  EXPECT_THAT(p.args, Not(Contains("--no-pci")));
}

TEST(EalPlan, WithoutPciPortsPciIsNotProbed) {
  const EalPlan p = plan(site({"net_null0"}), host({0, 1}));
  EXPECT_THAT(p.args, AllOf(Contains("--no-pci"), Contains("--vdev=net_null0"), Not(Contains("-a"))));
}

TEST(EalPlan, AfPacketGetsAQueuePairPerWorkerUnlessTheSiteFileSaysOtherwise) {
  const EalPlan p =
      plan(site({"net_af_packet0,iface=a", "net_af_packet1,iface=b,qpairs=1,framecnt=64"}, 3), host({0, 1, 2, 3}));
  EXPECT_THAT(p.args, Contains("--vdev=net_af_packet0,iface=a,qpairs=3,framecnt=4096"));
  EXPECT_THAT(p.args, Contains("--vdev=net_af_packet1,iface=b,qpairs=1,framecnt=64"));
}

TEST(EalPlan, AfPacketFramesHoldAJumboMtu) {
  SiteConfig config = site({"net_af_packet0,iface=a"});
  config.ports[0].mtu = 9000;
  EXPECT_THAT(plan(config, host({0, 1})).args,
              Contains("--vdev=net_af_packet0,iface=a,qpairs=1,framecnt=4096,framesz=16384,blocksz=16384"));
}

TEST(EalPlan, KernelInterfaceIsATap) {
  SiteConfig config = site({"net_null0", "net_null1"});
  config.ports[1].kernel = "mg1";
  EXPECT_THAT(plan(config, host({0, 1})).args, Contains("--vdev=net_tap_margay1,iface=mg1"));
}

TEST(EalPlan, TwoPortsOnOneDeviceAreAnError) {
  auto result = plan_eal(site({"net_null0", "net_null0,size=64"}), kMiB, host({0, 1}), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "port net1: device net_null0 is another port's already");
}

TEST(EalPlan, EachWorkerHasACoreOfItsOwnWhenThereAreEnough) {
  const EalPlan p = plan(site({"net_null0"}, 2), host({4, 6, 7}));
  EXPECT_THAT(p.args, Contains("--lcores=0@4,1@6,2@7"));
  EXPECT_THAT(p.warnings, IsEmpty());
}

TEST(EalPlan, WorkersShareCoresWhenThereAreFewAndAWarningSaysSo) {
  const EalPlan p = plan(site({"net_null0"}, 3), host({0, 1}));
  EXPECT_THAT(p.args, Contains("--lcores=0@(0,1),1@0,2@1,3@0"));
  EXPECT_THAT(p.warnings, ElementsAre(HasSubstr("3 workers and the control thread share 2 cores")));
}

TEST(EalPlan, HugePagesWhenEnoughAreFreeElseOrdinaryOnesWithAWarning) {
  // 100 MiB and a sixteenth, and 64 MiB for EAL: 170.25 MiB.
  EXPECT_THAT(plan(site({"net_null0"}), host({0, 1}, 171)).args,
              AllOf(Contains("--in-memory"), Not(Contains("--no-huge")), Not(Contains("-m"))));
  const EalPlan p = plan(site({"net_null0"}), host({0, 1}, 170));
  EXPECT_THAT(p.args, AllOf(Contains("--no-huge"), Contains("-m"), Contains("171"), Not(Contains("--in-memory"))));
  EXPECT_THAT(p.warnings, ElementsAre(AllOf(HasSubstr("170 MiB"), HasSubstr("171 MiB"))));
}

TEST(EalPlan, OperatorsArgumentsComeLastAndReplaceOurs) {
  const EalPlan p = plan(site({"net_null0"}), host({0, 1}, 0),
                         {"-l", "0,1", "--iova-mode=pa", "--no-huge", "-m", "900", "--file-prefix=x"});
  EXPECT_THAT(p.args, Not(Contains(StartsWith("--lcores"))));
  EXPECT_THAT(p.args, Not(Contains("--iova-mode=va")));
  EXPECT_THAT(p.args, Not(Contains("--file-prefix=margay-42")));
  EXPECT_THAT(p.args, AllOf(Contains("-m").Times(1), Contains("--no-huge").Times(1), Not(Contains("--in-memory"))));
  EXPECT_EQ(p.args.back(), "--file-prefix=x");
}

TEST(EalPlan, NoTwoDataPlanesShareAFilePrefix) {
  EXPECT_THAT(plan(site({"net_null0"}), host({0, 1})).args, Contains("--file-prefix=margay-42"));
}

TEST(BufferPlan, EveryRestingPlaceIsCountedForEveryWorkerAndPort) {
  const uint32_t none = plan_buffers(site({}, 1)).count;
  const uint32_t one = plan_buffers(site({"net_null0"}, 1)).count;
  EXPECT_EQ(one - none, 1024u + 1024u);  // descriptors
  EXPECT_EQ(plan_buffers(site({"net_null0"}, 2)).count - one, 2048u + 2048u + 384u + 512u + 64u + 128u);
  SiteConfig kernel = site({"net_null0"}, 1);
  kernel.ports[0].kernel = "mg0";
  EXPECT_EQ(plan_buffers(kernel).count - one, 256u + 256u);
}

TEST(EalArgs, OptionsOfEalAreTaken) {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {},
           {"-l", "0-2", "--no-huge", "-m512", "--vdev=net_null0", "--vdev", "net_null1"},
           {"--huge-unlink", "--huge-unlink=never", "-v", "-a", "0000:3b:02.0", "--log-level=*:debug"},
           {"--proc-type=primary", "--proc-type", "primary", "--file-prefix", "--odd"},
       }) {
    const auto judged = check_eal_args(args);
    EXPECT_TRUE(judged) << judged.error().message;
  }
}

TEST(EalArgs, WhatIsNoOptionOfEalIsTold) {
  struct Row {
    std::vector<std::string> args;
    std::string error;
  };
  const std::string primary = ": this is always EAL's primary process, expected primary";
  for (const Row& row : std::vector<Row>{
           {{"junk"}, "expected an option of EAL, got \"junk\""},
           {{"--no-huge", "512"}, "expected an option of EAL, got \"512\""},
           {{""}, "expected an option of EAL, got \"\""},
           {{"--"}, "EAL has no option \"--\""},
           {{"--help"}, "EAL has no option \"--help\""},
           {{"--nohuge"}, "EAL has no option \"--nohuge\""},
           {{"--vde=net_null0"}, "EAL has no option \"--vde\""},  // no shortened names
           {{"-x"}, "EAL has no option \"-x\""},
           {{"-"}, "EAL has no option \"-\""},
           {{"--no-huge=1"}, "--no-huge takes no value, got \"--no-huge=1\""},
           {{"-vx"}, "-v takes no value, got \"-vx\""},
           {{"-l"}, "-l needs a value"},
           {{"-l", "0", "--vdev"}, "--vdev needs a value"},
           {{"--proc-type=secondary"}, "--proc-type secondary" + primary},
           {{"--proc-type", "auto"}, "--proc-type auto" + primary},
           {{"--proc-type="}, "--proc-type " + primary},
           {{"--proc-t=secondary"}, "EAL has no option \"--proc-t\""},
       }) {
    const auto judged = check_eal_args(row.args);
    ASSERT_FALSE(judged) << row.error;
    EXPECT_EQ(judged.error().message, "after --: " + row.error);
  }
}

TEST(BufferPlan, OneBufferHoldsAFrameOfTheLargestMtu) {
  SiteConfig config = site({"net_null0", "net_null1"});
  EXPECT_EQ(plan_buffers(config).room, 128 + 2048);
  config.ports[1].mtu = 9000;
  EXPECT_EQ(plan_buffers(config).room, 128 + 16384);
  config.ports[1].mtu = kMtuMax;
  EXPECT_GE(plan_buffers(config).room, 128 + kMtuMax + 14 + 8);
}

}  // namespace
}  // namespace margay::dp
