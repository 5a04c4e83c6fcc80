// Jobs that are waited for, their files while they grow, and their nodes.
#include <sys/stat.h>

#include <atomic>

#include "cli/az/testing.h"

namespace slipway::cli {
namespace {

TEST_F(BatchAi, JobWaitExitsWithTheCodeOfTheJob) {
  struct Row {
    const char* state;
    const char* info;
    int code;
  };
  for (const Row& row :
       {Row{"succeeded", R"(,"executionInfo":{"exitCode":0,"startTime":"s","endTime":"e"})", 0},
        Row{"failed", R"(,"executionInfo":{"exitCode":7})", 7},
        Row{"failed", R"(,"executionInfo":{"startTime":"s"})", 1}}) {
    std::atomic<int> asked = 0;
    service.on("GET " + jobs + "/fit", [&](const ExchangePtr& exchange) {
      exchange->send(json_response(200, asked++ == 0 ? job_json("queued") : job_json(row.state, row.info)));
    });
    const Ran ran = run({"batchai", "job", "wait", "-w", "lab", "-e", "first", "-n", "fit"});
    EXPECT_EQ(ran.code, row.code);
    EXPECT_TRUE(ran.err.starts_with("Job submitted at 2018-06-07T21:16:21Z\nJob state: queued\n")) << ran.err;
    EXPECT_NE(ran.err.find(std::string("Job state: ") + row.state), std::string::npos) << ran.err;
  }
}

TEST_F(BatchAi, FileStreamPrintsEveryByte) {
  // The file comes with the second list, grows, and gets its last lines just before the job is seen to be
  // over.
  std::atomic<int> lists = 0, states = 0, reads = 0;
  service.on("GET " + jobs + "/fit", [&](const ExchangePtr& exchange) {
    exchange->send(json_response(200, job_json(++states < 4 ? "running" : "succeeded")));
  });
  service.on("POST " + jobs + "/fit/listOutputFiles", [&](const ExchangePtr& exchange) {
    EXPECT_EQ(exchange->request().parameter("outputdirectoryid"), "stdouterr");
    const std::string file = fmt::format(
        R"({{"name":"stdout.txt","fileType":"file","downloadUrl":"{}/link/1?sig=x"}})", service.url());
    exchange->send(json_response(200, ++lists < 2 ? R"({"value":[]})" : R"({"value":[)" + file + "]}"));
  });
  service.on("GET /link/1", [&](const ExchangePtr& exchange) {
    ++reads;
    const std::string content = states >= 4 ? "one\ntwo\nlast\n" : reads > 3 ? "one\ntwo\n" : "one\n";
    const std::string range = exchange->request().header("Range").value_or("");
    const std::size_t from = std::stoul(range.substr(6));
    if (from >= content.size()) return exchange->send({416, {}, ""});
    exchange->send({206, {}, content.substr(from)});
  });
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"batchai", "job", "file", "stream", "--j", "fit", "--output-directory-id",
                                 "stdouterr", "--f", "stdout.txt"},
        std::vector<std::string>{"batchai", "job", "stream-file", "--job-name", "fit",
                                 "--output-directory-id", "stdouterr", "--name", "stdout.txt"}}) {
    lists = states = reads = 0;
    std::vector<std::string> line = words;
    line.insert(line.end(), {"-w", "lab", "-e", "first"});
    const Ran ran = run(line);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "one\ntwo\nlast\n");
    EXPECT_NE(ran.err.find("stdout.txt is not there yet: waiting for it\n"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("/link/1?sig=x\n"), std::string::npos) << ran.err;
  }
  states = 10;
  lists = -5;
  const Ran without =
      run({"batchai", "job", "file", "stream", "-j", "fit", "-f", "none", "-w", "lab", "-e", "first"});
  EXPECT_EQ(without.code, 0);
  EXPECT_EQ(without.out, "");
}

TEST_F(BatchAi, FileStreamOfAGangFollowsTheFilesOfAllProcesses) {
  // Both files come with the second list; one gets its last line just before the job is seen to be over.
  std::atomic<int> lists = 0, states = 0;
  service.on("GET " + jobs + "/fit", [&](const ExchangePtr& exchange) {
    exchange->send(json_response(200, job_json(++states < 6 ? "running" : "succeeded")));
  });
  service.on("POST " + jobs + "/fit/listOutputFiles", [&](const ExchangePtr& exchange) {
    std::string files;
    for (const char* process : {"wk-0", "ps-0"})
      files +=
          fmt::format(R"({}{{"name":"stderr-{}.txt","fileType":"file","downloadUrl":"{}/link/{}?sig=x"}})",
                      files.empty() ? "" : ",", process, service.url(), process);
    exchange->send(json_response(200, R"({"value":[)" + (++lists < 2 ? std::string() : files) + "]}"));
  });
  for (const char* process : {"wk-0", "ps-0"})
    service.on(std::string("GET /link/") + process, [&, process](const ExchangePtr& exchange) {
      const std::string content = std::string(process) + " one\n" + (states >= 6 ? "last" : "");
      const std::size_t from = std::stoul(exchange->request().header("Range").value_or("").substr(6));
      if (from >= content.size()) return exchange->send({416, {}, ""});
      exchange->send({206, {}, content.substr(from)});
    });
  const Ran ran = run({"batchai", "job", "stream-file", "-w", "lab", "-e", "first", "--job-name", "fit",
                       "--name", "stderr.txt"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "[ps-0] ps-0 one\n[wk-0] wk-0 one\n[ps-0] last\n[wk-0] last\n");
  EXPECT_NE(ran.err.find("There is no stderr.txt, but one of each process: stderr-ps-0.txt, stderr-wk-0.txt. "
                         "All are followed.\n"),
            std::string::npos)
      << ran.err;
}

TEST_F(BatchAi, FileAndNodeListsAcceptOldAndNewFlags) {
  service.on(
      "POST " + jobs + "/fit/listOutputFiles", 200,
      R"({"value":[{"name":"a.txt","fileType":"file","downloadUrl":"u","properties":{"contentLength":5,)"
      R"("lastModified":"2018-06-07T21:16:21Z"}}]})");
  const std::string table =
      "Name    Type      Size  Modified\n"
      "------  ------  ------  --------------------\n"
      "a.txt   file         5  2018-06-07T21:16:21Z\n";
  const std::vector<std::string> where{"-w", "lab", "-e", "first", "-o", "table"};
  for (std::vector<std::string> words :
       {std::vector<std::string>{"batchai", "job", "file", "list", "-j", "fit"},
        std::vector<std::string>{"batchai", "job", "list-files", "-n", "fit", "-d", "M"}}) {
    words.insert(words.end(), where.begin(), where.end());
    EXPECT_EQ(run(words).out, table);
  }
  service.on("POST " + clusters + "/nc6/listRemoteLoginInformation", 200,
             R"({"value":[{"nodeId":"n1","ipAddress":"10.0.0.4","port":50000}]})");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"batchai", "cluster", "node", "list", "-c", "nc6", "-w", "lab", "-o", "tsv"},
        std::vector<std::string>{"batchai", "cluster", "list-nodes", "-n", "nc6", "-w", "lab", "-o", "tsv"}})
    EXPECT_EQ(run(words).out, "n1\t10.0.0.4\t50000\n");
}

TEST_F(BatchAi, NodeExecUsesSsh) {
  service.on("POST " + clusters + "/nc6/listRemoteLoginInformation", 200,
             R"({"value":[{"nodeId":"n1","ipAddress":"10.0.0.4","port":50000}]})");
  service.on("GET " + clusters + "/nc6", 200, cluster_json("nc6"));
  home.write("ssh", "#!/bin/sh\nfor word; do echo \"[$word]\"; done > " + home.path("words") + "\nexit 5\n");
  ::chmod(home.path("ssh").c_str(), 0755);
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", (home.path() + ":" + path).c_str(), 1);
  const Ran ran = run({"batchai", "cluster", "node", "exec", "-c", "nc6", "-w", "lab", "--exec", "echo 'hi'",
                       "-L", "8888:localhost:8888", "-k", "key"});
  EXPECT_EQ(run({"batchai", "cluster", "node", "exec", "-c", "nc6", "-w", "lab"}).code, 0) << "nothing to do";
  ::setenv("PATH", "/nonexistent", 1);
  const Ran without = run({"batchai", "cluster", "node", "exec", "-c", "nc6", "-w", "lab", "--exec", "ls"});
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(ran.code, 5) << ran.err;
  const std::string words = home.read("words");
  for (const char* word : {"[-p]\n[50000]", "[-i]\n[key]", "[-L]\n[8888:localhost:8888]", "[ana@10.0.0.4]",
                           "[bash -ilc 'echo '\\''hi'\\''']"})
    EXPECT_NE(words.find(word), std::string::npos) << words;
  EXPECT_EQ(without.code, 1);
  EXPECT_TRUE(without.err.starts_with("error: there is no ssh on this machine")) << without.err;
}

}  // namespace
}  // namespace slipway::cli
