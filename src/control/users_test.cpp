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
  ASSERT_TRUE(disable_user(turn, admin, "ana", JobsLeft::cancel));
  EXPECT_EQ(cut(), std::vector<std::string>{of_ana});
  EXPECT_FALSE(token(of_ana));
  EXPECT_TRUE(token(of_ben));
  EXPECT_FALSE(add_token(turn, {.id = "x", .name = "ana", .hash = "x"}));
  EXPECT_FALSE(invite_user(turn, admin, "ana", "hash", 1h));
  ASSERT_TRUE(enable_user(turn, admin, "ana"));
  give("ana");
}

TEST_F(Users, WhoLeavesHasTheirJobsCancelled) {
  pool();
  join("n1");
  const Caller ana{"ana", "default", Role::member}, ben{"ben", "default", Role::member};
  const auto submit_as = [&](const Caller& caller) {
    JobSpec spec;
    spec.pool = "lab";
    spec.tasks = {{.name = "main", .command = {"true"}}};
    const auto made = on_submit(turn, caller, spec, "");
    EXPECT_TRUE(made) << made.error().what;
    submitted[made->job.id] = effects.changes.jobs_new.back().spec;
    return made->job.id;
  };
  const auto state_of = [&](JobId id) { return state.jobs.at(id).record.state; };
  add("ana");
  add("ben");
  const JobId runs = submit_as(ana);
  finish();
  ASSERT_TRUE(attempt(runs));
  const JobId waits = submit_as(ana), of_ben = submit_as(ben);
  const auto kept = disable_user(turn, admin, "ana", JobsLeft::keep);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->jobs_cancelled, 0u);
  EXPECT_EQ(state_of(waits), JobState::queued);
  EXPECT_EQ(on_submit(turn, ana, {}, "").error().code, ErrorCode::denied) << "a request that was under way";
  const auto done = disable_user(turn, admin, "ana", JobsLeft::cancel);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->jobs_cancelled, 2u);
  EXPECT_EQ(state_of(runs), JobState::stopping);
  EXPECT_EQ(state_of(waits), JobState::cancelled);
  EXPECT_EQ(state.jobs.at(waits).record.reason, "cancelled: root disabled user ana");
  EXPECT_EQ(state_of(of_ben), JobState::queued);
  EXPECT_EQ(remove_member(turn, admin, "default", "ben", JobsLeft::cancel).value_or(0), 1u);
  EXPECT_EQ(state_of(of_ben), JobState::cancelled);
  EXPECT_EQ(on_submit(turn, ben, {}, "").error().code, ErrorCode::denied);
}

TEST_F(Users, LeavingAWorkspaceRevokesTheTokensForIt) {
  add("ana");
  ASSERT_TRUE(put_member(turn, admin, {"ml", "ana", Role::admin}));
  const std::string here = give("ana").id;
  const std::string there = give("ana", {.workspace = "ml"}).id;
  ASSERT_TRUE(remove_member(turn, admin, "ml", "ana", JobsLeft::cancel));
  EXPECT_EQ(cut(), std::vector<std::string>{there});
  EXPECT_TRUE(token(here));
}

TEST_F(Users, AnAdminOfAWorkspaceSeesNoOther) {
  add("ana", "ml");
  const Caller other{"eve", "other", Role::admin};
  EXPECT_EQ(put_member(turn, other, {"ml", "ana", Role::viewer}).error().code, ErrorCode::not_found);
  EXPECT_EQ(remove_member(turn, other, "ml", "ana", JobsLeft::cancel).error().code, ErrorCode::not_found);
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

struct OwnTokens : Users {
  TokenRecord shown;
  Caller ana;

  OwnTokens() {
    add("ana", "ml");
    add("ben", "ml");
    shown = give("ana", {.workspace = "ml", .expires_at = turn.now + 12h});
    ana = {"ana", "ml", Role::member, {}, shown.id};
  }
  Result<TokenRecord> make(TokenRecord token) {
    token.id = "token_" + std::to_string(state.tokens.size());
    token.hash = token.id;
    if (token.workspace == "default") token.workspace = "ml";
    return add_own_token(turn, ana, token);
  }
};

TEST_F(OwnTokens, AllowNoMoreThanTheOneThatWasShown) {
  struct Row {
    const char* rule;
    TokenRecord asked;
    const char* refused;  // or null
  };
  const Row rows[] = {
      {"as it is", {.name = "ci"}, nullptr},
      {"less", {.name = "ci", .role = Role::viewer}, nullptr},
      {"of one pool", {.name = "ci", .pool = "lab"}, nullptr},
      {"an admin's", {.name = "ci", .role = Role::admin}, "makes no token with the role admin"},
      {"a node's", {.name = "ci", .role = Role::node}, "makes no token with the role node"},
      {"elsewhere", {.name = "ci", .workspace = "other"}, "makes no token for workspace other"},
      {"somebody else's", {.name = "ci", .user = "ben"}, "makes no token for ben"},
      {"longer", {.name = "ci", .expires_at = turn.now + 13h}, "is good until"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const auto made = make(row.asked);
    ASSERT_EQ(made.has_value(), row.refused == nullptr) << (made ? "it is made" : made.error().what);
    if (!made) {
      EXPECT_NE(made.error().what.find(row.refused), std::string::npos) << made.error().what;
      continue;
    }
    EXPECT_EQ(made->user, "ana");
    EXPECT_EQ(made->expires_at, shown.expires_at);
    EXPECT_LE(lowered(made->role, made->scope), Role::member);
  }
  ASSERT_TRUE(put_member(turn, admin, {"ml", "ana", Role::admin}));
  for (const TokenRecord& token : state.tokens) {
    if (token.name != "ci") continue;
    EXPECT_LE(lowered(token.role, token.scope), Role::member) << "it became an admin's";
  }
}

TEST_F(OwnTokens, AreOfUsersThatTheServiceKnowsAndOfTokensThatAreThere) {
  const TokenRecord bare = give("eve", {.workspace = "ml"});
  ana = {"eve", "ml", Role::member, {}, bare.id};
  EXPECT_NE(make({.name = "ci"}).error().what.find("knows no user eve"), std::string::npos);
  ana = {"ana", "ml", Role::member, {}, shown.id};
  drop_token(turn, shown.id);
  EXPECT_EQ(make({.name = "ci"}).error().code, ErrorCode::denied)
      << "by a token that is revoked in this turn";
}

TEST_F(OwnTokens, AreAtMostAHundred) {
  Result<TokenRecord> made = make({.name = "ci"});
  for (int i = 0; i < 200 && made; ++i) made = make({.name = "ci"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::conflict);
  EXPECT_EQ(make({.name = "login"}).error().code, ErrorCode::conflict);
  ASSERT_TRUE(revoke_token(turn, ana, state.tokens.back().id));
  EXPECT_EQ(make({.name = "login"}).error().code, ErrorCode::invalid) << "it would not be counted";
  EXPECT_LE(state.tokens.size(), 101u);
}

TEST_F(OwnTokens, AreChangedByTheirUser) {
  const std::string mine = make({.name = "ci"})->id;
  const std::string other = give("ben", {.workspace = "ml"}).id;
  EXPECT_EQ(revoke_token(turn, ana, other).error().code, ErrorCode::denied);
  EXPECT_EQ(revoke_token(turn, ana, "ben").error().code, ErrorCode::not_found) << "its name is shown";
  EXPECT_EQ(rotate_token(turn, ana, other, {.id = "x", .hash = "x"}).error().code, ErrorCode::denied);
  EXPECT_FALSE(rotate_token(turn, ana, mine, {.id = "x", .hash = "x", .expires_in = 13h}));
  const auto rotated = rotate_token(turn, ana, "ci", {.id = "new", .hash = "new"});
  ASSERT_TRUE(rotated) << rotated.error().what;
  EXPECT_EQ(rotated->expires_at, shown.expires_at);
  ASSERT_TRUE(put_member(turn, admin, {"ml", "ana", Role::admin}));
  const std::string wide = give("ana", {.workspace = "ml", .role = Role::admin}).id;
  EXPECT_EQ(rotate_token(turn, ana, wide, {.id = "y", .hash = "y"}).error().code, ErrorCode::denied)
      << "the secret of one that allows more";
  ASSERT_TRUE(revoke_token(turn, ana, "new"));
  EXPECT_FALSE(token("new"));
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
