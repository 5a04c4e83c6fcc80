#include "oidc/groups.h"

#include <gtest/gtest.h>

namespace slipway::oidc {
namespace {

TEST(GroupRules, GiveTheHighestRoleOfEachWorkspace) {
  const auto rules = GroupRules::parse(
      "# who is what\n\nresearch=ml:member\nstaff = ml : "
      "viewer\ncn=ops,dc=lab=default:admin\r\nstaff=default:viewer");
  ASSERT_TRUE(rules) << rules.error().what;
  EXPECT_EQ(rules->workspaces(), (std::set<std::string>{"default", "ml"}));
  using Members = std::vector<MemberRecord>;
  EXPECT_EQ(rules->members({"staff", "research"}),
            (Members{{"default", "", Role::viewer}, {"ml", "", Role::member}}));
  EXPECT_EQ(rules->members({"cn=ops,dc=lab"}), (Members{{"default", "", Role::admin}}));
  EXPECT_EQ(rules->members({"others"}), Members{});
}

TEST(GroupRules, LinesThatAreNoneAreNamed) {
  for (const char* text :
       {"research", "research=ml", "research=ml:node", "=ml:member", "a=b c:member", "a:b=c"}) {
    const auto rules = GroupRules::parse(std::string("# first\n") + text);
    EXPECT_FALSE(rules) << text;
  }
  EXPECT_NE(GroupRules::parse("# first\nx").error().what.find("line 2"), std::string::npos);
}

}  // namespace
}  // namespace slipway::oidc
