// Users, members and sign-ins over the API.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "api/service.h"

namespace slipway::test {
namespace {

// ana, a member with a password.
void add_ana(Service& service) {
  const Answer added =
      service.ask("POST", "/v1/users",
                  R"({"name":"ana","password":"correct horse","workspace":"default","role":"member"})");
  ASSERT_EQ(added.status, 201) << added.body;
}

Answer sign_in(Service& service, const std::string& password, const std::string& more = {}) {
  return service.ask("POST", "/v1/login",
                     fmt::format(R"({{"user":"ana","password":"{}"{}}})", password, more), "");
}

TEST(Users, SignInWithAPasswordAndOutAgain) {
  Service service;
  add_ana(service);
  const Answer token = sign_in(service, "correct horse");
  ASSERT_EQ(token.status, 201) << token.body;
  EXPECT_EQ(token.at("user"), "ana");
  EXPECT_EQ(token.at("role"), "member");
  EXPECT_NE(token.at("expires_at"), "");
  const std::string secret = token.at("token");
  EXPECT_EQ(service.ask("POST", "/v1/jobs", job_body("mine"), secret).at("submitted_by"), "ana");
  EXPECT_EQ(service.get("/v1/users", secret).status, 403);
  EXPECT_EQ(service.ask("DELETE", "/v1/login", {}, secret).status, 204);
  EXPECT_EQ(service.get("/v1/jobs", secret).status, 401);
  EXPECT_EQ(service.ask("DELETE", "/v1/login", {}, "member").status, 409) << "a token of no sign-in";
}

TEST(Users, MembersMakeTokensOfTheirOwnAndSeeNoOthers) {
  Service service;
  add_ana(service);
  const Answer login = sign_in(service, "correct horse");
  const std::string secret = login.at("token");
  const Answer made = service.ask("POST", "/v1/tokens", R"({"name":"ci","scope":"submit"})", secret);
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("user"), "ana");
  EXPECT_EQ(made.at("workspace"), "default");
  EXPECT_EQ(made.at("expires_at"), login.at("expires_at"));
  const std::string ci = made.at("token");
  EXPECT_EQ(service.ask("POST", "/v1/jobs", job_body("mine"), ci).at("submitted_by"), "ana");
  EXPECT_EQ(service.ask("POST", "/v1/tokens", R"({"name":"x","role":"admin"})", secret).status, 403);
  EXPECT_EQ(service.ask("POST", "/v1/tokens", R"({"name":"x"})", "member").status, 403) << "of no user";
  const Answer listed = service.get("/v1/tokens", ci);
  ASSERT_GE(listed.size("items"), 2u) << listed.body;
  for (std::size_t i = 0; i < listed.size("items"); ++i)
    EXPECT_EQ(listed.at(fmt::format("items.{}.user", i)), "ana") << listed.body;
  const Answer narrow = service.ask("POST", "/v1/tokens", R"({"name":"look","scope":"read"})", secret);
  EXPECT_EQ(service.ask("POST", "/v1/tokens", R"({"name":"x"})", narrow.at("token")).status, 403);
  EXPECT_EQ(service.ask("DELETE", "/v1/tokens/token_member", {}, secret).status, 403);
  const Answer rotated = service.ask("POST", "/v1/tokens/ci/rotate", "{}", secret);
  ASSERT_EQ(rotated.status, 201) << rotated.body;
  EXPECT_EQ(service.get("/v1/jobs", ci).status, 401);
  EXPECT_EQ(service.ask("DELETE", "/v1/tokens/ci", {}, secret).status, 204);
  EXPECT_EQ(service.get("/v1/jobs", rotated.at("token")).status, 401);
}

TEST(Users, MembersOfAnotherWorkspaceAreNotThere) {
  Service service;
  add_ana(service);
  ASSERT_EQ(service.ask("PUT", "/v1/workspaces/ml/members/ana", R"({"role":"viewer"})").status, 200);
  EXPECT_EQ(service.get("/v1/workspaces").size("items"), 2u);
  EXPECT_EQ(service.get("/v1/workspaces/ml/members").at("items.0.user"), "ana");
  for (const char* token : {"viewer", "member", "other"}) {
    EXPECT_EQ(service.get("/v1/workspaces/ml/members", token).status, 404) << token;
    EXPECT_EQ(service.get("/v1/workspaces", token).size("items"), 1u) << token;
  }
  EXPECT_EQ(service.ask("PUT", "/v1/workspaces/ml/members/ana", R"({"role":"admin"})", "other").status, 404);
}

TEST(Users, NothingOfAPasswordOrCodeIsShown) {
  Service service;
  add_ana(service);
  ASSERT_EQ(service.ask("POST", "/v1/users/ana/invite").status, 201);
  const Answer shown = service.get("/v1/users/ana");
  EXPECT_EQ(shown.at("has_password"), "true");
  EXPECT_EQ(shown.body.find("argon2"), std::string::npos) << shown.body;
  EXPECT_EQ(shown.body.find("code"), std::string::npos) << shown.body;
}

TEST(Users, RefusedSignInsDoNotSayWhy) {
  Service service;
  add_ana(service);
  ASSERT_EQ(service.ask("POST", "/v1/users", R"({"name":"robot","service":true})").status, 201);
  const Answer wrong = sign_in(service, "wrong");
  EXPECT_EQ(wrong.status, 401);
  for (const char* user : {"nobody", "robot"}) {
    const Answer answer =
        service.ask("POST", "/v1/login", fmt::format(R"({{"user":"{}","password":"wrong"}})", user), "");
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.body, wrong.body) << user;
  }
}

TEST(Users, ACodeSignsInOnceAndSetsAPassword) {
  Service service;
  add_ana(service);
  const std::string code = service.ask("POST", "/v1/users/ana/invite").at("code");
  const std::string body = fmt::format(R"({{"user":"ana","code":"{}","new_password":"another one"}})", code);
  EXPECT_EQ(service.ask("POST", "/v1/login", body, "").status, 201);
  EXPECT_EQ(service.ask("POST", "/v1/login", body, "").status, 401);
  EXPECT_EQ(sign_in(service, "correct horse").status, 401);
  EXPECT_EQ(sign_in(service, "another one").status, 201);
}

TEST(Users, ADisabledUserIsOutAtOnce) {
  Service service;
  add_ana(service);
  const std::string secret = sign_in(service, "correct horse").at("token");
  ASSERT_EQ(service.get("/v1/jobs", secret).status, 200);
  EXPECT_EQ(service.ask("POST", "/v1/users/ana/disable").at("disabled"), "true");
  EXPECT_EQ(service.get("/v1/jobs", secret).status, 401);
  EXPECT_EQ(sign_in(service, "correct horse").status, 403);
  EXPECT_EQ(service.ask("POST", "/v1/users/ana/enable").at("disabled"), "false");
  EXPECT_EQ(service.get("/v1/jobs", secret).status, 401) << "a revoked token came back";
  EXPECT_EQ(sign_in(service, "correct horse").status, 201);
}

TEST(Users, GuessesWaitAndTokensDoNot) {
  Service service;
  add_ana(service);
  const std::string secret = sign_in(service, "correct horse").at("token");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sign_in(service, "wrong").status, 401);
  EXPECT_EQ(sign_in(service, "wrong").status, 401);
  const Answer waiting = sign_in(service, "correct horse");
  EXPECT_EQ(waiting.status, 429);
  EXPECT_EQ(waiting.header("Retry-After"), "1");
  EXPECT_EQ(service.get("/v1/jobs", secret).status, 200) << "a token that is known waits";
}

TEST(Users, ManyGuessesAtOnceGainNothing) {
  Service service;
  add_ana(service);
  std::vector<std::future<Answer>> guesses;
  for (int i = 0; i < 30; ++i)
    guesses.push_back(
        service.begin("POST", "/v1/login", fmt::format(R"({{"user":"ana","password":"{}"}})", i), ""));
  int compared = 0;
  for (auto& guess : guesses) {
    const int status = guess.get().status;
    EXPECT_TRUE(status == 401 || status == 429) << status;
    compared += status == 401;
  }
  EXPECT_LE(compared, 8);
}

TEST(Users, TokensThatNobodyHasAreGuessesToo) {
  Service service;
  const auto ask = [&](const std::string& token) {
    net::Request head;
    head.method = "GET";
    head.target = head.path = "/v1/jobs";
    head.peer = "2001:db8::" + std::to_string(token.size());
    head.headers.emplace_back("Authorization", "Bearer " + token);
    const net::BodyPolicy policy = service.policy(head);
    return policy.refuse ? policy.refuse->status : 200;
  };
  for (int i = 0; i < 50; ++i) EXPECT_EQ(ask("one old token"), 401);
  for (int i = 0; i < 10; ++i) ask("guess" + std::to_string(i));
  EXPECT_EQ(ask("another"), 429);
  EXPECT_EQ(ask("member"), 200) << "a token that is known waits";
}

TEST(Tokens, ExpireAreScopedAndRotate) {
  Service service;
  const auto make = [&](const std::string& more) {
    return service.ask("POST", "/v1/tokens", R"({"name":"ci","role":"admin")" + more + "}");
  };
  const Answer reader = make(R"(,"scope":"read")");
  ASSERT_EQ(reader.status, 201) << reader.body;
  EXPECT_EQ(service.get("/v1/jobs", reader.at("token")).status, 200);
  EXPECT_EQ(service.ask("POST", "/v1/jobs", job_body("a"), reader.at("token")).status, 403);

  const Answer rotated = service.ask("POST", "/v1/tokens/ci/rotate", "{}");
  ASSERT_EQ(rotated.status, 201) << rotated.body;
  EXPECT_EQ(rotated.at("scope"), "read");
  EXPECT_EQ(service.get("/v1/jobs", reader.at("token")).status, 401);
  EXPECT_EQ(service.get("/v1/jobs", rotated.at("token")).status, 200);

  const Answer brief = make(R"(,"expires_in":1)");
  ASSERT_EQ(brief.status, 201) << brief.body;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int status = 200;
  while (status != 401 && std::chrono::steady_clock::now() < deadline)
    status = service.get("/v1/jobs", brief.at("token")).status;
  EXPECT_EQ(status, 401) << "it is good for longer than a second";
  EXPECT_EQ(make(R"(,"pool":"lab")").status, 400) << "an admin's token for one pool";
}

TEST(Tokens, OneForAPoolWorksWithItsJobsAndNothingElse) {
  Service service;
  for (const char* pool : {"lab", "other"})
    ASSERT_EQ(
        service
            .ask("POST", "/v1/pools", fmt::format(R"({{"name":"{}","nodes":0,"provisioner":"none"}})", pool))
            .status,
        201);
  const std::string token =
      service.ask("POST", "/v1/tokens", R"({"name":"ci","role":"member","pool":"lab"})").at("token");
  EXPECT_EQ(service.ask("POST", "/v1/jobs", job_body("a"), token).at("pool"), "lab");
  EXPECT_EQ(service.ask("POST", "/v1/jobs", job_body("a", R"("pool":"other",)"), token).status, 403);
  EXPECT_EQ(service.ask("POST", "/v1/pools", R"({"name":"mine","nodes":0})", token).status, 403);
  EXPECT_EQ(service.ask("PUT", "/v1/datastores/faces", "{}", token).status, 403);
  EXPECT_EQ(service.get("/v1/pools", token).status, 200);
}

TEST(Tokens, LastUseIsShown) {
  Service service;
  const auto used = [&] {
    const Answer tokens = service.get("/v1/tokens");
    for (std::size_t i = 0; i < tokens.size("items"); ++i)
      if (tokens.at(fmt::format("items.{}.name", i)) == "viewer")
        return tokens.at(fmt::format("items.{}.last_used_at", i));
    return std::string("(no token)");
  };
  EXPECT_EQ(used(), "");
  ASSERT_EQ(service.get("/v1/jobs", "viewer").status, 200);
  EXPECT_NE(used(), "");
}

}  // namespace
}  // namespace slipway::test
