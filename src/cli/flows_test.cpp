// Whole commands against a service made of a table of answers: what is asked, what is printed, how it ends.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "base/check.h"
#include "base/file.h"
#include "base/sha256.h"
#include "cli/testing.h"

namespace slipway::cli {
namespace {

using ExchangePtr = std::shared_ptr<net::Exchange>;

std::string job_json(const std::string& state, const std::string& reason = "") {
  return fmt::format(R"({{"id":"job_1","name":"j","pool":"lab","priority":0,"state":"{}","reason":"{}",)"
                     R"("tasks":{{"total":1,"waiting":0,"queued":0,"active":0,"succeeded":1,"failed":0}}}})",
                     state, reason);
}

std::string task_json(const std::string& state, int attempts, const std::string& result, int processes = 1) {
  std::string names;
  for (int rank = 0; rank < processes; ++rank) names += fmt::format("{}\"{}\"", rank > 0 ? "," : "", rank);
  return fmt::format(
      R"({{"job":"job_1","name":"t","state":"{}","attempts":{},{},"reason":"r","processes":{},"process_names":[{}],"history":[]}})",
      state, attempts, result, processes, names);
}

// Answers a log with what `text_of` says for the stream, process and attempt asked for.
FakeService::Answer logs(std::function<std::string(const net::Request&)> text_of) {
  return [text_of](const ExchangePtr& exchange) {
    exchange->send({200, {{"Content-Type", "text/plain"}}, text_of(exchange->request())});
  };
}

void offer_pool(FakeService& service, bool local) {
  service.on("GET /v1/pools", 200, R"({"items":[{"name":"lab","provisioner":"local"}],"next":null})");
  service.on("GET /v1/nodes", 200,
             fmt::format(R"({{"items":[{{"name":"n1","local":{},"host":""}}],"next":null}})", local));
  service.on("POST /v1/jobs", 201, job_json("queued"));
}

Ran run_t(const FakeService& service) {
  return service.run({"run", "--name", "t", "--", "./t", "--flag", "job"});
}

TEST(Run, StreamsBothOutputsAndExitsAsTheTaskDoes) {
  FakeService service;
  offer_pool(service, true);
  service.on("GET /v1/jobs/job_1/tasks/t", 200, task_json("failed", 1, R"("exit_code":3,"signal":null)"));
  service.on("GET /v1/jobs/job_1/tasks/t/logs",
             logs([](const net::Request& request) { return *request.parameter("stream") + " text"; }));
  const Ran ran = run_t(service);
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.out, "stdout text");
  EXPECT_TRUE(ran.err.starts_with("stderr text")) << ran.err;
  EXPECT_NE(ran.err.find("job_1 failed: r\n"), std::string::npos) << ran.err;
  const std::string body = service.body_of("POST /v1/jobs");
  EXPECT_NE(body.find(R"(["./t","--flag","job"])"), std::string::npos) << body;
  EXPECT_NE(body.find(std::filesystem::current_path().string()), std::string::npos) << body;
}

TEST(Run, EndsBySignalOrWithoutStarting) {
  struct Row {
    const char* rule;
    const char* state;
    int attempts;
    const char* result;
    int code;
  };
  const Row rows[] = {{"success", "succeeded", 1, R"("exit_code":0,"signal":null)", 0},
                      {"a signal", "failed", 1, R"("exit_code":null,"signal":9)", 137},
                      {"never ran", "cancelled", 0, R"("exit_code":null,"signal":null)", 1}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    FakeService service;
    offer_pool(service, true);
    service.on("GET /v1/jobs/job_1/tasks/t", 200, task_json(row.state, row.attempts, row.result));
    if (row.attempts > 0) service.on("GET /v1/jobs/job_1/tasks/t/logs", logs([](auto&) { return ""; }));
    EXPECT_EQ(run_t(service).code, row.code);
  }
}

TEST(Run, FollowsAttemptAfterAttempt) {
  FakeService service;
  offer_pool(service, true);
  std::atomic<int> asked = 0;
  service.on("GET /v1/jobs/job_1/tasks/t", [&asked](const ExchangePtr& exchange) {
    const bool first_look = asked++ == 0, second_look = asked == 2;
    exchange->send(json_response(200, first_look    ? task_json("queued", 0, R"("exit_code":null)")
                                      : second_look ? task_json("queued", 1, R"("exit_code":1)")
                                                    : task_json("succeeded", 2, R"("exit_code":0)")));
  });
  service.on("GET /v1/jobs/job_1/tasks/t/logs", logs([](const net::Request& request) {
               return *request.parameter("stream") == "stdout"
                          ? "attempt " + *request.parameter("attempt") + "\n"
                          : "";
             }));
  const Ran ran = run_t(service);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "attempt 1\nattempt 2\n");
  EXPECT_EQ(ran.err, "job_1/t: attempt 1 failed, retrying: r\n");
}

TEST(Run, NamesTheProcessOfEachLine) {
  FakeService service;
  offer_pool(service, true);
  service.on("GET /v1/jobs/job_1/tasks/t", 200, task_json("succeeded", 1, R"("exit_code":0)", 2));
  service.on("GET /v1/jobs/job_1/tasks/t/logs", logs([](const net::Request& request) {
               return *request.parameter("stream") == "stdout" ? "a\nb" : "";
             }));
  const std::string out = run_t(service).out;
  for (const char* line : {"[0] a\n", "[0] b\n", "[1] a\n", "[1] b\n"})
    EXPECT_NE(out.find(line), std::string::npos) << out;
  EXPECT_EQ(out.size(), 4u * 6u);
}

TEST(Run, RemotePoolNeedsSourceOrWorkdir) {
  FakeService service;
  offer_pool(service, false);
  const Ran ran = run_t(service);
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--source"), std::string::npos) << ran.err;
  EXPECT_TRUE(service.seen("POST").empty());
}

TEST(Run, InterruptedLogStreamIsResumed) {
  FakeService service;
  offer_pool(service, true);
  service.on("GET /v1/jobs/job_1/tasks/t", 200, task_json("succeeded", 1, R"("exit_code":0)"));
  service.on("GET /v1/jobs/job_1/tasks/t/logs", [](const ExchangePtr& exchange) {
    const net::Request& request = exchange->request();
    if (*request.parameter("stream") == "stderr") return exchange->send({200, {}, ""});
    const std::string offset = request.parameter("offset").value_or("0");
    const std::shared_ptr<net::Stream> stream = exchange->start_stream(200, {});
    if (offset == "0")
      stream->write("hello ", [stream] {});  // and dropped without its end
    else
      stream->write("from " + offset, [stream] { stream->finish(); });
  });
  const Ran ran = run_t(service);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "hello from 6");
}

// A command line in a process of its own, because Ctrl-C ends it. Made before the service's thread starts,
// and passed the words through a pipe.
class OtherProcess {
 public:
  OtherProcess() {
    int in[2], err[2];
    SLIPWAY_CHECK(::pipe(in) == 0 && ::pipe(err) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(err[1], STDERR_FILENO);
      char url[256] = {}, token[256] = {};
      SLIPWAY_CHECK(::read(in[0], url, sizeof url) == sizeof url);
      SLIPWAY_CHECK(::read(in[0], token, sizeof token) == sizeof token);
      char words[][16] = {"slipway", "--service", "--token-file", "run", "--name", "t", "--", "./t"};
      char* arguments[] = {words[0], words[1], url,      words[2], token,
                           words[3], words[4], words[5], words[6], words[7]};
      ::_exit(cli::run(10, arguments, {}));
    }
    ::close(in[0]);
    ::close(err[1]);
    in_ = Fd(in[1]);
    err_ = Fd(err[0]);
  }
  pid_t pid() const { return pid_; }
  void start(const FakeService& service) {
    for (std::string word : {service.url(), service.folder().path("token")}) {
      word.resize(256);
      ASSERT_EQ(::write(in_.get(), word.data(), word.size()), 256);
    }
  }
  Ran wait() {
    Ran ran;
    char text[4096];
    for (ssize_t got; (got = ::read(err_.get(), text, sizeof text)) > 0;)
      ran.err.append(text, static_cast<std::size_t>(got));
    int status = 0;
    SLIPWAY_CHECK(::waitpid(pid_, &status, 0) == pid_);
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ran;
  }

 private:
  pid_t pid_ = 0;
  Fd in_, err_;
};

TEST(Run, CtrlCPrintsHowToResume) {
  OtherProcess process;
  FakeService service;
  offer_pool(service, true);
  service.on("GET /v1/jobs/job_1/tasks/t", 200, task_json("running", 1, R"("exit_code":null)"));
  const auto kept = std::make_shared<std::vector<ExchangePtr>>();  // never answered
  service.on("GET /v1/jobs/job_1/tasks/t/logs", [kept, pid = process.pid()](const ExchangePtr& exchange) {
    kept->push_back(exchange);
    if (kept->size() == 2) ::kill(pid, SIGINT);
  });
  process.start(service);
  const Ran ran = process.wait();
  EXPECT_EQ(ran.code, 130);
  EXPECT_NE(ran.err.find("slipway logs job_1 -f"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("slipway job cancel job_1"), std::string::npos) << ran.err;
}

TEST(Submit, SendsOnlyTheCodeThatIsMissing) {
  FakeService service;
  const TemporaryFolder folder;
  folder.write("job.yaml", "name: j\nsource: ./code\ntasks:\n  - name: t\n    command: ./run\n");
  folder.write("code/old", "old");
  folder.write("code/new", "new");
  folder.write("code/same as new", "new");
  service.on("POST /v1/blobs/missing", [](const ExchangePtr& exchange) {
    std::string missing = exchange->request().body;  // all but `old`
    missing.replace(missing.find("hashes"), 6, "missing");
    missing.replace(missing.find(sha256_hex("old")), 64, sha256_hex("new"));
    exchange->send(json_response(200, missing));
  });
  const auto store = [](const ExchangePtr& exchange) { exchange->send({201, {}, ""}); };
  service.on("PUT /v1/blobs/" + sha256_hex("new"), store);
  service.on("POST /v1/jobs", 201, job_json("queued"));
  // The manifest's own hash is only known once it was asked about.
  const Ran first = service.run({"job", "submit", folder.path("job.yaml")});
  EXPECT_EQ(first.code, 1);
  ASSERT_EQ(service.seen("PUT").size(), 2u);
  EXPECT_EQ(service.seen("PUT")[0], "PUT /v1/blobs/" + sha256_hex("new"));
  service.on(service.seen("PUT")[1], store);
  const Ran second = service.run({"job", "submit", folder.path("job.yaml"), "--set", "priority=5"});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.out, "job_1\n");
  const std::string manifest = service.body_of(service.seen("PUT").back());
  EXPECT_NE(manifest.find("same as new"), std::string::npos) << manifest;
  const std::string body = service.body_of("POST /v1/jobs");
  EXPECT_NE(body.find("\"" + sha256_hex(manifest) + "\""), std::string::npos) << body;
  EXPECT_NE(body.find("\"priority\":5"), std::string::npos) << body;
}

TEST(Submit, MissingSourceFolderIsNamedWithItsLine) {
  FakeService service;
  const TemporaryFolder folder;
  folder.write("job.yaml", "name: a\nsource: ./nowhere\ntasks: [{name: t, command: ls}]\n");
  const Ran ran = service.run({"job", "submit", folder.path("job.yaml")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find(fmt::format("job.yaml line 2, column 9: source {} is not a folder\n",
                                     folder.path("nowhere"))),
            std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("source: ./nowhere\n               ^\ntry:   a relative folder"), std::string::npos)
      << ran.err;
}

TEST(Submit, FlagsComeBeforeTheFile) {
  FakeService service;
  service.on("POST /v1/jobs", 201, job_json("queued"));
  const TemporaryFolder folder;
  folder.write("job.yaml",
               "name: a\npool: lab\nenvironment: {RATE: 1, KEEP: x}\ntasks: [{name: t, command: ls}]\n");
  const Ran ran = service.run({"job", "submit", folder.path("job.yaml"), "--pool", "gpu", "--name", "b",
                               "--priority", "-5", "--env", "RATE=0.10", "-e", "MORE="});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::string body = service.body_of("POST /v1/jobs");
  for (const char* part : {R"("name":"b")", R"("pool":"gpu")", R"("priority":-5)", R"("RATE":"0.10")",
                           R"("KEEP":"x")", R"("MORE":"")"})
    EXPECT_NE(body.find(part), std::string::npos) << part << " is not in " << body;
  EXPECT_EQ(service.run({"job", "submit", folder.path("job.yaml"), "--name", "job_7"}).code, 1);
  EXPECT_EQ(service.run({"job", "submit", folder.path("job.yaml"), "--priority", "high"}).code, 2);
}

TEST(Wait, ReturnsTheStateOfEndedJobs) {
  struct Row {
    const char* state;
    int code;
  };
  for (const Row& row : {Row{"succeeded", 0}, Row{"failed", 1}, Row{"cancelled", 1}}) {
    FakeService service;
    service.on("GET /v1/jobs/j/wait", 200, job_json(row.state, "because"));
    const Ran ran = service.run({"job", "wait", "j"});
    EXPECT_EQ(ran.code, row.code) << row.state;
    EXPECT_EQ(ran.out, "");
    EXPECT_NE(ran.err.find(row.state), std::string::npos) << ran.err;
  }
}

TEST(Wait, TasksOfAQueuedJobAreStartingNotRunning) {
  FakeService service;
  std::atomic<int> asked = 0;
  const auto job = [](const char* state) {
    return fmt::format(R"({{"id":"job_1","state":"{}","tasks":{{"total":3,"queued":1,"active":2}}}})", state);
  };
  service.on("GET /v1/jobs/job_1/wait", [&](const ExchangePtr& exchange) {
    const int times = ++asked;
    exchange->send(json_response(200, job(times == 1 ? "queued" : times == 2 ? "running" : "succeeded")));
  });
  const Ran ran = service.run({"job", "wait", "job_1"});
  EXPECT_NE(ran.err.find("job_1 queued: 0 of 3 tasks done, 2 starting, 1 queued\n"), std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("job_1 running: 0 of 3 tasks done, 2 running, 1 queued\n"), std::string::npos)
      << ran.err;
}

TEST(Wait, TimesOut) {
  FakeService service;
  service.on("GET /v1/jobs/j/wait", 200, job_json("running"));
  const Ran ran = service.run({"job", "wait", "j", "--timeout", "10ms"});
  EXPECT_EQ(ran.code, 124);
  EXPECT_NE(ran.err.find("error: job_1 has not ended in time\nwhy:   it is running\n"), std::string::npos)
      << ran.err;
}

TEST(Lists, ReadAllPages) {
  FakeService service;
  service.on("GET /v1/jobs", [](const ExchangePtr& exchange) {
    const bool first = !exchange->request().parameter("after");
    exchange->send(
        json_response(200, first ? R"({"items":[{"id":"job_2","name":"b","state":"running"}],"next":"2"})"
                                 : R"({"items":[{"id":"job_1","name":"a","state":"failed"}],"next":null})"));
  });
  EXPECT_EQ(service.run({"job", "list", "-o", "quiet"}).out, "job_2\njob_1\n");
  EXPECT_EQ(service.run({"job", "list", "-o", "quiet", "--limit", "1"}).out, "job_2\n");
  EXPECT_EQ(service.run({"-o", "json", "job", "list"}).out,
            "{\n  \"items\": [\n    {\n      \"id\": \"job_2\",\n      \"name\": \"b\",\n      \"state\": "
            "\"running\"\n    },\n    {\n      \"id\": \"job_1\",\n      \"name\": \"a\",\n      \"state\": "
            "\"failed\"\n    }\n  ]\n}\n");
  const std::string table = service.run({"job", "list"}).out;
  EXPECT_TRUE(table.starts_with("JOB    NAME  POOL  STATE ")) << table;
  EXPECT_NE(table.find("\njob_1  a     -     failed "), std::string::npos) << table;
}

TEST(Lists, LimitZeroShowsNothing) {
  FakeService service;
  service.on("GET /v1/jobs", 200, R"({"items":[{"id":"job_2"}],"next":"job_2"})");
  EXPECT_EQ(service.run({"job", "list", "--limit", "0", "-o", "quiet"}).out, "");
  EXPECT_EQ(service.run({"job", "list", "--limit", "0", "-o", "json"}).out, "{\n  \"items\": []\n}\n");
  const Ran ran = service.run({"job", "list", "--limit", "-1"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(ran.err.starts_with("error: --limit: must be 0 or more\n")) << ran.err;
}

TEST(Problems, ArePrintedAsWhatWhyAndTry) {
  FakeService service;
  service.on(
      "GET /v1/pools/lba", 404,
      R"({"status":404,"code":"not_found","detail":"there is no pool lba\nthe pools are lab","hint":"lab"})");
  const Ran ran = service.run({"pool", "show", "lba"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "error: there is no pool lba\nwhy:   the pools are lab\ntry:   lab\n");
  const Ran no_token = run_cli({"pool", "list", "--service", service.url()});
  EXPECT_EQ(no_token.code, 1);
  EXPECT_NE(no_token.err.find("why:   no token was sent"), std::string::npos) << no_token.err;
}

TEST(Delete, NeedsYesWithoutATerminal) {
  FakeService service;
  service.on("DELETE /v1/pools/lab", 200, "{}");
  const std::vector<std::vector<std::string>> commands = {
      {"job", "delete", "job_1"},       {"pool", "delete", "lab"},
      {"token", "revoke", "tok_1"},     {"datastore", "delete", "faces"},
      {"group", "delete", "-n", "lab"}, {"batchai", "job", "delete", "-n", "fit"}};
  for (const std::vector<std::string>& words : commands) {
    SCOPED_TRACE(words[0]);
    const Ran ran = service.run(words);
    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(ran.err.starts_with("error: not confirmed: ")) << ran.err;
    EXPECT_NE(ran.err.find("try:   add --yes"), std::string::npos) << ran.err;
  }
  EXPECT_TRUE(service.seen("DELETE").empty());
  EXPECT_EQ(service.run({"pool", "delete", "lab", "--yes"}).code, 0);
}

TEST(Files, DownloadsAreAtomic) {
  FakeService service;
  const TemporaryFolder folder;
  service.on("GET /v1/jobs/job_1/tasks/t%5B7%5D/files/content",
             logs([](const net::Request& request) { return "content of " + *request.parameter("path"); }));
  EXPECT_EQ(service.run({"files", "get", "job_1/t[7]", "out/a b"}).out, "content of out/a b");
  EXPECT_EQ(service.run({"files", "get", "job_1/t[7]", "x", "--to", folder.path("x")}).code, 0);
  EXPECT_EQ(folder.read("x"), "content of x");
  const Ran failed = service.run({"files", "get", "job_1/other", "x", "--to", folder.path("x")});
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(folder.read("x"), "content of x");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Events, FollowStartsAtTheFirst) {
  FakeService service;
  service.on("GET /v1/events", [](const ExchangePtr& exchange) {
    EXPECT_EQ(exchange->request().header("Last-Event-ID"), "0");
    EXPECT_EQ(exchange->request().parameter("job"), "job_1");
    exchange->send({200,
                    {{"Content-Type", "text/event-stream"}},
                    ": hello\n\nid: 7\ndata: {\"id\":7,\"time\":\"2026-03-02T10:00:00.123456Z\",\"kind\":"
                    "\"job.submitted\",\"job\":\"job_1\",\"text\":\"by ana\"}\n\n"});
  });
  EXPECT_EQ(service.run({"events", "-f", "--job", "job_1"}).out,
            "2026-03-02T10:00:00Z  job.submitted       job_1                 by ana\n");
}

TEST(Tokens, SecretFileIsReadableByItsOwnerOnly) {
  FakeService service;
  const TemporaryFolder folder;
  service.on("POST /v1/tokens", 201, R"({"id":"tok_1","name":"ana","role":"viewer","token":"s3cret"})");
  const Ran ran = service.run({"token", "create", "ana", "--role", "viewer", "--to", folder.path("t")});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out + ran.err, "token tok_1 (viewer) is in " + folder.path("t") + "\n");
  EXPECT_EQ(folder.read("t"), "s3cret\n");
  EXPECT_EQ(std::filesystem::status(folder.path("t")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(service.run({"token", "create", "ana", "-o", "quiet"}).out, "s3cret\n");
}

TEST(Login, TheTokenIsForItsServiceOnlyUntilTheLogout) {
  FakeService service, other;
  const TemporaryFolder home;
  home.write("password", "correct horse\n");
  const auto run = [&](const FakeService& at, std::vector<std::string> words) {
    words.insert(words.begin(), {"--service", at.url(), "--data", home.path("")});
    return run_cli(words);
  };
  service.on("POST /v1/login", 201,
             R"({"id":"t","token":"secret","user":"ana","role":"member","workspace":"ml"})");
  const Ran signed_in = run(service, {"login", "--user", "ana", "--password-file", home.path("password")});
  EXPECT_EQ(signed_in.code, 0) << signed_in.err;
  EXPECT_NE(signed_in.err.find("as ana, member of workspace ml"), std::string::npos) << signed_in.err;
  EXPECT_EQ(service.body_of("POST /v1/login"), R"({"user":"ana","password":"correct horse"})");
  service.on("GET /v1/jobs", 200, R"({"items":[],"next":null})");
  other.on("GET /v1/jobs", 200, R"({"items":[],"next":null})");
  EXPECT_EQ(run(service, {"job", "list"}).code, 0);
  EXPECT_NE(run(other, {"job", "list"}).err.find("no token was sent"), std::string::npos)
      << "another service is told the token";
  service.on("DELETE /v1/login", 204, "");
  EXPECT_EQ(run(service, {"logout"}).code, 0);
  EXPECT_NE(run(service, {"job", "list"}).err.find("slipway login --user"), std::string::npos);
}

TEST(Down, WaitsForTheProcessToEnd) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::pause();
    ::_exit(0);
  }
  FakeService service;
  service.on("POST /v1/service/stop", [process](const ExchangePtr& exchange) {
    exchange->send({202, {}, fmt::format(R"({{"stopping":true,"pid":{}}})", process)});
    ::kill(process, SIGKILL);
  });
  const Ran ran = service.run({"down", "--keep-running", "--timeout", "20s"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(service.body_of("POST /v1/service/stop"), R"({"keep_running":true})");
  EXPECT_EQ(::waitpid(process, nullptr, WNOHANG), process);  // it had ended before down returned
}

}  // namespace
}  // namespace slipway::cli
