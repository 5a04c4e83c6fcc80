#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "api/service.h"
#include "base/file.h"
#include "domain/layout.h"

namespace slipway::test {
namespace {

constexpr const char* logs = "/v1/jobs/job_1/tasks/main/logs";

// A job whose only attempt is placed, so that its log has a home.
void place_job(Service& service) {
  ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"p","nodes":0,"provisioner":"none"})").status, 201);
  service.connect("n1", "p");
  const Answer submitted = service.ask("POST", "/v1/jobs", job_body("j"));
  ASSERT_EQ(submitted.status, 201) << submitted.body;
}

std::string log_folder(Service& service) {
  const std::string folder = service.data() + "/" + attempt_folder("default", JobId{1}, "main", 1);
  EXPECT_TRUE(make_folders(folder));
  return folder;
}

TEST(LogRoutes, TailOfASparseLogOfManyGigabytesIsCut) {
  Service service;
  place_job(service);
  const Fd file(::open((log_folder(service) + "/stdout.txt").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  ASSERT_EQ(::ftruncate(file.get(), off_t{6} << 30), 0);
  const Answer answer = service.get(std::string(logs) + "?tail=10");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body.size(), std::size_t{16} << 20);
  EXPECT_NE(answer.header("X-Slipway-Cut"), "");
}

TEST(LogRoutes, Tail) {
  Service service;
  place_job(service);
  ASSERT_TRUE(write_file(log_folder(service) + "/stdout.txt", "one\ntwo\nthree\n"));
  struct Row {
    const char* query;
    int status;
    const char* body;
  };
  const Row rows[] = {
      {"", 200, "one\ntwo\nthree\n"},     {"?tail=0", 200, ""},
      {"?tail=2", 200, "two\nthree\n"},   {"?tail=9", 200, "one\ntwo\nthree\n"},
      {"?offset=4", 200, "two\nthree\n"}, {"?offset=99", 200, ""},
      {"?process=main", 404, nullptr},    {"?tail=x", 400, nullptr},
      {"?stream=stdin", 400, nullptr},    {"?attempt=7", 404, nullptr},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.query);
    const Answer answer = service.get(std::string(logs) + row.query);
    EXPECT_EQ(answer.status, row.status);
    if (row.body)
      EXPECT_EQ(answer.body, row.body);
    else
      EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
    EXPECT_EQ(answer.header("X-Slipway-Cut"), "");
  }
}

}  // namespace
}  // namespace slipway::test
