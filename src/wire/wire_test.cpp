#include <fmt/format.h>
#include <gtest/gtest.h>
#include <time.h>

#include "wire/document.h"
#include "wire/job_file.h"
#include "wire/protocol.h"
#include "wire/records.h"
#include "wire/snapshot.h"
#include "wire/utf8.h"
#include "wire/yaml_text.h"

namespace slipway::wire {
namespace {

constexpr const char* example = R"(name: example
pool: lab
priority: 3
environment: {GREETING: hello, NUMBER: 007}
retries: 1
max_wall_time: 10m
source: ./code
tasks:
  - name: prepare
    command: mkdir -p "$SLIPWAY_SHARED/x"
  - name: gang
    nodes: 2
    processes_per_node: 2
    resources: {cores: 0.5, memory: 256MiB, gpus: 1}
    command: [./train, --rank, "{rank}"]
    depends_on: [prepare]
    retries: 0
  - name: sweep
    count: 20
    command: "echo task {index}"
)";

TEST(JobFile, ReadsWhatPeopleWrite) {
  const auto file = parse_job_file(example, "job.yaml");
  ASSERT_TRUE(file) << file.error().what;
  EXPECT_EQ(file->source_folder, "./code");
  const JobSpec& spec = file->spec;
  EXPECT_EQ(spec.environment.at("NUMBER"), "007");
  ASSERT_EQ(spec.tasks.size(), 3u);
  EXPECT_EQ(spec.tasks[0].retries, 1u);
  EXPECT_EQ(spec.tasks[1].retries, 0u);
  EXPECT_EQ(spec.tasks[1].resources, (Resources{500, 256u << 20, 1}));
  EXPECT_EQ(spec.tasks[1].max_wall_time, 10min);
  EXPECT_EQ(spec.tasks[2].count, 20u);
  EXPECT_EQ(std::get<std::vector<std::string>>(spec.tasks[1].command).back(), "{rank}");
}

TEST(JobFile, SurvivesTheRoundTripThroughJson) {
  auto file = parse_job_file(example, "job.yaml");
  file->spec.source = std::string(64, 'a');
  EXPECT_EQ(parse_job_spec(format_job_spec(file->spec)).value(), file->spec);
  for (const TaskSpec& task : file->spec.tasks)
    EXPECT_EQ(parse_task_spec(format_task_spec(task)).value(), task);
}

TEST(JobFile, SettingsChangeValuesByPath) {
  const auto file = parse_job_file(example, "job.yaml",
                                   {"priority=9", "tasks.gang.nodes=4", "environment.RATE=0.1",
                                    "tasks.2.count=3", "tasks.gang.command=[a, b]"});
  ASSERT_TRUE(file) << file.error().what;
  EXPECT_EQ(file->spec.priority, 9);
  EXPECT_EQ(file->spec.tasks[1].nodes, 4u);
  EXPECT_EQ(file->spec.environment.at("RATE"), "0.1");
  EXPECT_EQ(file->spec.tasks[2].count, 3u);
  EXPECT_EQ(parse_job_file(example, "job.yaml", {"environment.RATE=\"\""})->spec.environment.at("RATE"), "");
  for (const char* wrong :
       {"priority", "=3", "tasks.nothing.nodes=1", "name.x=1", "tasks.sweep.count=", "environment.RATE= "})
    EXPECT_FALSE(parse_job_file(example, "job.yaml", {wrong})) << wrong;
}

TEST(JobFile, SaysWhatIsWrongAndWhere) {
  struct Row {
    const char* text;
    const char* what;
    const char* hint;
  };
  const Row rows[] = {
      {"tasks:\n  - name: a\n    comand: x\n",
       "job.yaml line 3, column 5: unknown key 'comand' in tasks[0]\n    comand: x\n    ^", "'command'"},
      {"tasks:\n  - name: a\n    command: x\n    gpus: 1\n",
       "job.yaml line 4, column 5: unknown key 'gpus' in tasks[0]", "write resources: {gpus: ...}"},
      {"name: a\nxyzzy: 1\n", "unknown key 'xyzzy'",
       "the keys here are environment, max_nodes, max_parallel_tasks, max_wall_time, name, pool, priority, "
       "retain, retries, "
       "source, stop_grace, tags, tasks, workdir"},
      {"nmae: x\ntasks: []\n", "line 1, column 1: unknown key 'nmae'\nnmae: x\n^", "'name'"},
      {"tasks:\n  - name: a\n    command: x\n    nodes: many\n",
       "line 4, column 12: tasks[0].nodes should be a whole number from 1 to 100000, not 'many'\n    nodes: "
       "many\n           ^",
       ""},
      {"tasks:\n  - name: a\n    command: x\n    retries: -1\n",
       "tasks[0].retries should be a whole number from 0", ""},
      {"tasks:\n  - name: a\n    command: ''\n", "task a has an empty command", "command:"},
      {"tasks:\n  - name: a\n    command: []\n", "task a has an empty command", "command:"},
      {"tasks:\n  - name: a\n", "task a has an empty command", "command:"},
      {"tasks:\n  - name: a\n    command: x\n    depends_on: [b]\n",
       "job.yaml line 4, column 18: task a depends on b, which does not exist\n    depends_on: [b]\n         "
       "        ^",
       "tasks of this job are a"},
      {"tasks:\n  - {name: fetch, command: x}\n  - {name: b, command: x, depends_on: [fecth]}\n",
       "job.yaml line 3, column 40: task b depends on fecth, which does not exist", "did you mean 'fetch'?"},
      {"tasks:\n  - {name: a, command: x, depends_on: b}\n  - {name: b, command: x, depends_on: c}\n  - "
       "{name: c, command: x, depends_on: a}\n",
       "circle: a -> b -> c -> a", ""},
      {"tasks:\n  - {name: a, command: x}\n  - {name: a, command: x}\n", "two tasks are called a", ""},
      {"name: a/b\ntasks: [{name: a, command: x}]\n", "it contains '/'", "letters"},
      {"tasks: [{name: a, command: x, resources: {cores: 0}}]\n", "resources.cores should be a number", ""},
      {"tasks: [{name: a, command: x, resources: {memory: lots}}]\n", "memory should be a size", "512MiB"},
      {"tasks: [{name: a, command: x, max_wall_time: soon}]\n", "max_wall_time should be a duration", "10m"},
      {"tasks: 3\n", "tasks should be a list", ""},
      {"tasks: []\n", "the job has no tasks", ""},
      {"priority: 2000\ntasks: [{name: a, command: x}]\n",
       "priority should be a whole number from -1000 to 1000", ""},
      {"- just\n- a list\n", "should be a map", ""},
      {"a: [1, 2\n", "job.yaml line 2, column 1: a list that begins with [ is not closed", "]"},
      {"a: b: c\n", "job.yaml line 1, column 5: a second ': ' in one line\na: b: c\n    ^", "quotes"},
      {"name: \"\xff\xfe\"\n", "not valid UTF-8", ""},
      {"a: 1\na: 2\n", "job.yaml line 2, column 1: the key 'a' stands twice\na: 2\n^", "keep one"},
      {"tasks:\n  - name: a\n    prepare: {comand: x}\n",
       "job.yaml line 3, column 15: unknown key 'comand' in tasks[0].prepare\n    prepare: {comand: x}\n",
       "command"},
      {"tasks:\n  - name: a\n\tcommand: x\n", "job.yaml line 3, column 1: a tab where a line is indented",
       "spaces"},
      {"tasks: [{name: a, command: x, workdir: here}]\n", "not an absolute path", ""},
      {"name: job_7\ntasks: [{name: a, command: x}]\n", "that is how ids look", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const auto file = parse_job_file(row.text, "job.yaml");
    ASSERT_FALSE(file);
    EXPECT_NE(file.error().what.find(row.what), std::string::npos) << file.error().what;
    EXPECT_NE(file.error().hint.find(row.hint), std::string::npos) << file.error().hint;
  }
}

TEST(JobFile, UnclosedQuoteIsRefusedAtItsLine) {
  struct Row {
    const char* rule;
    const char* text;
    const char* what;  // empty: it is accepted
  };
  const Row rows[] = {
      {"the next task is not taken for text",
       "tasks:\n  - name: a\n    command: \"echo a\n  - name: b\n    command: \"echo b\"\n",
       "job.yaml line 3, column 14: the text that begins here with \" is not closed before line 4"},
      {"a key of the same task", "tasks:\n  - name: a\n    command: 'echo a\n    nodes: 2\n",
       "line 3, column 14"},
      {"to the end of the file", "tasks:\n  - name: a\n    command: \"echo a\n",
       "line 3, column 14: the text that"},
      {"in a list", "tasks:\n  - name: a\n    command: [sh, -c, \"echo]\n    nodes: 1\n",
       "line 3, column 23"},
      {"a text of several lines", "tasks:\n  - name: a\n    command: \"echo\n      and more\"\n", ""},
      {"quotes inside plain text", "tasks:\n  - name: a\n    command: echo \"a, 'b\n    nodes: 1\n", ""},
      {"a block", "tasks:\n  - name: a\n    command: |\n      echo \"\n      \"x\n    nodes: 1\n", ""},
      {"a comment", "tasks:\n  - name: a  # don't\n    command: x  # \"\n", ""},
      {"escapes", "tasks:\n  - name: a\n    command: \"a \\\" b\"\n    environment: {X: 'it''s'}\n", ""},
      {"JSON", "{\"tasks\":[{\"name\":\"a\",\"command\":\"echo a, \\\"b\"}]}\n", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const auto file = parse_job_file(row.text, "job.yaml");
    if (*row.what == '\0') {
      EXPECT_TRUE(file) << file.error().what;
      continue;
    }
    ASSERT_FALSE(file);
    EXPECT_NE(file.error().what.find(row.what), std::string::npos) << file.error().what;
  }
}

TEST(JobFile, UnknownPlaceholdersAreRefused) {
  const auto parse = [](const std::string& command) {
    return parse_job_file("tasks:\n  - name: a\n    command: " + command + "\n", "job.yaml");
  };
  const auto wrong = parse("[train, '--rank={rnk}']");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().what.starts_with(
      "job.yaml line 3, column 22: there is no placeholder {rnk}\n    command: [train, '--rank={rnk}']\n"
      "                     ^\nthe placeholders are rank,"))
      << wrong.error().what;
  EXPECT_EQ(wrong.error().hint, "did you mean {rank}? {{rnk}} is a literal {rnk}");
  EXPECT_FALSE(parse("awk '{print}' x"));
  for (const char* fine :
       {"train {rank} {world_size} {ps_hosts}", "echo {{rnk}}", "echo ${home}", "find . -exec ls {} +",
        "|\n      docker ps --format '{{.ID}}'", "|\n      echo {a,b} '{\"x\": 1}' {Big}"})
    EXPECT_TRUE(parse(fine)) << fine;
}

TEST(JobFile, IsUtf8AndNothingElse) {
  using namespace std::string_literals;
  // Valid UTF-8 by its bytes, but yaml-cpp would take them for UTF-32 or UTF-16.
  for (const std::string& wrong : {"a\0\0\0:\0\0\0"s, "\0a\0:"s, "name: a\0b\n"s}) {
    const auto file = parse_job_file(wrong, "job.yaml");
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().what, "job.yaml is not valid UTF-8");
  }
  EXPECT_FALSE(parse_job_file(example, "job.yaml", {"pool=\x0e\0\0\0\0\0\x32\0\0"s}));
}

TEST(JobFile, SmallTextsCannotBecomeLargeTrees) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'l'; ++c)
    bomb += std::string(1, c) + ": &" + c + " [*" + std::string(1, static_cast<char>(c - 1)) +
            (", *" + std::string(1, static_cast<char>(c - 1))) + ", *" +
            std::string(1, static_cast<char>(c - 1)) + ", *" + std::string(1, static_cast<char>(c - 1)) +
            ", *" + std::string(1, static_cast<char>(c - 1)) + ", *" +
            std::string(1, static_cast<char>(c - 1)) + "]\n";
  EXPECT_FALSE(parse_job_file(bomb, "job.yaml"));
  EXPECT_FALSE(parse_job_file(std::string(100'000, '['), "job.yaml"));
  EXPECT_FALSE(parse_job_spec(std::string(100'000, '[')));
  EXPECT_FALSE(parse_job_spec("{\"tasks\":" + std::string(200, '[') + std::string(200, ']') + "}"));
}

TEST(Protocol, EveryMessageSurvivesTheRoundTrip) {
  const AttemptKey key{{JobId{7}, 1, 2}, 3};
  const TimePoint time{Duration(1'700'000'000'123'456)};
  const ProcessEnded ended{key,
                           4,
                           ProcessEndKind::start_failed,
                           2,
                           false,
                           "no such file",
                           {5, Duration(6)},
                           time,
                           time,
                           "Traceback\n",
                           time,
                           "no such container"};
  Hello hello;
  hello.name = "lab-1";
  hello.total = {1000, 5, 1};
  hello.notes = {"one"};
  hello.engines = {"podman"};
  hello.waiting = {key};
  hello.running = {{key, 1, 99, time}};
  hello.ended = {ended};
  hello.prepared = {{key, {31001, 31002}, "ab12", "disk full"}};
  hello.seen = {"service", 12, "proof", "run"};
  Report report{9, {{key, 0, 12, time}}, {ended}, hello.prepared, {{key, true}}};
  report.removed = {"workspaces/default/jobs/job_1"};
  for (const FromAgent& message : {FromAgent(hello), FromAgent(report)})
    EXPECT_EQ(parse_from_agent(format(message)).value(), message);
  StartOrder start;
  start.key = key;
  start.folder = "workspaces/default/jobs/job_7/t.3";
  start.prefetched = true;
  start.checkpoints = "workspaces/default/jobs/job_7/_checkpoints/t";
  start.stall_timeout = Duration(7);
  start.files = {{"hostfile", "lab-1 slots=2\n"}};
  start.processes = {{1,
                      {"a", "b=c"},
                      {{"X", "y=z"}, {"E", ""}},
                      "stdout.txt",
                      "stderr.txt",
                      "wd",
                      {2, 3},
                      {500, 6, 7},
                      {31001}}};
  const PrepareOrder prepare{key, "folder", "abc", {"folder/wd-0"}, {{"hostfile", "x\n"}}, 3};
  Orders orders{
      4, {start}, {{key, Duration(5)}}, {key}, true, {prepare}, {{key, "folder", {{"hostfile", "y\n"}}}}};
  orders.remove = {"workspaces/default/jobs/job_1", "a \"quote\""};
  orders.turn = 12;
  orders.turn_run = "run";
  orders.turn_proof = "proof";
  for (const ToAgent& message : {ToAgent(Welcome{NodeId{3}, Duration(1), Duration(2)}),
                                 ToAgent(Refused{"why", true}), ToAgent(orders)})
    EXPECT_EQ(parse_to_agent(format(message)).value(), message);
}

TEST(Protocol, GarbageIsAnError) {
  for (const char* text : {"", "{}", "[]", "{\"type\":\"hello\"}", "{\"type\":3}",
                           "{\"type\":\"orders\",\"number\":-1}", "\xff"}) {
    EXPECT_FALSE(parse_from_agent(text)) << text;
    EXPECT_FALSE(parse_to_agent(text)) << text;
  }
}

TEST(Snapshot, RoundTripAndEvilManifests) {
  Snapshot snapshot;
  snapshot.entries = {{"a", SnapshotKind::folder},
                      {"a/run.sh", SnapshotKind::file, true, std::string(64, 'b'), 12, ""},
                      {"link", SnapshotKind::link, false, "", 0, "a/run.sh"}};
  EXPECT_EQ(parse_snapshot(format(snapshot)).value(), snapshot);
  const auto refused = [](SnapshotEntry entry) {
    return !parse_snapshot(format(Snapshot{{std::move(entry)}}));
  };
  for (const char* path : {"../x", "/etc/passwd", "a/../../x", "", "a//b", "./a"})
    EXPECT_TRUE(refused({path, SnapshotKind::folder})) << path;
  for (const char* target : {"/etc/passwd", "../x", "a/../../x", ""})
    EXPECT_TRUE(refused({"link", SnapshotKind::link, false, "", 0, target})) << target;
  EXPECT_TRUE(refused({"link", SnapshotKind::link, false, "", 0, std::string("..\0x", 4)}));
  EXPECT_TRUE(refused({"f", SnapshotKind::file, false, "../../etc", 1, ""}));
  const Snapshot through{{{"l", SnapshotKind::link, false, "", 0, "."}, {"l/x", SnapshotKind::folder}}};
  EXPECT_FALSE(parse_snapshot(format(through)));
}

TEST(Utf8, WhatIsNotIsReplaced) {
  EXPECT_TRUE(is_utf8("grün €"));
  for (const char* wrong : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xe2\x82", "\xf5\x80\x80\x80"})
    EXPECT_FALSE(is_utf8(wrong));
  EXPECT_EQ(to_utf8("a\xff"
                    "b"),
            "a\xEF\xBF\xBD"
            "b");
}

// As in YAML: which of two values was meant is not known.
TEST(Requests, AKeyStandsOnce) {
  const auto pool = parse_pool_request(R"({"name":"a","nodes":1,"name":"b"})");
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().what, "the request: the key 'name' stands twice");
  EXPECT_EQ(pool.error().hint, "keep one of them");
  EXPECT_FALSE(parse_token_request(R"({"name":"a","name":"a"})"));
  const auto job =
      parse_job_spec(R"({"tasks":[{"name":"a","command":"x","environment":{"A":"1","B":"1","A":"2"}}]})");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().what, "the request: the key 'A' stands twice");
  const auto same_elsewhere = parse_job_spec(
      R"({"environment":{"name":"1"},"name":"j","tasks":[{"name":"a","command":"x"},{"name":"b","command":"x"}]})");
  EXPECT_TRUE(same_elsewhere) << same_elsewhere.error().what;
  std::string many = "{";  // 16 MiB, as many as a request may have
  for (int i = 0; many.size() < (16u << 20); ++i) many += fmt::format("\"{}\":1,", i);
  many += "\"x\":1}";
  const auto refused = parse_pool_request(many);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "the request has a map with more than 10000 keys");
}

TEST(Requests, PoolsAndTokensAreChecked) {
  EXPECT_EQ(parse_pool_request(R"({"name":"lab","nodes":2,"cores_per_node":1.5,"memory_per_node":1024})")
                ->cores_per_node,
            1500u);
  for (const char* wrong :
       {"{\"nodes\":-1}", "{\"node\":1}", "[]", "{\"lost_after\":0}", "{\"overcommit\":\"yes\"}"})
    EXPECT_FALSE(parse_pool_request(wrong)) << wrong;
  EXPECT_FALSE(parse_token_request("{\"name\":\"x\",\"role\":\"king\"}"));
  EXPECT_FALSE(parse_hashes("{\"hashes\":[\"../../etc/passwd\"]}"));
}

TEST(Yaml, WhatIsWrittenReadsBackTheSame) {
  Value value;
  value["plain"] = "a word";
  value["path"] = "/data/x:y";
  value["empty"] = "";
  value["list"] = Value::list({Value("a"), Value(3), Value(true), Value(nullptr), Value::list(), Value::map(),
                               Value{{"x", 1}, {"y", Value::list({Value{{"z", "w"}}})}}});
  value["none"] = Value::list();
  value["script"] = "#!/bin/sh\n\necho \"hi\" # and so on\n";
  value["two lines"] = "a: b\n  c";
  for (const char* text :
       {"yes",  "no",   "null", "~",     "1",     "0x1",   "1e3",      "2026-03-02T10:00:00Z",
        "- a",  "a: b", "a #b", "a:",    " a",    "a ",    "{rank}",   "[x]",
        "*a",   "&a",   "!a",   "%a",    "@a",    "`a",    "'a'",      "\"a\"",
        "a\tb", "\x01", "\n",   "a\n\n", " a\nb", "a \nb", "\xc3\xa4", "n",
        "?",    "|",    ">"})
    value[fmt::format("k{}", value.fields.size())] = text;
  value["a: key"] = 1;
  const std::string text = format_yaml(value);
  const auto back = parse_yaml(text, "test");
  ASSERT_TRUE(back) << back.error().what << "\n" << text;
  EXPECT_EQ(*back, value) << text;
  EXPECT_EQ(format_yaml(Value{{"a", Value::list({Value{{"b", 1}, {"c", "x\ny"}}})}}, 2),
            "  a:\n    - b: 1\n      c: |-\n        x\n        y\n");
  EXPECT_EQ(format_yaml(Value("x")), "x\n");
  EXPECT_EQ(format_yaml(Value::list()), "[]\n");
}

// Each key was compared with all before it: 6 s for what fits into a message.
TEST(Protocol, H6_AMessageWithVeryManyKeysIsReadInLinearTime) {
  const auto message = [](int keys) {
    std::string text = R"({"type":"report","number":1,"started":[],"ended":[])";
    for (int i = 0; i < keys; ++i) text += fmt::format(",\"k{}\":0", i);
    return text + "}";
  };
  const auto time_of = [](const std::string& text) {
    const auto now = [] {  // of this thread: others may be busy
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    const double began = now();
    EXPECT_TRUE(parse_from_agent(text));
    return now() - began;
  };
  const std::string small = message(20'000), large = message(320'000);
  time_of(small);
  // 16 times as much: 16 times as long, not 256. Half of that is far from either.
  EXPECT_LT(time_of(large), 128 * time_of(small));
  EXPECT_FALSE(parse_from_agent(R"({"type":"report","number":1,"number":2,"started":[],"ended":[]})"));
  std::string deep = R"({"type":"report","number":1,"started":)";
  deep += std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_FALSE(parse_from_agent(deep));
}

}  // namespace
}  // namespace slipway::wire
