#include "train/exchange/frame.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "train/exchange/group.h"
#include "train/exchange/plan.h"
#include "train/exchange/socket.h"

namespace slipway::train {
namespace {

TEST(Frame, RoundTripsAndRejectsOtherBytes) {
  const Frame frame{FrameKind::push, flag_half | flag_checkpoint, 3, 1ULL << 40, 320'000};
  const auto bytes = format_frame(frame);
  EXPECT_EQ(parse_frame(bytes).value(), frame);
  for (std::size_t at = 0; at < 36; ++at) {
    auto bad = bytes;
    bad[at] ^= 4;
    EXPECT_FALSE(parse_frame(bad)) << at;
  }
  std::array<std::uint8_t, frame_bytes> http{};
  std::memcpy(http.data(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n      ", frame_bytes);
  EXPECT_NE(parse_frame(http).error().what.find("protocol error"), std::string::npos);
}

TEST(Compression, TopSendsTheLargestAndKeepsTheRest) {
  const std::vector<float> gradients = {0.1F, -5, 0.2F, 3, -0.3F, 0};
  std::vector<float> rest(6), out(6, 99);
  std::string packed;
  compress_top(gradients, rest, 0.34, packed);  // 3 of 6
  ASSERT_TRUE(expand_top({reinterpret_cast<const std::uint8_t*>(packed.data()), packed.size()}, out));
  EXPECT_EQ(out, (std::vector<float>{0, -5, 0, 3, -0.3F, 0}));
  EXPECT_EQ(rest, (std::vector<float>{0.1F, 0, 0.2F, 0, 0, 0}));
  for (int i = 0; i < 3; ++i) compress_top(gradients, rest, 0.34, packed);
  double sent = 0;  // nothing is lost for good: four times the gradient is out or waiting
  for (const float v : rest) sent += v;
  EXPECT_LT(std::abs(sent), 2);
}

TEST(Compression, RejectsMalformedInput) {
  std::vector<float> out(4);
  const auto expand = [&](const std::string& text) {
    return expand_top({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, out);
  };
  EXPECT_FALSE(expand(""));
  EXPECT_FALSE(expand(std::string("\x05\0\0\0", 4)));
  EXPECT_FALSE(expand(std::string("\x01\0\0\0\x09\0\0\0\0\0\0\0", 12))) << "index beyond the end";
  EXPECT_TRUE(expand(std::string("\0\0\0\0", 4)));
  EXPECT_FALSE(parse_compression("zip"));
  EXPECT_FALSE(parse_compression("topk=0"));
  EXPECT_FALSE(parse_compression("topk=2"));
  EXPECT_EQ(parse_compression("topk=0.05").value().share, 0.05);
}

TEST(Plan, RoundTripsAndNamesDifferences) {
  Plan plan{.model = "{name: n}",
            .dataset = "mnist",
            .seed = 5,
            .layout = 77,
            .floats = 1000,
            .workers = 3,
            .servers = 2,
            .batch = 64,
            .mode = Mode::stale,
            .staleness = 4,
            .backups = 1,
            .lost = LostWorker::drop,
            .optimizer = {.kind = OptimizerKind::adam, .rate = 0.001F, .steps_total = 500},
            .statistics = {{16, 32}, {64, 96}}};
  const std::string text = format_plan(plan);
  const auto read = parse_plan(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(format_plan(*read), text);
  EXPECT_EQ(read->statistics, plan.statistics);
  plan.batch = 65;
  EXPECT_EQ(difference(format_plan(plan), text), "`batch 65`, not `batch 64`");
  for (const char* wrong : {"", "floats 5", "workers x"}) EXPECT_FALSE(parse_plan(wrong));
  plan.backups = 3;
  EXPECT_FALSE(parse_plan(format_plan(plan))) << "as many backups as workers";
}

TEST(Plan, SlicesCoverEverythingOnceAndEvenly) {
  for (const std::uint64_t floats : {16U, 100U, 89'536U, 1'000'003U})
    for (const std::uint32_t servers : {1U, 2U, 3U, 7U}) {
      std::size_t at = 0, largest = 0;
      for (std::uint32_t i = 0; i < servers; ++i) {
        const Range slice = server_slice(floats, servers, i);
        EXPECT_EQ(slice.begin, at);
        EXPECT_TRUE(slice.begin % 16 == 0 || slice.begin == floats);
        at = slice.end;
        largest = std::max(largest, slice.end - slice.begin);
      }
      EXPECT_EQ(at, floats);
      EXPECT_LE(largest, floats / servers + 32);
    }
}

TEST(Address, ReadsHostsOfEveryKind) {
  EXPECT_EQ(parse_address("node-1:7000").value(), (Address{"node-1", 7000}));
  EXPECT_EQ(parse_address("[::1]:80").value(), (Address{"::1", 80}));
  EXPECT_EQ(to_string(Address{"::1", 80}), "[::1]:80");
  for (const char* wrong : {"", "host", ":80", "host:", "host:x", "host:70000"})
    EXPECT_FALSE(parse_address(wrong)) << wrong;
}

TEST(Table, PutsRanksOfAMachineTogetherAndTakesTheNewestState) {
  std::vector<Introduction> all(4);
  for (std::uint32_t i = 0; i < 4; ++i)
    all[i] = {i, 4, 1, 100, i == 2 ? 7U : 5U, i % 2 == 0 ? "a" : "b", 1000};
  const GroupTable table = make_table(all, {"h0", "h1", "h0", "h1"}, "s");
  EXPECT_EQ(table.source, 2U);
  EXPECT_EQ(table.step, 7U);
  EXPECT_EQ(table.machines(), 2U);
  EXPECT_EQ(table.ranks_of(1), (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(table.members[3].local, 1U);
  EXPECT_EQ(format_table(parse_table(format_table(table)).value()), format_table(table));
  for (const char* wrong : {"", "s 0 0", "s 9 0 0 0 h:1", "s 0 0 x 0 h:1"})
    EXPECT_FALSE(parse_table(wrong)) << wrong;
  EXPECT_EQ(parse_introduction(format_introduction(all[2])).value().step, 7U);
  EXPECT_FALSE(parse_introduction("5 4 1 1 1 1 m")) << "rank 5 of 4";
}

}  // namespace
}  // namespace slipway::train
