#include "control/users.h"

#include "control/catalog.h"
#include "control/testing.h"

namespace slipway::control {
namespace {

struct Users : Bench, testing::Test {
  const Caller admin{"root", "default", Role::admin};

  UserRecord add(const std::string& name, const std::string& workspace = "default",
                 Role role = Role::member) {
    const auto added = add_user(turn, admin, {.name = name}, MemberRecord{workspace, name, role});
    EXPECT_TRUE(added) << added.error().what;
    return *added;
  }
  TokenRecord give(const std::string& name, TokenRecord token = {}) {
    token.id = "token_" + std::to_string(state.tokens.size());
    token.name = name;
    token.hash = token.id;
    const auto made = add_token(turn, token);
    EXPECT_TRUE(made) << made.error().what;
    return made.value_or(TokenRecord{});
  }
  const TokenRecord* token(const std::string& id) {
    for (const TokenRecord& one : state.tokens)
      if (one.id == id) return &one;
    return nullptr;
  }
  Role role_of(const std::string& id) { return lowered(token(id)->role, token(id)->scope); }
  std::vector<std::string> cut() { return std::exchange(effects.outputs.tokens_removed, {}); }
};

TEST_F(Users, ATokenHasTheLesserOfItsOwnRoleAndTheMembership) {
  add("ana", "default", Role::member);
  struct Row {
    const char* rule;
    Role role;
    TokenScope scope;
    Role wanted;
  };
  const Row rows[] = {
      {"no more than the member", Role::admin, TokenScope::admin, Role::member},
      {"as it was made", Role::viewer, TokenScope::admin, Role::viewer},
      {"as it is scoped", Role::member, TokenScope::read, Role::viewer},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    EXPECT_EQ(role_of(give("ana", {.role = row.role, .scope = row.scope}).id), row.wanted);
  }
  const std::string id = give("ana", {.role = Role::admin}).id;
  ASSERT_TRUE(put_member(turn, admin, {"default", "ana", Role::viewer}));
  EXPECT_EQ(role_of(id), Role::viewer) << "the membership was lowered";
  ASSERT_TRUE(put_member(turn, admin, {"default", "ana", Role::admin}));
  EXPECT_EQ(role_of(id), Role::admin);
}

TEST_F(Users, ATokenOfTheSameNameBecomesTheUsersOwn) {
  const std::string before = give("ana", {.role = Role::member}).id;
  ASSERT_TRUE(add_user(turn, admin, {.name = "ana"}, std::nullopt));
  EXPECT_EQ(token(before)->user, "ana");
  EXPECT_EQ(role_of(before), Role::member) << "it is worth as much as before";
  EXPECT_EQ(state.members.at({"default", "ana"}).role, Role::member);
  const auto elsewhere =
      add_token(turn, {.id = "x", .name = "ana", .workspace = "other", .role = Role::admin, .hash = "x"});
  ASSERT_FALSE(elsewhere) << "an admin of another workspace passes for ana";
  EXPECT_NE(elsewhere.error().what.find("no member of workspace other"), std::string::npos);
}

TEST_F(Users, DisablingRevokesInTheSameTurn) {
  add("ana");
  add("ben");
  const std::string of_ana = give("ana").id, of_ben = give("ben").id;
  ASSERT_TRUE(enable_user(turn, admin, "ana", false));
  EXPECT_EQ(cut(), std::vector<std::string>{of_ana});
  EXPECT_FALSE(token(of_ana));
  EXPECT_TRUE(token(of_ben));
  EXPECT_FALSE(add_token(turn, {.id = "x", .name = "ana", .hash = "x"}));
  EXPECT_FALSE(invite_user(turn, admin, "ana", "hash", 1h));
  ASSERT_TRUE(enable_user(turn, admin, "ana", true));
  give("ana");
}

TEST_F(Users, LeavingAWorkspaceRevokesTheTokensForIt) {
  add("ana");
  ASSERT_TRUE(put_member(turn, admin, {"ml", "ana", Role::admin}));
  const std::string here = give("ana").id;
  const std::string there = give("ana", {.workspace = "ml"}).id;
  ASSERT_TRUE(remove_member(turn, admin, "ml", "ana"));
  EXPECT_EQ(cut(), std::vector<std::string>{there});
  EXPECT_TRUE(token(here));
}

TEST_F(Users, AnAdminOfAWorkspaceSeesNoOther) {
  add("ana", "ml");
  const Caller other{"eve", "other", Role::admin};
  EXPECT_EQ(put_member(turn, other, {"ml", "ana", Role::viewer}).error().code, ErrorCode::not_found);
  EXPECT_EQ(remove_member(turn, other, "ml", "ana").error().code, ErrorCode::not_found);
  EXPECT_TRUE(put_member(turn, other, {"other", "ana", Role::viewer}));
}

TEST_F(Users, ACodeSignsInOnceAndUntilItsTime) {
  add("ana");
  ASSERT_TRUE(invite_user(turn, admin, "ana", "hash", 1h));
  const auto sign = [&](const std::string& code) {
    return sign_in(turn, {.user = "ana",
                          .code = code,
                          .new_password = "argon",
                          .token = {.id = "t" + code, .hash = "h", .expires_at = turn.now + 12h}});
  };
  EXPECT_FALSE(sign("another"));
  const auto token = sign("hash");
  ASSERT_TRUE(token) << token.error().what;
  EXPECT_EQ(token->user, "ana");
  EXPECT_EQ(token->role, Role::member);
  EXPECT_EQ(state.users.at("ana").password, "argon");
  EXPECT_FALSE(sign("hash")) << "the code is good twice";
  ASSERT_TRUE(invite_user(turn, admin, "ana", "late", 1h));
  turn.now += 1h;
  EXPECT_FALSE(sign("late"));
}

TEST_F(Users, ASignInChoosesItsWorkspace) {
  add("ana", "ml");
  state.users.at("ana").password = "argon";
  const auto sign = [&](const std::string& workspace) {
    return sign_in(
        turn,
        {.user = "ana", .password = "argon", .workspace = workspace, .token = {.id = "t", .hash = "h"}});
  };
  EXPECT_EQ(sign("")->workspace, "ml");
  EXPECT_EQ(sign("other").error().code, ErrorCode::denied);
  ASSERT_TRUE(put_member(turn, admin, {"other", "ana", Role::viewer}));
  EXPECT_EQ(sign("").error().code, ErrorCode::invalid);
  EXPECT_EQ(sign("other")->role, Role::viewer);
  ASSERT_TRUE(put_member(turn, admin, {"default", "ana", Role::viewer}));
  EXPECT_EQ(sign("")->workspace, "default");
  state.users.at("ana").is_disabled = true;
  EXPECT_EQ(sign("").error().code, ErrorCode::denied);
}

TEST_F(Users, AnExpiredTokenIsDroppedAndWhatItOpenedIsCut) {
  const std::string id = give("ana", {.expires_at = turn.now + 1h}).id;
  finish();
  turn.now += 59min;
  finish();
  EXPECT_TRUE(token(id));
  turn.now += 1min;
  const Effects after = finish();
  EXPECT_FALSE(token(id));
  EXPECT_EQ(after.outputs.tokens_removed, std::vector<std::string>{id});
}

TEST_F(Users, ARotatedTokenIsGoodForAsLongAsItWas) {
  const std::string id = give("ana", {.role = Role::viewer, .expires_at = turn.now + 1h}).id;
  state.tokens.front().created_at = turn.now;
  turn.now += 30min;
  const auto rotated = rotate_token(turn, admin, "ana", {.id = "fresh", .hash = "secret"});
  ASSERT_TRUE(rotated) << rotated.error().what;
  EXPECT_EQ(rotated->role, Role::viewer);
  EXPECT_EQ(rotated->expires_at, turn.now + 1h);
  EXPECT_FALSE(token(id));
  EXPECT_EQ(cut(), std::vector<std::string>{id});
  EXPECT_EQ(rotate_token(turn, admin, "fresh", {.id = "x", .hash = "x", .in_files = {"secret"}}).error().code,
            ErrorCode::conflict)
      << "the service reads it from a file";
  const Caller other{"eve", "other", Role::admin};
  EXPECT_EQ(rotate_token(turn, other, "fresh", {}).error().code, ErrorCode::not_found);
}

TEST_F(Users, ATokenForOnePoolSubmitsThereOnly) {
  pool();
  JobSpec spec;
  spec.is_patient = true;
  spec.tasks = {{.name = "main", .command = {"true"}}};
  const Caller ana{"ana", "default", Role::member, "lab"};
  const auto made = on_submit(turn, ana, spec, "");
  ASSERT_TRUE(made) << made.error().what;
  EXPECT_EQ(made->job.pool, "lab");
  spec.pool = "other";
  EXPECT_EQ(on_submit(turn, ana, spec, "").error().code, ErrorCode::denied);
}

}  // namespace
}  // namespace slipway::control
