#include "cli/output/render.h"

#include <gtest/gtest.h>

namespace slipway::cli {
namespace {

TEST(Table, AlignsColumnsAndGrowsPageByPage) {
  Table table({{"JOB"}, {"TASKS", true}, {"REASON"}}, {});
  table.add({"job_1", "7", "first"});
  EXPECT_EQ(table.format(),
            "JOB    TASKS  REASON\n"
            "job_1      7  first\n");
  table.add({"job_1000", "12345678", ""});
  EXPECT_EQ(table.format(), "job_1000  12345678  -\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({{"NAME"}, {"X"}}, {});
  table.add({"gr\xc3\xbc\xc3\x9f", "1"});
  table.add({"plain", "2"});
  EXPECT_EQ(table.format(), "NAME   X\ngr\xc3\xbc\xc3\x9f   1\nplain  2\n");
}

TEST(Table, CropsTheLastColumnOnATerminalOnly) {
  Table narrow({{"A"}, {"TEXT"}}, {.width = 20});
  narrow.add({"1", "a text that is longer than the line"});
  EXPECT_EQ(narrow.format(), "A  TEXT\n1  a text that is l…\n");
  Table plain({{"A"}, {"TEXT"}}, {});
  plain.add({"1", "a text that is longer than the line"});
  EXPECT_EQ(plain.format(), "A  TEXT\n1  a text that is longer than the line\n");
}

TEST(Table, DropsColumnsInTheirOrderOnNarrowTerminals) {
  struct Row {
    std::size_t width;
    const char* header;
  };
  for (const Row& row :
       {Row{0, "JOB    POOL  RAN   REASON\n"}, Row{80, "JOB    POOL  RAN   REASON\n"},
        Row{45, "JOB    POOL  REASON\n"}, Row{36, "JOB    REASON\n"}, Row{20, "JOB    REASON\n"}}) {
    SCOPED_TRACE(row.width);
    Table table({{"JOB"}, {.title = "POOL", .drop = 2}, {.title = "RAN", .drop = 1}, {"REASON"}},
                {.width = row.width});
    table.add({"job_1", "lab", "12 s", "a reason that is far too long for a narrow terminal"});
    const std::string text = table.format();
    EXPECT_TRUE(text.starts_with(row.header)) << text;
    for (std::size_t begin = 0; row.width > 0 && begin < text.size(); begin = text.find('\n', begin) + 1) {
      EXPECT_LE(text.find('\n', begin) - begin, row.width + 2) << text;  // '…' is three bytes
    }
    table.add({"job_1", "a pool with a longer name", "12 s", "x"});
    EXPECT_EQ(table.format().find("a pool") != std::string::npos, text.find("POOL") != std::string::npos)
        << "decided with the first page";
  }
}

TEST(Table, StatesAreColouredOnRequest) {
  Table table({{"STATE", false, true}, {"X"}}, {.colour = true});
  table.add({"failed", "1"});
  EXPECT_EQ(table.format(), "STATE   X\n\x1b[31mfailed\x1b[0m  1\n");
}

TEST(Render, ControlCharactersAreReplaced) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\td"), "a?[2Jb c d");
  Table table({{"NAME"}}, {});
  table.add({"x\x1b]0;evil\x07"});
  EXPECT_EQ(table.format(), "NAME\nx?]0;evil?\n");
}

TEST(Render, FieldsAreAligned) {
  EXPECT_EQ(format_fields({{"name", "lab"}, {"left out", ""}, {"notes", "one\ntwo"}}),
            "name:   lab\n"
            "notes:  one\n"
            "        two\n");
}

TEST(Render, Ages) {
  struct Row {
    std::int64_t seconds;
    const char* text;
  };
  for (const Row& row : {Row{-5, "0 s"}, Row{0, "0 s"}, Row{59, "59 s"}, Row{60, "1 min"},
                         Row{3599, "59 min"}, Row{7200, "2 h"}, Row{86400 * 3, "3 d"}})
    EXPECT_EQ(format_age(Duration(row.seconds * 1'000'000)), row.text);
}

}  // namespace
}  // namespace slipway::cli
