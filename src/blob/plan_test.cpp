#include "blob/plan.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "blob/names.h"
#include "blob/state.h"

namespace slipway::blob {
namespace {

// One name, in each of the states it can have on both sides.
struct Row {
  char there;  // '-': absent, '=': as noted, '*': changed
  char here;
  bool known;
  const char* pull;
  const char* push;
};

Sides sides_of(const Row& row) {
  Sides sides;
  if (row.there != '-') sides.there.push_back({"f", row.there == '=' ? "e1" : "e2", 5, "m"});
  if (row.here != '-') sides.here.push_back({"f", 5, row.here == '=' ? 1 : 2});
  if (row.known) sides.known.push_back({{"f", 5, 1}, "e1", "m1"});
  return sides;
}

std::string describe(const Plan& plan) {
  static constexpr const char* names[] = {"download", "upload", "delete_here", "delete_there", "forget"};
  std::string text;
  for (const Action& action : plan.actions)
    text += fmt::format("{}{}{}{} ", names[static_cast<int>(action.kind)],
                        action.unless_same_as_there ? " ~there" : "",
                        action.unless_same_as_known ? " ~known" : "", action.is_conflict ? " conflict" : "");
  if (!plan.kept_here.empty()) text += "kept ";
  if (!plan.kept_there.empty()) text += "kept-there ";
  if (plan.unchanged > 0) text += "unchanged ";
  if (!text.empty()) text.pop_back();
  return text;
}

TEST(Plan, EveryCaseOfOneFile) {
  const Row rows[] = {
      {'=', '=', true, "unchanged", "unchanged"},
      {'=', '*', true, "kept", "upload ~there ~known"},
      {'=', '-', true, "download", "delete_there"},
      {'*', '=', true, "download ~there", "unchanged"},
      {'*', '*', true, "download ~there conflict", "upload ~there ~known conflict"},
      {'*', '-', true, "download", "forget kept-there"},
      {'-', '=', true, "delete_here", "unchanged"},
      {'-', '*', true, "forget kept", "upload ~known"},
      {'-', '-', true, "forget", "forget"},
      {'*', '*', false, "download ~there conflict", "upload ~there conflict"},
      {'*', '-', false, "download", ""},
      {'-', '*', false, "kept", "upload"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("there {} here {} known {}", row.there, row.here, row.known));
    EXPECT_EQ(describe(plan_pull(sides_of(row))), row.pull);
    EXPECT_EQ(describe(plan_push(sides_of(row), {})), row.push);
  }
}

TEST(Plan, AnotherFolderDeletesNothing) {
  EXPECT_EQ(describe(plan_push(sides_of({'=', '-', true, "", ""}), {.removals_count = false})), "forget");
}

TEST(Plan, BadNamesAreLeftOut) {
  Sides sides;
  for (const char* name : {"../x", "/etc/passwd", "a/../../x", "a//b", "good"})
    sides.there.push_back({name, "e", 1, ""});
  sides.here.push_back({"back\\slash", 1, 1});
  const Plan pulled = plan_pull(sides);
  ASSERT_EQ(pulled.actions.size(), 1u);
  EXPECT_EQ(pulled.actions[0].name, "good");
  EXPECT_EQ(pulled.skipped.size(), 5u);
  EXPECT_TRUE(plan_push(sides, {}).actions.empty());
}

TEST(Plan, LinksHereAreLeftAlone) {
  Sides sides;
  sides.there = {
      {"link", "e", 1, ""}, {"link/in", "e", 1, ""}, {"folder/a", "e", 1, ""}, {"linked", "e", 1, ""}};
  sides.known = {{{"link", 1, 1}, "e", "m"}, {{"folder/a", 1, 1}, "e", "m"}};
  sides.not_files = {{"link", "it is a link"}, {"folder", "it is a link"}};
  const Plan pulled = plan_pull(sides);
  ASSERT_EQ(pulled.actions.size(), 1u);
  EXPECT_EQ(pulled.actions[0].name, "linked");
  EXPECT_EQ(pulled.skipped.size(), 4u);
  EXPECT_TRUE(plan_push(sides, {}).actions.empty());  // a file that became a link was not removed
}

TEST(Plan, FoldersOfTheStoreAreNoFiles) {
  Sides sides;
  sides.there = {{"a", "e", 0, ""}, {"a/b", "e", 1, ""}, {"c/", "e", 0, ""},
                 {"d", "e", 3, ""}, {"d/e", "e", 1, ""}, {"d0", "e", 1, ""}};
  const Plan plan = plan_pull(sides);
  std::vector<std::string> names;
  for (const Action& action : plan.actions) names.push_back(action.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a/b", "d/e", "d0"}));
  EXPECT_EQ(plan.skipped, (std::vector<Skipped>{{"d", "it is both a blob and a folder of others"}}));
}

TEST(Plan, DeletionsComeFirst) {
  Sides sides;
  sides.there = {{"a/b", "e", 1, ""}};
  sides.here = {{"a", 1, 1}};
  sides.known = {{{"a", 1, 1}, "e", "m"}};
  EXPECT_EQ(describe(plan_pull(sides)), "delete_here download");
}

TEST(Names, ValidOnBothSides) {
  for (const char* good :
       {"a", "a/b/c.txt", ".hidden", "a b", "ü/日本.txt", "50%", "a+b&c=d?e#f", "...x", "~", "a:b"})
    EXPECT_FALSE(trouble_with_name(good)) << good;
  for (const std::string& wrong : {std::string(),
                                   std::string("/a"),
                                   std::string("a/"),
                                   std::string("a//b"),
                                   std::string("."),
                                   std::string(".."),
                                   std::string("a/../b"),
                                   std::string("a/.."),
                                   std::string("./a"),
                                   std::string("a\\b"),
                                   std::string("a\nb"),
                                   std::string("a\0b", 3),
                                   std::string("\xff"),
                                   std::string("\xc0\xaf"),
                                   std::string("\xed\xa0\x80"),
                                   std::string("\xf4\x90\x80\x80"),
                                   std::string("\xe2\x82"),
                                   std::string("x."),
                                   std::string(256, 'x'),
                                   std::string(".slipway-part-1-1")})
    EXPECT_TRUE(trouble_with_name(wrong)) << wrong;
  EXPECT_EQ(encode_path("a b/ü%/c"), "a%20b/%C3%BC%25/c");
}

TEST(State, RoundTrip) {
  const SyncState state{
      "http://h:1/a/c", 77, {{{"a b/ü", 5, -12}, "0x8 \"D", "bQ=="}, {{"x", 0, 1}, "", ""}}};
  EXPECT_EQ(parse_state(format_state(state)).value(), state);
  EXPECT_EQ(parse_state(format_state({})).value(), SyncState{});
}

TEST(State, RejectsDamagedState) {
  const std::string head = "slipway-sync 1\nx 1\n";
  for (const std::string& wrong :
       {std::string(), std::string("slipway-sync 2\nx 1\n"), std::string("slipway-sync 1\n"),
        head + "a 1 1 e m", head + "a 1 1 e\n", head + "../a 1 1 e m\n", head + "a x 1 e m\n",
        head + "a 1 1 %z m\n", head + "\n"})
    EXPECT_FALSE(parse_state(wrong)) << wrong;
}

}  // namespace
}  // namespace slipway::blob
