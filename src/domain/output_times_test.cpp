#include "domain/output_times.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

const TimePoint begin(Duration(1'700'000'000'000'000));

TEST(OutputTimes, FileIsNamedAfterItsStream) {
  EXPECT_EQ(output_times_file("/data/job_1/a.1/stdout.txt"), ".times");
  EXPECT_EQ(output_times_file("stdout-worker-0.txt"), ".times-worker-0");
  EXPECT_TRUE(is_output_times_file(".times"));
  EXPECT_TRUE(is_output_times_file(".times-3"));
  EXPECT_FALSE(is_output_times_file(".timestamp"));
  EXPECT_FALSE(is_output_times_file("stdout.txt"));
}

TEST(OutputTimes, WhatIsWrittenIsRead) {
  const std::vector<OutputTime> entries{{begin, 1, 10}, {begin + 5ms, 2, 3}, {begin + 9ms, 1, 20}};
  OutputTimeList list;
  for (const OutputTime& entry : entries) list.add(entry);
  EXPECT_TRUE(list.is_needed());
  const std::string first = list.take(false);
  EXPECT_EQ(parse_output_times(first).size(), 2U) << "the last one may still grow";
  EXPECT_EQ(list.take(false), "");
  EXPECT_EQ(parse_output_times(first + list.take(true)), entries);
}

TEST(OutputTimes, OneStreamGrowsInOneEntryWhileItGrowsQuickly) {
  OutputTimeList list;
  for (int i = 0; i < 50; ++i) list.add({begin + i * 1ms, 1, static_cast<std::uint64_t>(i + 1)});
  EXPECT_FALSE(list.is_needed());
  list.add({begin + 200ms, 2, 1});
  EXPECT_FALSE(list.is_needed()) << "the times of the files say as much";
  list.add({begin + 201ms, 1, 51});
  EXPECT_TRUE(list.is_needed());
  EXPECT_EQ(parse_output_times(list.take(true)),
            (std::vector<OutputTime>{{begin, 1, 50}, {begin + 200ms, 2, 1}, {begin + 201ms, 1, 51}}));
}

TEST(OutputTimes, LongListsGrowSlowly) {
  OutputTimeList list;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) list.add({begin + i * 100ms, 1, i + 1});
  EXPECT_LT(parse_output_times(list.take(true)).size(), 60'000U);
}

TEST(OutputTimes, OddLinesEndTheList) {
  for (const char* odd : {"", "x", "1 1", "1 1 ", "1 3 5\n", "1 0 5\n", " 1 1 5\n", "1 1 5 \n", "-1 1 5\n",
                          "99999999999999999999 1 5\n", "1 1 5"})
    EXPECT_TRUE(parse_output_times(odd).empty()) << odd;
  EXPECT_EQ(parse_output_times("7 1 5\n8 2 x\n9 1 6\n").size(), 1U);
}

}  // namespace
}  // namespace slipway
