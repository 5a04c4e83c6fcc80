// Command lines that need no service: mistakes, help, completion scripts, and what is handed to the programs.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/testing.h"

namespace slipway::cli {
namespace {

TEST(CommandLine, UsageErrorsAreExplained) {
  struct Row {
    std::vector<std::string> words;
    int code;
    const char* error;  // the beginning of what is said
    const char* hint;
  };
  const Row rows[] = {
      {{"pol", "list"}, 2, "error: slipway has no command 'pol'", "try:   slipway pool"},
      {{"pool"}, 2, "error: slipway pool needs one more word", "try:   slipway pool list"},
      {{"pool", "lst"}, 2, "error: slipway pool has no command 'lst'", "try:   slipway pool list"},
      {{"pool", "create"}, 2, "error: slipway pool create needs POOL", "try:   slipway pool create"},
      {{"pool", "create", "a", "--node", "2"},
       2,
       "error: slipway pool create has no flag --node",
       "try:   --nodes"},
      {{"job", "list", "-x"}, 2, "error: slipway job list has no flag -x", "try:   slipway job list --help"},
      {{"job", "list", "--q"},
       2,
       "error: slipway job list has no flag --q",
       "try:   slipway job list --help"},
      {{"pool", "create", "a", "--nodes", "x"}, 2, "error: --nodes: 'x' is not a whole number", ""},
      {{"pool", "create", "a", "--nodes", "-1"}, 2, "error: --nodes: must be 0 or more", ""},
      {{"pool", "create", "a", "--nodes"}, 2, "error: --nodes needs a value", "try:"},
      {{"pool", "resize", "a", "--nodes", "1", "--nodes", "2"}, 2, "error: --nodes is given twice", "try:"},
      {{"pool", "create", "a", "--memory-per-node", "2X"},
       2,
       "error: --memory-per-node: '2X' is not a size",
       "try:"},
      {{"pool", "create", "a", "--provisioner", "locl"},
       2,
       "error: --provisioner: 'locl' is none of",
       "try:   local"},
      {{"pool", "resize", "a"}, 2, "error: slipway pool resize needs --nodes", "try:"},
      {{"job", "show", "a", "b"}, 2, "error: slipway job show does not take 'b'", "try:"},
      {{"job", "list", "-o", "jsn"},
       2,
       "error: --output: 'jsn' is none of table, wide, json, yaml, name, quiet, jsonpath=TEMPLATE",
       "try:   json"},
      {{"job", "list", "--state", "runing"}, 2, "error: --state: 'runing'", "try:   running"},
      {{"job", "wait", "a", "--timeout", "soon"}, 2, "error: --timeout: 'soon' is not a duration", "try:"},
      {{"job", "submit", "/nonexistent.yaml"}, 1, "error: cannot open /nonexistent.yaml", ""},
      {{"task", "show", "job_1"}, 2, "error: 'job_1' names no task", "try:   slipway task show job_1/train"},
      {{"logs", "job_1/a/b/c"}, 2, "error: 'job_1/a/b/c' names no job, task or process", "try:"},
      {{"run"}, 2, "error: slipway run needs a command to run", "try:"},
      {{"run", "--noodles", "2", "--", "ls"},
       2,
       "error: slipway run has no flag --noodles",
       "try:   --nodes"},
      {{"run", "ls", "-l"}, 2, "error: slipway run: -l may be its own flag", "try:   put -- before"},
      {{"run", "-e", "X", "--", "ls"}, 2, "error: -e X: it should be NAME=VALUE", "try:"},
      {{"run", "--workdir", "/", "--nodes", "0", "--", "ls"}, 2, "error: ", ""},
      {{"status", "--", "x"}, 2, "error: slipway status does not take 'x'", "try:"},
      {{"status", "--service", "ftp://x"}, 2, "error: 'ftp://x' is not an address", "try:"},
      {{"status", "--token-file", "/nonexistent"}, 1, "error: the token file cannot be used", "try:"},
  };
  for (const Row& row : rows) {
    std::string line;
    for (const std::string& word : row.words) line += word + " ";
    SCOPED_TRACE(line);
    const Ran ran = run_cli(row.words);
    EXPECT_EQ(ran.code, row.code);
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with(row.error)) << ran.err;
    EXPECT_NE(("\n" + ran.err).find(row.hint), std::string::npos) << ran.err;
  }
}

TEST(CommandLine, UnreachableServiceExitsThree) {
  const Ran ran = run_cli({"status", "--service", "http://127.0.0.1:1"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(ran.err.starts_with("error: no service answers at http://127.0.0.1:1\nwhy:   ")) << ran.err;
  EXPECT_NE(ran.err.find("\ntry:   slipway up\n"), std::string::npos) << ran.err;
}

TEST(CommandLine, HelpStartsWithAnExample) {
  const std::vector<std::vector<std::string>> commands = {{},
                                                          {"up"},
                                                          {"down"},
                                                          {"status"},
                                                          {"run"},
                                                          {"logs"},
                                                          {"events"},
                                                          {"version"},
                                                          {"pool"},
                                                          {"pool", "create"},
                                                          {"pool", "list"},
                                                          {"pool", "show"},
                                                          {"pool", "resize"},
                                                          {"pool", "delete"},
                                                          {"node"},
                                                          {"node", "list"},
                                                          {"node", "show"},
                                                          {"node", "drain"},
                                                          {"node", "resume"},
                                                          {"node", "run"},
                                                          {"node", "start-remote"},
                                                          {"job"},
                                                          {"job", "submit"},
                                                          {"job", "list"},
                                                          {"job", "show"},
                                                          {"job", "wait"},
                                                          {"job", "cancel"},
                                                          {"job", "delete"},
                                                          {"job", "why"},
                                                          {"job", "resubmit"},
                                                          {"task"},
                                                          {"task", "list"},
                                                          {"task", "show"},
                                                          {"files"},
                                                          {"files", "list"},
                                                          {"files", "get"},
                                                          {"formula"},
                                                          {"formula", "eval"},
                                                          {"token"},
                                                          {"token", "create"},
                                                          {"token", "list"},
                                                          {"token", "revoke"},
                                                          {"token", "rotate"},
                                                          {"user"},
                                                          {"user", "add"},
                                                          {"user", "disable"},
                                                          {"workspace", "list"},
                                                          {"workspace", "member", "add"},
                                                          {"login"},
                                                          {"logout"},
                                                          {"completion"},
                                                          {"completion", "bash"},
                                                          {"completion", "zsh"},
                                                          {"completion", "fish"}};
  for (std::vector<std::string> words : commands) {
    words.push_back("--help");
    const Ran ran = run_cli(words);
    EXPECT_EQ(ran.code, 0);
    EXPECT_TRUE(ran.out.starts_with("Example:\n  ")) << ran.out;
    EXPECT_NE(ran.out.find("--token-file FILE"), std::string::npos) << ran.out;
    for (const char* hidden : {"keeper", "serve-starts", "launch-mpi"})
      EXPECT_EQ(ran.out.find(hidden), std::string::npos) << "a hidden command is shown: " << ran.out;
  }
}

TEST(CommandLine, Version) {
  EXPECT_EQ(run_cli({"version"}).out, "slipway " SLIPWAY_VERSION "\n");
  EXPECT_EQ(run_cli({"version", "-o", "quiet"}).out, SLIPWAY_VERSION "\n");
  EXPECT_EQ(run_cli({"-o", "json", "version"}).out, "{\n  \"version\": \"" SLIPWAY_VERSION "\"\n}\n");
}

TEST(CommandLine, ProgramsGetTheirOptions) {
  UpOptions up;
  NodeRunOptions node;
  std::string kept;
  Programs programs;
  programs.up = [&up](const UpOptions& options) { return up = options, 7; };
  programs.node_run = [&node](const NodeRunOptions& options) { return node = options, 8; };
  NodeContainOptions contained;
  programs.node_contain = [&contained](const NodeContainOptions& options) { return contained = options, 10; };
  programs.node_keep = [&kept](const std::string& folder) { return kept = folder, 9; };

  EXPECT_EQ(
      run_cli({"up", "--data", "/d/./x", "--listen", "0.0.0.0:1", "--detach", "--insecure"}, programs).code,
      7);
  EXPECT_EQ(up.data, "/d/x");
  EXPECT_EQ(up.listen, "0.0.0.0:1");
  EXPECT_TRUE(up.detach && up.insecure);
  EXPECT_EQ(run_cli({"up"}, programs).code, 7);
  EXPECT_EQ(up.listen, "127.0.0.1:8470");
  EXPECT_FALSE(up.detach || up.insecure);

  EXPECT_EQ(run_cli({"node", "run", "--service", "http://h:1", "--token-file", "t", "--pool", "lab", "--name",
                     "n", "--cores", "1.5", "--memory", "2GiB", "--data", "/d"},
                    programs)
                .code,
            8);
  EXPECT_EQ(node.service, "http://h:1");
  EXPECT_EQ(node.token_file, "t");
  EXPECT_EQ(node.pool, "lab");
  EXPECT_EQ(node.folder, "/d/nodes/n");
  EXPECT_EQ(node.cores, 1.5);
  EXPECT_EQ(node.memory, 2u << 30);
  EXPECT_FALSE(node.local);

  EXPECT_EQ(run_cli({"node", "keep", "--folder", "/k"}, programs).code, 9);
  EXPECT_EQ(kept, "/k");
  EXPECT_EQ(run_cli({"node", "keep"}, programs).code, 2);

  EXPECT_EQ(
      run_cli({"node", "contain", "--rootfs", "/r", "--mount", "/d:ro", "--", "a", "--image", "b"}, programs)
          .code,
      10);
  EXPECT_EQ(contained.rootfs, "/r");
  EXPECT_EQ(contained.image, "");
  EXPECT_EQ(contained.mounts, std::vector<std::string>{"/d:ro"});
  EXPECT_EQ(contained.command, (std::vector<std::string>{"a", "--image", "b"}));
  EXPECT_EQ(run_cli({"node", "contain", "--", "a"}, programs).code, 2);
  EXPECT_EQ(run_cli({"node", "contain", "--rootfs", "/r", "--image", "i", "--", "a"}, programs).code, 2);
  EXPECT_EQ(run_cli({"node", "contain", "--rootfs", "/r"}, programs).code, 2);
}

TEST(CommandLine, LaunchersGetTheirCommands) {
  using Words = std::vector<std::string>;
  Words given;
  Programs programs;
  programs.node_start_remote = [&](const Words& words) { return given = words, 10; };
  programs.node_launch_mpi = [&](const Words& words) { return given = words, 11; };
  programs.node_launch_horovod = [&](const Words& words) { return given = words, 12; };
  programs.node_serve_starts = [] { return 13; };
  const Words as_for_ssh{"-x", "-o", "json", "lab-2", "orted", "-mca", "a", "--", "--help"};
  Words line{"node", "start-remote"};
  line.insert(line.end(), as_for_ssh.begin(), as_for_ssh.end());
  EXPECT_EQ(run_cli(line, programs).code, 10);
  EXPECT_EQ(given, as_for_ssh) << "every word, whatever it looks like";
  EXPECT_EQ(run_cli({"node", "launch-mpi", "--", "train", "-x", "--", "y"}, programs).code, 11);
  EXPECT_EQ(given, (Words{"train", "-x", "--", "y"}));
  EXPECT_EQ(run_cli({"node", "launch-horovod", "--", "train"}, programs).code, 12);
  EXPECT_EQ(run_cli({"node", "launch-mpi"}, programs).code, 2);
  EXPECT_EQ(run_cli({"node", "serve-starts"}, programs).code, 13);
}

TEST(Completion, ScriptsAreValid) {
  struct Row {
    const char* shell;
    const char* check;
  };
  for (const Row& row : {Row{"bash", "bash -n "}, Row{"zsh", "zsh -n "}, Row{"fish", "fish -n "}}) {
    const Ran ran = run_cli({"completion", row.shell});
    EXPECT_EQ(ran.code, 0);
    EXPECT_NE(ran.out.find("pool create"), std::string::npos);
    EXPECT_EQ(ran.out.find("node keep"), std::string::npos);
    if (std::system((std::string("command -v ") + row.shell + " > /dev/null").c_str()) != 0) continue;
    const TemporaryFolder folder;
    folder.write("script", ran.out);
    EXPECT_EQ(std::system((row.check + folder.path("script")).c_str()), 0) << row.shell;
  }
}

TEST(Completion, BashCompletesWordsAndFlags) {
  const TemporaryFolder folder;
  folder.write("script", run_cli({"completion", "bash"}).out);
  struct Row {
    const char* line;
    const char* last;
    const char* expected;
  };
  for (const Row& row :
       {Row{"slipway po", "po", "pool"}, Row{"slipway pool re", "re", "resize"},
        Row{"slipway -o json job su", "su", "submit"},
        Row{"slipway pool create lab --over", "--over", "--overcommit"},
        Row{"slipway job list --state ru", "ru", "running"}, Row{"slipway job list -o j", "j", "json"},
        Row{"slipway batchai job list -o t", "t", "table tsv"}, Row{"slipway run --pool l", "l", "lab"},
        Row{"slipway job list --name f", "f", "fit"}, Row{"slipway job submit --priority l", "l", ""}}) {
    SCOPED_TRACE(row.line);
    const std::string script =
        "slipway() { if [ $1 = pool ]; then echo lab; else printf \"JOB NAME\\njob_1 fit\\n\"; fi; }; "
        "source " +
        folder.path("script") + "; COMP_WORDS=(" + row.line +
        "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _slipway; echo \"${COMPREPLY[*]}\" > " +
        folder.path("answer");
    ASSERT_EQ(std::system(("bash -c '" + script + "'").c_str()), 0);
    EXPECT_EQ(folder.read("answer"), std::string(row.expected) + "\n");
  }
}

}  // namespace
}  // namespace slipway::cli
