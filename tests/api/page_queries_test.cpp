// A page costs a bounded number of queries: as many SQL statements for ten rows as for a thousand.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <string_view>
#include <thread>

#include "api/service.h"
#include "store/sqlite.h"

namespace slipway::test {
namespace {

constexpr std::uint32_t rows_max = 1'000;
constexpr JobId sweep{1'000'000};

// Counts the statements of every connection that is opened while it exists, but for those of one thread.
class StatementCount {
 public:
  StatementCount() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(trace)); }
  ~StatementCount() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(trace)); }
  StatementCount(const StatementCount&) = delete;
  void leave_out(std::thread::id thread) { left_out_ = thread; }
  std::uint64_t take() { return count_.exchange(0); }

 private:
  static int trace(sqlite3* db, char**, const sqlite3_api_routines*) {
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count, nullptr);
  }
  static int count(unsigned, void*, void* statement, void*) {
    const std::string_view sql(sqlite3_sql(static_cast<sqlite3_stmt*>(statement)));
    // Not those of a connection that is opened, nor what ends after the answer was sent.
    const bool is_counted = !sql.starts_with("PRAGMA") && !sql.starts_with("BEGIN") &&
                            !sql.starts_with("COMMIT") && sql.find("sqlite_master") == std::string_view::npos;
    if (is_counted && std::this_thread::get_id() != left_out_.load()) ++count_;
    return 0;
  }

  static inline std::atomic<std::uint64_t> count_{0};
  static inline std::atomic<std::thread::id> left_out_{};
};

// A job of one array, whose tasks have all had an attempt.
control::Changes ended_sweep() {
  control::Changes changes;
  TaskSpec task;
  task.name = "w";
  task.command = std::string("true");
  task.count = rows_max;
  control::NewJob fresh{.job = {.id = sweep, .name = "sweep", .pool = "lab", .state = JobState::succeeded},
                        .spec = {},
                        .idempotency_key = {}};
  fresh.job.counts.succeeded = rows_max;
  fresh.spec.name = "sweep";
  fresh.spec.tasks = {task};
  changes.groups.push_back({sweep, 0, rows_max, TaskState::succeeded, fresh.job.counts});
  changes.jobs_new.push_back(std::move(fresh));
  for (std::uint32_t index = 0; index < rows_max; ++index) {
    const TaskRef ref{sweep, 0, index};
    changes.tasks.push_back(
        {.ref = ref, .name = task_name("w", index), .state = TaskState::succeeded, .attempts = 1});
    AttemptRecord& attempt = changes.attempts.emplace_back();
    attempt.key = {ref, 1};
    attempt.nodes = {{NodeId{1}, "n1", {}, {}, false}};
    attempt.end = EndReason::exited;
  }
  return changes;
}

// An experiment of the Batch AI API with as many jobs as fill a page.
void add_batchai_jobs(Service& service, const std::string& workspace) {
  const auto put = [&](const std::string& path, const std::string& body) {
    const Answer answer = service.ask("PUT", workspace + path, body);
    ASSERT_LT(answer.status, 300) << answer.body;
  };
  put("", R"({"location":"local"})");
  put("/experiments/e", "");
  put("/clusters/c",
      R"({"properties":{"vmSize":"cpu","scaleSettings":{"manual":{"targetNodeCount":0}},"userAccountSettings":{"adminUserName":"a","adminUserPassword":"p"}}})");
  put("/experiments/e/jobs/j",
      R"({"properties":{"cluster":{"id":")" + workspace +
          R"(/clusters/c"},"nodeCount":1,"stdOutErrPathPrefix":"/tmp","customToolkitSettings":{"commandLine":"true"}}})");
  service.in_turn([&](control::Controller& controller) {
    const control::Caller caller{"admin", "default"};
    const auto first = controller.find_job(caller, "j");
    ASSERT_TRUE(first) << first.error().what;
    JobSpec spec;
    spec.name = "again";
    spec.pool = "lab";
    spec.tags = first->tags;
    spec.tasks.emplace_back().name = "main";
    spec.tasks.front().command = std::string("true");
    for (std::uint32_t i = 1; i < rows_max; ++i) {
      const auto submitted = controller.submit(caller, spec, "");
      ASSERT_TRUE(submitted) << submitted.error().what;
    }
  });
}

TEST(PageQueries, AThousandRowsCostTheStatementsOfTen) {
  StatementCount statements;
  char folder[] = "/tmp/slipway-pages-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  auto store = store::open_sqlite(std::string(folder) + "/slipway.db");
  ASSERT_TRUE(store) << store.error().what;
  ASSERT_TRUE((*store)->save(ended_sweep()));
  {
    Service service({}, {}, {}, std::move(*store));
    const std::string workspace =
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.BatchAI/workspaces/w";
    ASSERT_EQ(service.ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status,
              201);
    add_batchai_jobs(service, workspace);
    service.in_turn([&](control::Controller&) { statements.leave_out(std::this_thread::get_id()); });
    struct Row {
      const char* page;
      std::string target;
      const char* items;
    };
    const Row pages[] = {
        {"jobs", "/v1/jobs?limit=", "items"},
        {"tasks", fmt::format("/v1/jobs/{}/tasks?limit=", to_string(sweep)), "items"},
        {"attempts", fmt::format("/v1/jobs/{}/attempts?limit=", to_string(sweep)), "items"},
        {"events", "/v1/events?limit=", "items"},
        {"jobs of Batch AI", workspace + "/experiments/e/jobs?maxresults=", "value"},
    };
    for (const Row& page : pages) {
      SCOPED_TRACE(page.page);
      const auto cost = [&](std::uint32_t rows) {
        statements.take();
        const Answer answer = service.get(page.target + std::to_string(rows));
        EXPECT_EQ(answer.status, 200) << answer.body.substr(0, 500);
        EXPECT_EQ(answer.size(page.items), rows);
        return statements.take();
      };
      const std::uint64_t few = cost(10);
      EXPECT_GT(few, 0u) << "nothing is counted";
      EXPECT_EQ(cost(rows_max), few);
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace slipway::test
