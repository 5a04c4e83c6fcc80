// What was found by attacking a running service, each closed: the tests are named after the list they were
// found in.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "api/log_tail.h"
#include "api/service.h"
#include "base/file.h"

namespace slipway::test {
namespace {

struct TemporaryFolder {
  TemporaryFolder() {
    char pattern[] = "/tmp/slipway-attack-XXXXXX";
    path = ::mkdtemp(pattern);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

TEST(Attack, C1_AMemberMakesADatastoreOfTheDataFolder) {
  const TemporaryFolder shared;
  Service service({}, {shared.path});
  ASSERT_TRUE(write_file(service.data() + "/token", "the admin's"));
  std::filesystem::create_directories(shared.path + "/set/inner");
  std::filesystem::create_symlink(service.data(), shared.path + "/link");
  const auto put = [&](const std::string& path, const std::string& token) {
    return service.ask("PUT", "/v1/datastores/d", R"({"path":")" + path + R"("})", token).status;
  };
  for (const std::string& path : {service.data(), shared.path + "/set", std::string("/no/such")})
    EXPECT_EQ(put(path, "member"), 403) << path;
  EXPECT_EQ(service.ask("PUT", "/v1/datastores/d", R"({"url":"http://h.blob.x/c"})", "member").status, 403);
  EXPECT_EQ(put(shared.path + "/set", "admin"), 200);
  EXPECT_EQ(put(shared.path + "/not-yet-there", "admin"), 200);
  const std::string refused[] = {service.data(),
                                 service.data() + "/",
                                 service.data() + "/nodes",
                                 "/tmp",
                                 "/",
                                 shared.path + "/link",
                                 "/etc",
                                 shared.path + "/../",
                                 shared.path + "/set/../../" + "x",
                                 shared.path + "x"};
  for (const std::string& path : refused) EXPECT_EQ(put(path, "admin"), 403) << path;
}

TEST(Attack, C1_ADatastoreBecomesALinkToTheDataFolder) {
  const TemporaryFolder shared;
  Service service({}, {shared.path});
  ASSERT_TRUE(write_file(service.data() + "/token", "the admin's"));
  std::filesystem::create_directories(shared.path + "/set");
  ASSERT_EQ(service.ask("PUT", "/v1/datastores/d", R"({"path":")" + shared.path + R"(/set"})").status, 200);
  ASSERT_EQ(service.ask("GET", "/v1/datastores/d/files").status, 200);
  std::filesystem::remove(shared.path + "/set");
  std::filesystem::create_symlink(service.data(), shared.path + "/set");
  EXPECT_EQ(service.ask("GET", "/v1/datastores/d/files").status, 403);
  EXPECT_EQ(service.ask("GET", "/v1/datastores/d/content?path=token").status, 403);
  EXPECT_EQ(service.ask("POST", "/v1/datastores/d/folders?path=x").status, 403);
  EXPECT_FALSE(std::filesystem::exists(service.data() + "/x"));
}

TEST(Attack, C1_WithoutARootNoFolderIsExposed) {
  const TemporaryFolder shared;
  Service service;
  const Answer answer = service.ask("PUT", "/v1/datastores/d", R"({"path":")" + shared.path + R"("})");
  EXPECT_EQ(answer.status, 403);
  EXPECT_NE(answer.body.find("--datastore-root"), std::string::npos) << answer.body;
}

// 6 GiB without a newline: tests/api/log_routes_test.cpp asks the log, this the limits of what is searched.
TEST(Attack, H1_TheTailOfALogWithoutNewlinesIsBounded) {
  api::TailSearch search(std::uint64_t{6} << 30, 1);
  const std::string piece(api::TailSearch::piece_max, '\0');
  std::uint64_t read = 0;
  while (const auto next = search.next()) {
    read += next->length;
    search.add(piece);
  }
  EXPECT_LE(read, api::TailSearch::bytes_max + api::TailSearch::piece_max);
  EXPECT_TRUE(search.is_cut());
}

TEST(Attack, H5_ABodyOnAPathThatIsOpenToAnyone) {
  Service service;
  const std::string open[] = {"/healthz", "/batchai/download/1/x/a/b"};
  for (const std::string& path : open)
    for (const char* method : {"GET", "POST", "PUT"}) {
      net::Request head;
      head.method = method;
      head.target = head.path = path;
      const net::BodyPolicy policy = service.policy(head);
      EXPECT_TRUE(policy.refuse || policy.size_max == 0) << method << " " << path;
    }
  net::Request login;  // has to say who signs in, and no more
  login.method = "POST";
  login.target = login.path = "/v1/login";
  EXPECT_EQ(service.policy(login).size_max, 16u << 10);
}

TEST(Attack, Browser_ARequestForANameOfSomebodyElse) {
  Service service;
  struct Row {
    const char* host;
    int status;
  };
  const Row rows[] = {
      {"127.0.0.1:8470", 200},
      {"localhost", 200},
      {"LOCALHOST.:8470", 200},
      {"ui.localhost", 200},
      {"[::1]:8470", 200},
      {"10.1.2.3", 200},
      {"slipway.lab", 200},
      {"Slipway.Lab:443", 200},
      {"evil.example", 421},
      {"slipway.lab.evil", 421},
      {"x", 421},
      {"", 421},
      {"127.0.0.1.evil.net", 421},
      {"localhost@evil", 421},
      {"1.2.3.4:80:90", 421},
      {"[::1", 421},
      {"evil.example:8470", 421},
      {"localhostx", 421},
      {"2130706433", 421},
      {"slipway.lab:x", 421},
  };
  for (const Row& row : rows) {
    const Answer answer = service.ask("GET", "/healthz", {}, "admin", {{"Host", row.host}});
    EXPECT_EQ(answer.status, row.status) << row.host;
    if (row.status == 421) {
      EXPECT_NE(answer.at("hint").find("--host-name"), std::string::npos) << answer.body;
    }
  }
  // Whoever asks, and whatever for: also where the answer to a token would be another.
  EXPECT_EQ(service.ask("GET", "/v1/jobs", {}, "nobody", {{"Host", "evil.example"}}).status, 421);
  EXPECT_EQ(service.ask("GET", "/v1/jobs").status, 200) << "who sends none is no browser";
}

TEST(Attack, Browser_AChangeFromAPageOfAnotherSite) {
  Service service;
  struct Row {
    const char* origin;
    bool is_same;
  };
  const Row rows[] = {{"http://127.0.0.1:8470", true},
                      {"https://127.0.0.1:8470", true},
                      {"http://127.0.0.1", false},
                      {"http://127.0.0.1:8471", false},
                      {"http://evil.example", false},
                      {"null", false},
                      {"", false},
                      {"http://127.0.0.1:8470.evil", false},
                      {"http://127.0.0.1:8470@evil", false},
                      {"127.0.0.1:8470", false}};
  for (const Row& row : rows) {
    const net::Headers headers{{"Host", "127.0.0.1:8470"}, {"Origin", row.origin}};
    const int changed = service.ask("PUT", "/v1/datastores/d", "{}", "admin", headers).status;
    EXPECT_EQ(changed, row.is_same ? 200 : 403) << row.origin;
    net::Headers upgrade = headers;
    upgrade.insert(upgrade.end(), {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}});
    const int upgraded = service.ask("GET", "/v1/service", {}, "admin", upgrade).status;
    EXPECT_EQ(upgraded, row.is_same ? 200 : 403) << row.origin;
    EXPECT_EQ(service.ask("GET", "/v1/service", {}, "admin", headers).status, 200) << row.origin;
  }
  const net::Headers usual{{"Host", "slipway.lab"}, {"Origin", "https://slipway.lab:443"}};
  EXPECT_EQ(service.ask("PUT", "/v1/datastores/d", "{}", "admin", usual).status, 200);
}

TEST(Attack, Browser_ABodyThatAFormCouldSend) {
  Service service;
  struct Row {
    const char* type;
    int document;
    int file;
  };
  const Row rows[] = {{"application/json", 200, 0},
                      {"application/json; charset=utf-8", 200, 0},
                      {"Application/JSON", 200, 0},
                      {"application/merge-patch+json", 200, 0},
                      {"application/octet-stream", 200, 0},
                      {"text/plain", 415, 415},
                      {"TEXT/plain;charset=UTF-8", 415, 415},
                      {"application/x-www-form-urlencoded", 415, 415},
                      {"multipart/form-data; boundary=x", 415, 415},
                      {"image/png", 415, 0},
                      {"application/x-tar", 415, 0},
                      {"application/xml", 415, 0},
                      {"", 415, 0}};
  for (const Row& row : rows) {
    const net::Headers headers{{"Content-Type", row.type}, {"Content-Length", "2"}};
    const Answer answer = service.ask("PUT", "/v1/datastores/d", "{}", "admin", headers);
    EXPECT_EQ(answer.status, row.document) << row.type;
    if (row.document == 415) {
      EXPECT_NE(answer.at("hint").find("Content-Type"), std::string::npos) << answer.body;
    }
    net::Request head;
    head.method = "PUT";
    head.target = head.path = "/v1/datastores/d/content";
    head.headers = headers;
    head.headers.emplace_back("Authorization", "Bearer member");
    const net::BodyPolicy policy = service.policy(head);
    EXPECT_EQ(policy.refuse ? policy.refuse->status : 0, row.file) << row.type;
  }
  const net::Headers chunked{{"Content-Type", "text/plain"}, {"Transfer-Encoding", "chunked"}};
  EXPECT_EQ(service.ask("PUT", "/v1/datastores/d", "{}", "admin", chunked).status, 415);
  const net::Headers nothing{{"Content-Type", "text/plain"}, {"Content-Length", "0"}};
  EXPECT_EQ(service.ask("DELETE", "/v1/datastores/d", {}, "admin", nothing).status, 204);
  EXPECT_NE(service.ask("PUT", "/v1/datastores/d", "{}", "admin", {{"Content-Length", "2"}}).status, 415)
      << "no type at all is JSON; of a browser's, the origin is known";
}

TEST(Attack, M1_ARefusedUploadStaysOnTheDisk) {
  Service service;
  net::Request head;
  head.method = "PUT";
  head.target = head.path = "/v1/blobs/" + std::string(64, '0');
  head.headers = {{"Authorization", "Bearer viewer"}};
  EXPECT_TRUE(service.policy(head).refuse) << "not a byte of it is read";
  head.headers = {{"Authorization", "Bearer member"}};
  const net::BodyPolicy policy = service.policy(head);
  EXPECT_FALSE(policy.refuse);
  // What was read before a token was revoked, or has another content than its name says.
  for (const char* token : {"viewer", "member", ""}) {
    const std::string file = policy.spool_folder + "/body.1";
    ASSERT_TRUE(write_file(file, "content"));
    const Answer answer = service.ask("PUT", head.target, {}, token, {}, file);
    EXPECT_GE(answer.status, 400);
    // With the last that holds the request, a moment after the answer.
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (std::filesystem::exists(file) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_FALSE(std::filesystem::exists(file)) << token;
  }
}

TEST(Attack, M2_AMemberLiftsItsOwnLimits) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status, 201);
  const char* lifted = R"({"policy":{"per_user":{"max_nodes":0}}})";
  EXPECT_EQ(service.ask("PATCH", "/v1/pools/lab", lifted, "member").status, 403);
  EXPECT_EQ(service.ask("PATCH", "/v1/pools/lab", lifted, "admin").status, 200);
}

TEST(Attack, M2_AMemberForceDeletesAPoolAndTheJobsOfOthers) {
  Service service;
  ASSERT_EQ(
      service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})", "ana").status,
      201);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("j", R"("pool":"lab",)"), "member").status, 201);
  EXPECT_EQ(service.ask("DELETE", "/v1/pools/lab?force=true", "", "member").status, 403);  // not its pool
  EXPECT_EQ(service.ask("DELETE", "/v1/pools/lab?force=true", "", "ana").status, 403);     // not its jobs
  EXPECT_EQ(service.get("/v1/jobs/job_1").at("state"), "queued");
  EXPECT_EQ(service.ask("DELETE", "/v1/pools/lab?force=true", "", "admin").status, 204);
}

TEST(Attack, M2_AMemberCancelsTheJobsOfOthers) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status, 201);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("j"), "ana").status, 201);
  EXPECT_EQ(service.ask("POST", "/v1/jobs/job_1/cancel", "{}", "member").status, 403);
  EXPECT_EQ(service.get("/v1/jobs/job_1").at("state"), "queued");
  EXPECT_EQ(service.ask("POST", "/v1/jobs/job_1/cancel", "{}", "ana").status, 200);
  EXPECT_EQ(service.ask("DELETE", "/v1/jobs/job_1", "", "member").status, 403);
  EXPECT_EQ(service.ask("DELETE", "/v1/jobs/job_1", "", "admin").status, 204);
}

TEST(Attack, H4_AJobWithAnUnknownSnapshotIsAccepted) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status, 201);
  const std::string unknown = fmt::format(R"("source":"{}",)", std::string(64, 'a'));
  const Answer answer = service.ask("POST", "/v1/jobs", job_body("j", unknown));
  EXPECT_EQ(answer.status, 400) << answer.body;
}

TEST(Attack, M4_TheSasOfADatastoreIsShownAndStoredInClear) {
  Service service;
  const char* body = R"({"url":"https://lab.blob.core.windows.net/data?sv=1&sig=5ecre7"})";
  ASSERT_EQ(service.ask("PUT", "/v1/datastores/d", body).status, 200);
  for (const char* path : {"/v1/datastores/d", "/v1/datastores"}) {
    const Answer shown = service.get(path);
    EXPECT_NE(shown.body.find("https://lab.blob.core.windows.net/data"), std::string::npos) << shown.body;
    EXPECT_EQ(shown.body.find("5ecre7"), std::string::npos) << shown.body;
  }
  const auto stored = service.store().load();
  ASSERT_TRUE(stored);
  ASSERT_EQ(stored->datastores.size(), 1u);
  EXPECT_EQ(stored->datastores[0].url, "https://lab.blob.core.windows.net/data");
  EXPECT_TRUE(is_sealed(stored->datastores[0].key));
  const char* both = R"({"url":"https://lab.blob.core.windows.net/data?sig=x","key":"a2V5"})";
  EXPECT_EQ(service.ask("PUT", "/v1/datastores/e", both).status, 400);
}

TEST(Attack, H6_ALargeBodyHoldsUpTheLoop) {
  Service service;
  std::string yaml = "name: j\ntasks:\n- name: main\n  command: [";
  while (yaml.size() < 900'000) yaml += "'an argument of some length that is not needed', ";
  yaml += "x]\n";
  auto large = service.begin("POST", "/v1/jobs", yaml, "member", {{"Content-Type", "application/yaml"}});
  EXPECT_EQ(service.get("/healthz").status, 200);
  EXPECT_EQ(large.wait_for(0s), std::future_status::timeout) << "the small request waited for the large one";
  EXPECT_NE(large.get().status, 0);
}

TEST(Attack, H6_BodiesAreBounded) {
  Service service;
  net::Request head;
  head.method = "POST";
  head.headers = {{"Authorization", "Bearer admin"}};
  for (const char* path : {"/v1/pools", "/v1/tokens", "/v1/service/stop", "/v1/nodes/n/evict"}) {
    head.target = head.path = path;
    EXPECT_LE(service.policy(head).size_max, 1u << 20) << path;
  }
  const auto refused = [&](const std::string& yaml, const char* why) {
    const Answer answer =
        service.ask("POST", "/v1/jobs", yaml, "member", {{"Content-Type", "application/yaml"}});
    EXPECT_EQ(answer.status, 400);
    EXPECT_NE(answer.body.find(why), std::string::npos) << answer.body.substr(0, 500);
  };
  std::string many = "tasks: [";
  for (int i = 0; i < 150'000; ++i) many += "1, ";
  refused(many + "1]", "more than 100000 values");
  std::string aliases = "a: &a x\ntasks: [";
  for (int i = 0; i < 2'000; ++i) aliases += "*a, ";
  refused(aliases + "*a]", "more than 1000 aliases");
  refused("# " + std::string(1 << 20, 'x') + "\ntasks: []", "MiB are allowed");
}

// With the secrets it was submitted with, which another's copy could print.
TEST(Attack, AMemberSubmitsTheSecretsOfAnotherAgain) {
  Service service;
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status, 201);
  const char* secret = R"({"name":"s","tasks":[{"name":"main","command":["true"],"secrets":{"KEY":"x"}}]})";
  ASSERT_EQ(service.ask("POST", "/v1/jobs", secret, "ana").status, 201);
  ASSERT_EQ(service.ask("POST", "/v1/jobs", job_body("plain"), "ana").status, 201);
  EXPECT_EQ(service.ask("POST", "/v1/jobs/job_1/resubmit", "", "member").status, 403);
  EXPECT_EQ(service.ask("POST", "/v1/jobs/job_1/resubmit", "", "ana").status, 201);
  EXPECT_EQ(service.ask("POST", "/v1/jobs/job_2/resubmit", "", "member").status, 201);
}

}  // namespace
}  // namespace slipway::test
