// What the audit log keeps of requests.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <sstream>

#include "api/service.h"
#include "base/file.h"

namespace slipway::test {
namespace {

struct Audit {
  explicit Audit(bool reads = false) : service({}, {}, {.is_kept = true, .with_reads = reads}) {}
  // What was written since the last call.
  std::vector<std::string> lines() {
    service.audit().flush();
    std::istringstream text(read_file(service.data() + "/audit.jsonl").value());
    std::vector<std::string> all;
    wire::AuditChain chain;
    for (std::string line; std::getline(text, line);) {
      EXPECT_TRUE(chain.follow(line)) << line;
      all.push_back(line);
    }
    std::vector<std::string> fresh(all.begin() + static_cast<std::ptrdiff_t>(seen), all.end());
    seen = all.size();
    return fresh;
  }
  std::string only_line() {
    const auto fresh = lines();
    EXPECT_EQ(fresh.size(), 1u);
    return fresh.empty() ? "" : fresh.front();
  }
  Service service;
  std::size_t seen = 0;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_HAS_NOT(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

TEST(Audit, WhoChangedWhatFromWhatToWhat) {
  Audit audit;
  Service& service = audit.service;
  ASSERT_EQ(
      service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})", "ana").status,
      201);
  std::string line = audit.only_line();
  for (const char* part :
       {R"("user":"ana")", R"("role":"member")", R"("workspace":"default")", R"("method":"POST")",
        R"("path":"/v1/pools")", R"("object":"pool")", R"("verb":"create")", R"("decision":"allowed")",
        R"("status":201)", R"("after":{)"})
    EXPECT_HAS(line, part);
  ASSERT_EQ(service.ask("PATCH", "/v1/pools/lab", R"({"policy":{"per_user":{"max_nodes":7}}})").status, 200);
  line = audit.only_line();
  EXPECT_HAS(line, R"("before":{)");
  EXPECT_HAS_NOT(line.substr(0, line.find("\"after\"")), "\"max_nodes\":7");
  EXPECT_HAS(line.substr(line.find("\"after\"")), "\"max_nodes\":7");
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("j"), "ana").status, 201);
  EXPECT_HAS(audit.only_line(), R"("made":"/v1/jobs/job_1")");
  ASSERT_EQ(service.ask("POST", "/v1/jobs/job_1/cancel", R"({"reason":"enough"})", "ana").status, 200);
  line = audit.only_line();
  EXPECT_HAS(line.substr(0, line.find("\"after\"")), R"("state":"queued")");
  EXPECT_HAS(line.substr(line.find("\"after\"")), R"("state":"cancelled")");
}

TEST(Audit, WhatBatchAiChangesHasABefore) {
  Audit audit;
  Service& service = audit.service;
  const std::string in = "/subscriptions/s/resourceGroups/g/providers/Microsoft.BatchAI/workspaces/w";
  const std::string version = "?api-version=2018-05-01";
  const auto ask = [&](const char* method, const std::string& path, const std::string& body) {
    const Answer answer = service.ask(method, in + path + version, body);
    EXPECT_LT(answer.status, 300) << method << " " << path << ": " << answer.body;
    return audit.lines();
  };
  EXPECT_HAS_NOT(ask("PUT", "", R"({"location":"local"})").back(), "\"before\"");
  ask("PUT", "/clusters/c",
      R"({"properties":{"vmSize":"cpu","scaleSettings":{"manual":{"targetNodeCount":0}},"userAccountSettings":{"adminUserName":"a","adminUserPassword":"5ecre7"}}})");
  const auto changed =
      ask("PATCH", "/clusters/c", R"({"properties":{"scaleSettings":{"manual":{"targetNodeCount":1}}}})");
  ASSERT_EQ(changed.size(), 1u) << "reading what was there is a line of its own";
  const std::size_t after = changed[0].find("\"after\"");
  EXPECT_HAS(changed[0].substr(0, after), R"("before":{)");
  EXPECT_HAS(changed[0].substr(0, after), R"("targetNodeCount":0)");
  EXPECT_HAS(changed[0].substr(after), R"("targetNodeCount":1)");
  EXPECT_HAS(ask("DELETE", "/clusters/c", "").back(), R"("before":{)");
}

TEST(Audit, WhatWasDenied) {
  Audit audit;
  Service& service = audit.service;
  EXPECT_EQ(service.ask("DELETE", "/v1/pools/lab", "", "viewer").status, 403);
  std::string line = audit.only_line();
  EXPECT_HAS(line, R"("user":"viewer")");
  EXPECT_HAS(line, R"("decision":"denied","status":403)");
  EXPECT_EQ(service.ask("GET", "/v1/users", "", "member").status, 403);
  EXPECT_HAS(audit.only_line(), R"("object":"user","verb":"read","decision":"denied")");
  EXPECT_EQ(service.ask("POST", "/v1/jobs", job_body("j"), "nobody-knows-this").status, 401);
  EXPECT_HAS(audit.only_line(), R"("decision":"denied","status":401)");
  // Where the thing was found, its owner decides.
  ASSERT_EQ(
      service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})", "ana").status,
      201);
  ASSERT_EQ(service.ask("DELETE", "/v1/pools/lab", "", "member").status, 403);
  EXPECT_HAS(audit.lines().back(),
             R"("user":"member","role":"member","workspace":"default","method":"DELETE")");
}

TEST(Audit, UnauthorizedRequestsCannotFillTheDisk) {
  Audit audit;
  for (int i = 0; i < 1'000; ++i) audit.service.ask("GET", "/v1/jobs", "", "nobody-knows-this");
  EXPECT_LT(audit.lines().size(), 600u);  // 20 a second
}

TEST(Audit, SecretsAreNotInIt) {
  Audit audit;
  Service& service = audit.service;
  const Answer token = service.ask("POST", "/v1/tokens", R"({"name":"x","role":"viewer"})");
  ASSERT_EQ(token.status, 201);
  const char* secret =
      R"({"name":"s","tasks":[{"name":"main","command":["true"],"secrets":{"KEY":"5ecre7"}}]})";
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status, 201);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", secret).status, 201);
  ASSERT_EQ(
      service.ask("PUT", "/v1/datastores/d", R"({"url":"https://a.blob.core.windows.net/c?sig=5ecre7"})")
          .status,
      200);
  audit.lines();
  const std::string text = read_file(service.data() + "/audit.jsonl").value();
  EXPECT_HAS_NOT(text, "5ecre7");
  EXPECT_HAS_NOT(text, token.at("token"));
}

TEST(Audit, ReadsByChoice) {
  Audit without(false), with(true);
  for (Audit* audit : {&without, &with}) EXPECT_EQ(audit->service.get("/v1/jobs", "viewer").status, 200);
  EXPECT_TRUE(without.lines().empty());
  EXPECT_HAS(with.only_line(), R"("object":"job","verb":"read","decision":"allowed")");
}

TEST(Audit, AServiceWithAFullDiskChangesNothingAndCanBeStopped) {
  Audit audit;
  Service& service = audit.service;
  const std::string pool = R"({"name":"lab","nodes":0,"provisioner":"none"})";
  ASSERT_EQ(service.ask("POST", "/v1/pools", pool).status, 201);
  audit.lines();
  const auto is_degraded = [&] { return service.get("/v1/service").at("degraded").size() > 4; };  // null
  ASSERT_FALSE(is_degraded());

  // No file of this process may grow any more.
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit full{1, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  service.ask("DELETE", "/v1/pools/lab", "", "viewer");  // denied, which is kept, too
  while (!is_degraded()) std::this_thread::yield();
  EXPECT_EQ(service.get("/healthz").status, 503);
  const Answer refused = service.ask("POST", "/v1/jobs", job_body("j"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_HAS(refused.at("detail"), "audit log cannot be written");
  EXPECT_EQ(service.ask("POST", "/v1/service/stop", "{}").status, 202);

  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  while (is_degraded()) std::this_thread::yield();
  EXPECT_EQ(service.ask("POST", "/v1/jobs", job_body("j")).status, 201);
  EXPECT_EQ(audit.lines().size(), 3u);  // the denied one, the stop and the job
}

}  // namespace
}  // namespace slipway::test
