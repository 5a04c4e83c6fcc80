#include "api/log_tail.h"

#include <gtest/gtest.h>

#include <string>

namespace slipway::api {
namespace {

struct Found {
  std::uint64_t begin = 0;
  bool is_cut = false;
  std::uint64_t bytes_read = 0;
};

Found search(const std::string& text, std::uint64_t lines) {
  TailSearch tail(text.size(), lines);
  Found found;
  while (const auto piece = tail.next()) {
    found.bytes_read += piece->length;
    tail.add(std::string_view(text).substr(piece->offset, piece->length));
  }
  found.begin = tail.begin();
  found.is_cut = tail.is_cut();
  return found;
}

std::string repeated(const std::string& line, std::size_t times) {
  std::string text;
  text.reserve(line.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += line;
  return text;
}

TEST(TailSearch, FindsTheBeginningOfTheLastLines) {
  const std::string many = repeated("0123456789abcde\n", 100'000);
  struct Row {
    const char* rule;
    std::string text;
    std::uint64_t lines;
    std::uint64_t begin;
  };
  const Row rows[] = {
      {"an empty file has no lines", "", 3, 0},
      {"no lines are the end", "a\nb\n", 0, 4},
      {"the last line", "a\nb\n", 1, 2},
      {"a last line without its end", "a\nb", 1, 2},
      {"all lines", "a\nb\n", 2, 0},
      {"more lines than there are", "a\nb\n", 7, 0},
      {"empty lines count", "a\n\n\n", 2, 2},
      {"only line ends", "\n\n\n", 2, 1},
      {"of a line written over, what was written last", "a\n1%\r50%\r100%\n", 1, 9},
      {"while it is written", "a\n1%\r50%\r", 1, 5},
      {"line ends of another system are no overwriting", "a\r\nb\r\n", 1, 3},
      {"those of the lines after it stay", "a\rb\nc\rd\n", 2, 2},
      {"the first line of a file", "1%\r2%", 1, 3},
      {"over several pieces", many, 50'000, 50'000 * 16},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const Found found = search(row.text, row.lines);
    EXPECT_EQ(found.begin, row.begin);
    EXPECT_FALSE(found.is_cut);
  }
}

TEST(TailSearch, CutsALongLine) {
  const std::string line(20 << 20, 'x');
  const Found last = search("first\n" + line, 1);
  EXPECT_TRUE(last.is_cut);
  EXPECT_EQ(last.begin, 6 + (20 << 20) - TailSearch::line_max);
  EXPECT_LE(last.bytes_read, TailSearch::line_max + TailSearch::piece_max);

  const Found before = search(line + "\nlast\n", 2);  // whole lines after it stay whole
  EXPECT_TRUE(before.is_cut);
  EXPECT_EQ(before.begin, (20 << 20) + 1 - TailSearch::line_max);
}

TEST(TailSearch, H1_AProgressBarOfManyMegabytesIsItsLastState) {
  const std::string bar = repeated("\r 10% of the data", 2 << 20) + "\r100% of the data\n";
  const Found found = search("first\n" + bar, 1);
  EXPECT_FALSE(found.is_cut);
  EXPECT_EQ(found.begin, 6 + bar.size() - std::string("100% of the data\n").size());
  EXPECT_LE(found.bytes_read, TailSearch::line_max + TailSearch::piece_max);
}

TEST(TailSearch, LooksAtABoundedNumberOfBytes) {
  const std::string text = repeated(std::string(1023, 'x') + "\n", 66 << 10);
  const Found found = search(text, 1'000'000'000);
  EXPECT_TRUE(found.is_cut);
  EXPECT_EQ(found.bytes_read, TailSearch::bytes_max);
  EXPECT_EQ(found.begin % 1024, 0u);
}

TEST(TailSearch, AFileThatShrankEndsTheSearch) {
  TailSearch tail(1 << 20, 5);
  tail.add("short");
  EXPECT_FALSE(tail.next());
  EXPECT_TRUE(tail.is_cut());
}

}  // namespace
}  // namespace slipway::api
