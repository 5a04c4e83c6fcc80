#include "agent/machine_use.h"

#include <gtest/gtest.h>

namespace slipway::agent {
namespace {

const std::string meminfo = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n";

TEST(MachineUse, WhatHappenedBetweenTwoReadings) {
  const MachineCounters before = parse_counters("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 1 1 1\n", meminfo,
                                                " 254 0 vda 10 0 100 5 20 0 200 5 0 0 0\n 254 1 vda1 10 0 "
                                                "100 5 20 0 200 5 0 0 0\n 7 0 loop0 9 9 9 9 9 9 9 9\n",
                                                "Inter-|   Receive                |  Transmit\n face |bytes  "
                                                "  packets\n    lo: 5000 1 0 0 0 0 0 0 5000 1 0 0 0 0 0 0\n"
                                                "  eth0: 1000 9 0 0 0 0 0 0 300 1 0 0 0 0 0 0\n");
  const MachineCounters after = parse_counters("cpu  150 0 130 715 105 0 0 0 90 0\n", meminfo,
                                               " 254 0 vda 15 0 110 5 21 0 203 5 0 0 0\n 259 0 nvme0n1 1 0 2 "
                                               "0 1 0 4 0\n 259 1 nvme0n1p1 1 0 2 0 1 0 4 0\n",
                                               "  eth0: 1500 9 0 0 0 0 0 0 400 1 0 0 0 0 0 0\n");
  const MachineUse use = use_between(before, after, 7e9);
  EXPECT_DOUBLE_EQ(use.cpu, 0.8);  // guest time is a part of user time, and counted there
  EXPECT_DOUBLE_EQ(use.memory, 600 * 1024);
  EXPECT_DOUBLE_EQ(use.disk, 7e9);
  EXPECT_DOUBLE_EQ(use.disk_read, 12 * 512);
  EXPECT_DOUBLE_EQ(use.disk_written, 7 * 512);
  EXPECT_DOUBLE_EQ(use.disk_reads, 6);
  EXPECT_DOUBLE_EQ(use.disk_writes, 2);
  EXPECT_DOUBLE_EQ(use.network_in, 500);
  EXPECT_DOUBLE_EQ(use.network_out, 100);
}

TEST(MachineUse, NothingIsMadeOfNonsense) {
  const MachineCounters empty = parse_counters("", "", "", "");
  EXPECT_DOUBLE_EQ(use_between(empty, empty, 0).cpu, 0);
  const MachineCounters odd = parse_counters("cpu x", "MemTotal: x", "1 2 vda x", "eth0: x\n:\n");
  EXPECT_DOUBLE_EQ(use_between(odd, empty, 0).disk_read, 0);
}

TEST(MachineUse, TheFirstReadingSaysNothingYet) {
  UseMeter meter("/");
  const TimePoint now{1h};
  EXPECT_FALSE(meter.read(now));
  EXPECT_FALSE(meter.read(now + 1s));
  const auto use = meter.read(now + 31s);
  ASSERT_TRUE(use);
  EXPECT_GT(use->memory, 0);
  EXPECT_GT(use->disk, 0);
}

}  // namespace
}  // namespace slipway::agent
