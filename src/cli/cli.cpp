#include "cli/cli.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "cli/az/commands.h"
#include "cli/commands/commands.h"
#include "cli/commands/topics.h"

namespace slipway::cli {
namespace {

constexpr Noun nouns[] = {{"up", add_up},
                          {"status", add_status},
                          {"down", add_down},
                          {"run", add_run},
                          {"submit", add_submit},
                          {"job", add_job},
                          {"task", add_task},
                          {"logs", add_logs},
                          {"files", add_files},
                          {"outputs", add_outputs},
                          {"queue", add_queue},
                          {"top", add_top},
                          {"events", add_events},
                          {"pool", add_pool},
                          {"node", add_node},
                          {"formula", add_formula},
                          {"sim", add_sim},
                          {"datastore", add_datastore},
                          {"experiment", add_experiment},
                          {"runs", add_runs},
                          {"audit", add_audit},
                          {"user", add_user},
                          {"workspace", add_workspace},
                          {"token", add_token},
                          {"quota", add_quota},
                          {"secret", add_secret},
                          {"logout", add_logout},
                          {"ui", add_ui},
                          {"store", add_store},
                          {"restore", add_restore},
                          {"version", add_version},
                          {"help", add_help},
                          {"completion", add_completion},
                          {"batchai", add_batchai},
                          {"storage", add_storage},
                          {"group", add_group},
                          {"configure", add_configure},
                          {"provider", add_provider},
                          {"login", add_login}};

// A command line that begins with a noun needs only that part of the tree; agents and keepers, which are
// started often, start faster so. Help, mistakes and completion need all of it.
void add_nouns(CommandTree& tree, Context& context, const char* first) {
  for (const Noun& noun : nouns) {
    if (first == nullptr || std::strcmp(first, "completion") == 0 || std::strcmp(first, noun.name) != 0)
      continue;
    noun.add(tree, context);
    return;
  }
  for (const Noun& noun : nouns) noun.add(tree, context);
}

// `help job submit` is `job submit --help`; --version and -V are `version`.
std::vector<std::string> without_shorthands(std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words[0] == "--version" || words[0] == "-V") words[0] = "version";
  const bool is_help = words[0] == "help" &&
                       std::none_of(words.begin(), words.end(),
                                    [](const std::string& word) { return word == "--help" || word == "-h"; });
  if (!is_help || (words.size() == 2 && topic_text(words[1]))) return words;
  if (words.size() == 2 && std::none_of(std::begin(nouns), std::end(nouns),
                                        [&](const Noun& noun) { return words[1] == noun.name; }))
    return words;  // no command: the topics are named
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

Outcome<int> run_words(const std::vector<std::string>& given, const Programs& programs) {
  const std::vector<std::string> words = without_shorthands(given);
  Settings settings;
  Context context(settings, programs);
  CommandTree tree(settings);
  add_nouns(tree, context, words.empty() ? nullptr : words.front().c_str());
  const Outcome<Action> action = tree.parse(words);
  if (!action) return give_up(action);
  Outcome<int> code = (*action)();
  const Outcome<void> written = finish_output();
  if (code && !written) return give_up(written);
  return code;
}

// What stands around the processes of tasks (`node view -- COMMAND`) is started as often as they are: it does
// without a tree.
std::optional<int> run_around(const std::vector<std::string>& words, const Programs& programs) {
  if (words.size() < 4 || words[0] != "node" || words[2] != "--") return std::nullopt;
  const std::vector<std::string> command(words.begin() + 3, words.end());
  if (words[1] == "view") return programs.node_view(command);
  if (words[1] == "launch-ssh") return programs.node_launch_ssh(command);
  return std::nullopt;
}

}  // namespace

int run(int argc, char** argv, const Programs& programs) {
  if (const auto code = run_around({argv + (argc > 0 ? 1 : 0), argv + argc}, programs)) return *code;
  const Outcome<int> code = run_words({argv + (argc > 0 ? 1 : 0), argv + argc}, programs);
  if (code) return *code;
  std::fputs(format(code.error()).c_str(), stderr);
  return code.error().exit_code;
}

}  // namespace slipway::cli
