// The web UI: its pages and files, and how a browser signs in.
#include <gtest/gtest.h>

#include "api/service.h"
#include "api/ui_files.h"

namespace slipway::test {
namespace {

// The cookie that an answer sets, as a browser sends it back.
std::string cookie_of(const Answer& answer) {
  const std::string set = answer.header("Set-Cookie");
  return set.substr(0, set.find(';'));
}

Answer ask_with(Service& service, const std::string& method, const std::string& target, net::Headers headers,
                const std::string& body = {}) {
  return service.ask(method, target, body, "", std::move(headers));
}

TEST(Ui, PagesAreTheSameForEveryoneAndKnowTheirRoot) {
  Service service;
  const std::pair<const char*, const char*> rows[] = {{"/", "./"},
                                                      {"/jobs", "./"},
                                                      {"/jobs/", "../"},
                                                      {"/jobs/job_1", "../"},
                                                      {"/jobs/job_1/tasks/a%5B0%5D/logs", "../../../../"}};
  for (const auto& [path, root] : rows) {
    SCOPED_TRACE(path);
    const Answer answer = service.get(path, "");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("Content-Type"), "text/html; charset=utf-8");
    EXPECT_NE(answer.body.find(std::string("<base href=\"") + root + "\""), std::string::npos) << answer.body;
    EXPECT_EQ(answer.header("Cache-Control"), "no-cache");
    const std::string policy = answer.header("Content-Security-Policy");
    EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
    EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  }
}

TEST(Ui, FilesAreCompressedAndNeverChange) {
  Service service;
  ASSERT_GE(api::ui_files().size(), 2u);
  for (const api::UiFile& file : api::ui_files()) {
    SCOPED_TRACE(file.name);
    const std::string path = "/ui/" + std::string(file.name);
    const Answer answer = service.get(path, "");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("Content-Encoding"), "gzip");
    EXPECT_EQ(answer.header("Cache-Control"), "public, max-age=31536000, immutable");
    EXPECT_EQ(answer.header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(answer.body, file.bytes);
    EXPECT_EQ(ask_with(service, "GET", path, {{"Accept-Encoding", "br"}}).status, 406);
    EXPECT_EQ(ask_with(service, "GET", path, {{"Accept-Encoding", "br, gzip"}}).status, 200);
  }
  EXPECT_EQ(service.get("/ui/index-0000.js", "").status, 404);
  EXPECT_EQ(service.get("/ui/..%2Ftoken", "").status, 404);
}

// What a browser loads before it shows anything. Charts come later, where one is looked at.
TEST(Ui, FirstLoadIsSmall) {
  std::size_t total = api::ui_page().size(), files = 0;
  for (const api::UiFile& file : api::ui_files())
    if (api::ui_page().find(file.name) != std::string_view::npos) {
      total += file.bytes.size();
      ++files;
    }
  EXPECT_GE(files, 2u);
  EXPECT_LE(total, 60'000u);
}

TEST(Ui, ATokenGoesIntoACookieThatNoScriptReads) {
  Service service;
  const Answer in = ask_with(service, "POST", "/v1/login/browser", {}, R"({"token":"ana"})");
  ASSERT_EQ(in.status, 201) << in.body;
  EXPECT_EQ(in.at("name"), "ana");
  EXPECT_EQ(in.at("token"), "(none)");
  const std::string set = in.header("Set-Cookie");
  for (const char* attribute : {"; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=604800"})
    EXPECT_NE(set.find(attribute), std::string::npos) << set;
  EXPECT_EQ(set.find("Secure"), std::string::npos);  // not over TLS

  const std::string cookie = cookie_of(in);
  EXPECT_EQ(ask_with(service, "GET", "/v1/service", {{"Cookie", cookie}}).at("user"), "ana");
  EXPECT_EQ(ask_with(service, "GET", "/v1/service", {{"Cookie", "theme=dark; " + cookie + "; x=y"}}).status,
            200);
  EXPECT_EQ(ask_with(service, "GET", "/v1/service", {{"Cookie", "x" + cookie}}).status, 401);
  // A token in the head is what counts.
  EXPECT_EQ(service.ask("GET", "/v1/service", {}, "viewer", {{"Cookie", cookie}}).at("user"), "viewer");

  const Answer out =
      ask_with(service, "DELETE", "/v1/login/browser",
               {{"Cookie", cookie}, {"Host", "localhost:8470"}, {"Origin", "http://localhost:8470"}});
  EXPECT_EQ(out.status, 204);
  EXPECT_NE(out.header("Set-Cookie").find("=; Path=/; Max-Age=0"), std::string::npos);
}

TEST(Ui, OnlyTokensOfUsersSignIn) {
  Service service;
  for (const char* body :
       {R"({"token":"nobody-knows-this"})", R"({"token":"node"})", R"({"link_token":"x"})"}) {
    SCOPED_TRACE(body);
    const Answer answer = ask_with(service, "POST", "/v1/login/browser", {}, body);
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.header("Set-Cookie"), "");
    EXPECT_NE(answer.at("hint"), "(none)");
  }
  for (const char* body : {"{}", R"({"token":"a","link_token":"b"})", "[]", ""})
    EXPECT_EQ(ask_with(service, "POST", "/v1/login/browser", {}, body).status, 400) << body;
}

TEST(Ui, WhoGuessesTokensWaits) {
  Service service;
  int status = 401;
  for (int guess = 0; guess < 20 && status == 401; ++guess)
    status = ask_with(service, "POST", "/v1/login/browser", {},
                      R"({"token":"guess-)" + std::to_string(guess) + "\"}")
                 .status;
  EXPECT_EQ(status, 429);
}

TEST(Ui, WhatACookieChangesSaysFromWhichPage) {
  Service service;
  const std::string cookie =
      cookie_of(ask_with(service, "POST", "/v1/login/browser", {}, R"({"token":"ana"})"));
  const auto submit = [&](net::Headers headers) {
    headers.emplace_back("Cookie", cookie);
    headers.emplace_back("Host", "localhost:8470");
    return ask_with(service, "POST", "/v1/pools", std::move(headers), R"({"name":"lab","nodes":0})").status;
  };
  EXPECT_EQ(submit({}), 403);
  EXPECT_EQ(submit({{"Origin", "null"}}), 403);
  EXPECT_EQ(submit({{"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(submit({{"Origin", "http://localhost:9999"}}), 403);
  EXPECT_EQ(submit({{"Origin", "http://localhost:8470"}}), 201);
}

TEST(Ui, ALinkSignsInOnceAsWhoMadeIt) {
  Service service;
  const Answer link = service.ask("POST", "/v1/login/links", "{}", "viewer");
  ASSERT_EQ(link.status, 201) << link.body;
  const std::string body = R"({"link_token":")" + link.at("link_token") + "\"}";
  const Answer in = ask_with(service, "POST", "/v1/login/browser", {}, body);
  ASSERT_EQ(in.status, 201) << in.body;
  EXPECT_EQ(ask_with(service, "GET", "/v1/service", {{"Cookie", cookie_of(in)}}).at("user"), "viewer");
  EXPECT_EQ(ask_with(service, "POST", "/v1/login/browser", {}, body).status, 401);
}

TEST(Ui, ARevokedTokenSignsOutItsBrowsers) {
  Service service;
  const Answer made = service.ask("POST", "/v1/tokens", R"({"name":"laptop","role":"member"})");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string cookie = cookie_of(
      ask_with(service, "POST", "/v1/login/browser", {}, R"({"token":")" + made.at("token") + "\"}"));
  EXPECT_EQ(ask_with(service, "GET", "/v1/jobs", {{"Cookie", cookie}}).status, 200);
  EXPECT_EQ(service.ask("DELETE", "/v1/tokens/" + made.at("id")).status, 204);
  EXPECT_EQ(ask_with(service, "GET", "/v1/jobs", {{"Cookie", cookie}}).status, 401);
}

TEST(TaskStates, AreRunsByEntry) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status, 201);
  ASSERT_EQ(service
                .ask("POST", "/v1/jobs",
                     R"({"tasks":[{"name":"a","command":"true"},)"
                     R"({"name":"s","count":2500,"command":"true","depends_on":["a"]}]})")
                .status,
            201);
  const Answer states = service.get("/v1/jobs/job_1/task-states");
  ASSERT_EQ(states.status, 200) << states.body;
  EXPECT_EQ(states.at("items.0.first"), "a");
  EXPECT_EQ(states.at("items.0.states.0.0"), "queued");
  EXPECT_EQ(states.at("items.1.first"), "s[0]");
  EXPECT_EQ(states.size("items.1.states"), 1u);
  EXPECT_EQ(states.at("items.1.states.0.0"), "waiting");
  EXPECT_EQ(states.at("items.1.states.0.1"), "2500");
  const Answer rest = service.get("/v1/jobs/job_1/task-states?after=s%5B2497%5D");
  EXPECT_EQ(rest.at("items.0.first"), "s[2498]");
  EXPECT_EQ(rest.at("items.0.states.0.1"), "2");
  EXPECT_EQ(service.get("/v1/jobs/job_9/task-states").status, 404);
}

}  // namespace
}  // namespace slipway::test
