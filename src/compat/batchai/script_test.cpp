// What the generated bash does, in a real bash.
#include "compat/batchai/script.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include "base/shell.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "compat/batchai/layout.h"

namespace slipway::batchai {
namespace {

struct Ran {
  std::string out;
  int code = 0;
};

// With these variables only, and a home of its own.
Ran run(const std::string& script, Environment environment, const std::string& bashrc = "") {
  char home[] = "/tmp/slipway-batchai-XXXXXX";
  EXPECT_NE(mkdtemp(home), nullptr);
  if (!bashrc.empty()) std::ofstream(std::string(home) + "/.bashrc") << bashrc;
  environment["HOME"] = home;
  environment.emplace("TEMP_FOLDER", home);
  environment["PATH"] = "/usr/bin:/bin";
  environment[std::string(run_variable)] = script;
  std::string line = "env -i";
  for (const auto& [name, value] : environment) line += " " + quote_for_shell(name + "=" + value);
  const auto words = std::get<std::vector<std::string>>(command_for(run_variable));
  for (const std::string& word : words) line += " " + quote_for_shell(word);
  Ran ran;
  FILE* pipe = ::popen((line + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) ran.out.append(buffer, got);
  ran.code = WEXITSTATUS(::pclose(pipe));
  EXPECT_EQ(std::system(("rm -r " + std::string(home)).c_str()), 0);
  return ran;
}

TEST(BatchAiScript, RunsTheUsersCommandInBash) {
  struct Row {
    const char* rule;
    std::string line;
    std::string out;
    int code;
  };
  const Row rows[] = {
      {"nothing is added", "echo hi", "hi\n", 0},
      {"pipes, lists and quotes", "echo 'a  b' | cat; echo \"$A\" && echo ${A}x", "a  b\n1\n1x\n", 0},
      {"words of the core stay the user's", "echo {index} {rank} ${A}", "{index} {rank} 1\n", 0},
      {"the code is the last one's", "true; exit 7", "", 7},
      {"a script in python", "python_does_not_exist x",
       "/bin/bash: line 5: python_does_not_exist: command not found\n", 127},
      {"it does not see itself", "echo ${SLIPWAY_BATCHAI_RUN-none} ${PS1-none}", "none none\n", 0},
      {"in its folder", "[ \"$PWD\" = \"$TEMP_FOLDER\" ] && echo there", "there\n", 0},
      {"several lines", "cat <<END\n$A\nEND", "1\n", 0},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const Ran ran = run(prologue({}, "$TEMP_FOLDER") + row.line + "\n", {{"A", "1"}});
    EXPECT_EQ(ran.out, row.out);
    EXPECT_EQ(ran.code, row.code);
  }
}

TEST(BatchAiScript, SourcesBashrcAsIfInteractive) {
  const Ran ran =
      run(prologue({}, "") + "echo $FROM $PYTHONPATH\n", {},
          "[ -z \"$PS1\" ] && return\nexport FROM=bashrc\necho 'export PYTHONPATH=/x' > ~/more\n. ~/more\n");
  EXPECT_EQ(ran.out, "bashrc /x\n");
}

TEST(BatchAiScript, VariablesKnownOnlyOnTheNode) {
  const Value owner = parse_stored(R"({"environmentVariables":[
    {"name":"ONE","value":"$A/it's $(echo no) `no`"},
    {"name":"PATH","value":"/opt/${NODE}:$PATH"},
    {"name":"TWO","value":"$ONE"},
    {"name":"THREE","value":"$PATH!$NOT_THERE!"},
    {"name":"A","value":"mine"}]})");
  Environment known{{"A", "root"}}, environment;
  const Late late = settle_variables(owner, known, environment);
  EXPECT_EQ(environment.at("ONE"), "root/it's $(echo no) `no`");
  EXPECT_EQ(environment.at("TWO"), environment.at("ONE"));
  EXPECT_EQ(environment.at("A"), "mine");
  environment["NODE"] = "n1";
  const Ran ran = run(prologue(late, "") + "echo \"$THREE\"\n", environment);
  EXPECT_EQ(ran.out, "/opt/n1:/usr/bin:/bin!!\n");
}

TEST(BatchAiScript, FindsPythonUnderAnyName) {
  const Value bare = parse_stored(R"({"pythonScriptFilePath":"$A/x.py"})");
  EXPECT_EQ(python_line(bare, "--a $A"),
            "$(command -v python || command -v python3 || echo python) $A/x.py --a $A");
  const Value named = parse_stored(R"({"pythonScriptFilePath":"x.py","pythonInterpreterPath":"/opt/py"})");
  EXPECT_EQ(python_line(named, ""), "/opt/py x.py");
}

}  // namespace
}  // namespace slipway::batchai
