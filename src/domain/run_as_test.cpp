#include "domain/run_as.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(RunAs, TheRuleThatNamesMostWins) {
  const auto rules =
      RunAsRules::parse({"# users", "", "ana=1001", "ml/ana=1002:100", "ml/=2000:2001", "*=3000"});
  ASSERT_TRUE(rules) << rules.error().what;
  struct Row {
    const char* workspace;
    const char* user;
    std::optional<RunAs> expected;
  };
  const Row rows[] = {
      {"default", "ana", RunAs{1001, 1001}}, {"ml", "ana", RunAs{1002, 100}},
      {"ml", "ben", RunAs{2000, 2001}},      {"default", "ben", RunAs{3000, 3000}},
      {"default", "admin", std::nullopt},    {"ml", "admin", RunAs{2000, 2001}},
  };
  for (const Row& row : rows)
    EXPECT_EQ(rules->find(row.workspace, row.user).value(), row.expected) << row.workspace << "/" << row.user;
  EXPECT_EQ(RunAsRules::parse({"admin=5"})->find("default", "admin").value(), (RunAs{5, 5}));
}

TEST(RunAs, AUsersNameAloneHoldsInTheDefaultWorkspace) {
  const auto rules = RunAsRules::parse({"ana=1001", "ml/ben=1002"});
  EXPECT_EQ(rules->find("default", "ana").value(), (RunAs{1001, 1001}));
  const auto in_ml = rules->find("ml", "ana");
  ASSERT_FALSE(in_ml) << "whoever the admins of ml call ana";
  EXPECT_NE(in_ml.error().hint.find("--run-as ml/ana=UID"), std::string::npos);
  EXPECT_FALSE(rules->find("default", "ben"));
}

TEST(RunAs, WhoIsNamedByNoRuleRunsNothing) {
  const auto rules = RunAsRules::parse({"ana=1001"});
  EXPECT_FALSE(rules->find("default", "ben"));
  EXPECT_FALSE(rules->find("ml", "admin")) << "an admin of a workspace does not run the service";
  EXPECT_FALSE(RunAsRules::parse({})->find("default", "ben").value()) << "without rules: as the service";
}

TEST(RunAs, WrongRules) {
  for (const char* rule :
       {"ana", "=1", "ana=", "ana=0", "ana=1:0", "ana=-1", "ana=1:2:3", "ana=4294967295", "ana=x"})
    EXPECT_FALSE(RunAsRules::parse({rule})) << rule;
  EXPECT_FALSE(RunAsRules::parse({"ana=1", "ana=2"}));
}

}  // namespace
}  // namespace slipway
