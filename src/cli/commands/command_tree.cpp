// What words on a command line ask for, and what is wrong with them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>

#include "base/suggest.h"
#include "cli/commands/command_entry.h"
#include "cli/commands/help.h"

namespace slipway::cli {

Command::Entry::~Entry() = default;

CommandTree::CommandTree(Settings& settings) {
  auto app = std::make_unique<CLI::App>("", "slipway");
  root_ = std::make_unique<Command::Entry>(*app, settings);
  root_->owned = std::move(app);
  root_->words.path = root_->words.name = "slipway";
  root_->words.about = "Slipway runs distributed AI training on the machines you have";
  root_->words.example = "slipway up --detach && slipway run -- hostname";
  Command(*root_).add_common(settings);
}

CommandTree::~CommandTree() = default;

Command CommandTree::add(const std::string& name, const std::string& about, const std::string& example) {
  return Command(*root_).verb(name, about, example);
}

const CommandWords& CommandTree::words() const { return root_->words; }

namespace {

std::vector<std::string> names_of(const CommandWords& words) {
  std::vector<std::string> names;
  for (const CommandWords* child : words.commands)
    if (!child->hidden) names.push_back(child->name);
  return names;
}

Failure unknown_word(const CommandWords& words, const std::string& word) {
  Failure failure{ExitCode::usage, {}, {}, {}};
  const bool is_flag = word.size() > 1 && word.front() == '-';
  std::vector<std::string> candidates;
  if (is_flag) {
    for (const FlagWords& flag : words.flags)
      candidates.insert(candidates.end(), flag.names.begin(), flag.names.end());
    failure.what = fmt::format("{} has no flag {}", words.path, word.substr(0, word.find('=')));
  } else if (!words.commands.empty()) {
    candidates = names_of(words);
    failure.what = fmt::format("{} has no command '{}'", words.path, word);
    failure.why = fmt::format("it has {}", fmt::join(candidates, ", "));
  } else {
    failure.what = fmt::format("{} does not take '{}'", words.path, word);
  }
  const std::string name = word.substr(0, word.find('='));
  // Every one-letter flag is one letter away from every other.
  if (is_flag)
    std::erase_if(candidates, [&](const std::string& each) { return each.size() == 2 || name.size() == 2; });
  const std::string close = nearest(name, candidates);
  failure.hint = close.empty() ? words.path + " --help" : is_flag ? close : words.path + " " + close;
  return failure;
}

Failure without_command(const CommandWords& words) {
  if (words.name == "slipway") {
    std::fputs(format_help(words).c_str(), stderr);
    return {ExitCode::usage, "slipway was given no command", {}, "slipway status"};
  }
  return {ExitCode::usage, words.path + " needs one more word",
          fmt::format("it has {}", fmt::join(names_of(words), ", ")), words.example};
}

// What CLI11 calls argument0 or --nodes, as the user knows it.
std::string name_for_user(const CommandWords& words, const std::string& name) {
  for (std::size_t i = 0; i < words.arguments.size(); ++i)
    if (name == fmt::format("argument{}", i)) return words.arguments[i].name;
  return name;
}

Failure translate(const CommandWords& words, const std::string& text, bool missing) {
  std::string what = fmt::format("{}: {}", words.path, text);
  if (missing)
    what = fmt::format("{} needs {}", words.path,
                       name_for_user(words, text.substr(0, text.find(" is required"))));
  return {ExitCode::usage, what, {}, words.example};
}

}  // namespace

// What CLI11 found wrong, kept until it is known whether help was asked for or a word is unknown: those say
// more than "POOL is required".
struct CommandTree::Wrong {
  std::optional<Failure> value;
  bool missing = false;  // an argument or flag that is needed
  std::string text;
};

std::optional<CommandTree::Wrong> CommandTree::fill(std::vector<std::string> reversed) {
  try {
    root_->app->parse(std::move(reversed));
    return std::nullopt;
  } catch (const ValueError& error) {
    const std::string what = fmt::format("{}: {}", error.flag, error.error.what);
    return Wrong{Failure{ExitCode::usage, what, {}, error.error.hint}, false, {}};
  } catch (const CLI::ArgumentMismatch& error) {
    // CLI11 begins with the flag's name: "--nodes: 1 required TEXT missing".
    const std::string text = error.what();
    const std::string what = text.substr(0, text.find_first_of(": ")) +
                             (text.find(':') == std::string::npos         ? " takes no value"
                              : text.find("missing") != std::string::npos ? " needs a value"
                                                                          : " is given twice");
    return Wrong{Failure{ExitCode::usage, what, {}, reached().first->words.example}, false, {}};
  } catch (const CLI::RequiredError& error) {
    return Wrong{{}, true, error.what()};
  } catch (const CLI::ParseError& error) {
    return Wrong{{}, false, error.what()};
  }
}

// The command the words led to, and whether help was asked for on the way.
std::pair<Command::Entry*, bool> CommandTree::reached() const {
  Command::Entry* entry = root_.get();
  bool help = entry->app->count("--help") > 0;
  while (!entry->app->get_subcommands().empty()) {
    const CLI::App* app = entry->app->get_subcommands().front();
    const auto child = std::find_if(entry->children.begin(), entry->children.end(),
                                    [app](const auto& each) { return each->app == app; });
    entry = child->get();
    help = help || entry->app->count("--help") > 0;
  }
  return {entry, help};
}

namespace {

// Gives a command that runs another its words; those that remain are unknown.
Outcome<void> take_rest(const CommandWords& place, std::vector<std::string>& rest,
                        std::vector<std::string>& unknown, const std::vector<std::string>& after_mark) {
  const auto flag = std::find_if(unknown.begin(), unknown.end(),
                                 [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
  if (flag == unknown.begin() && flag != unknown.end()) return {};
  if (flag != unknown.end())
    return misuse(fmt::format("{}: {} may be its own flag or one of the command", place.path, *flag),
                  fmt::format("put -- before the command: {}", place.example));
  rest = std::exchange(unknown, {});
  rest.insert(rest.end(), after_mark.begin(), after_mark.end());
  return {};
}

Action show_help(const CommandWords& place) {
  return [text = format_help(place)]() -> Outcome<int> {
    std::fputs(text.c_str(), stdout);
    return ExitCode::done;
  };
}

}  // namespace

// The command that wants its words as they are, having them; nullptr when it is another, or asks for help.
Command::Entry* CommandTree::take_verbatim(const std::vector<std::string>& words) const {
  Command::Entry* entry = root_.get();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto child = std::find_if(entry->children.begin(), entry->children.end(),
                                    [&](const auto& each) { return each->words.name == words[i]; });
    if (child == entry->children.end()) return nullptr;
    entry = child->get();
    if (entry->verbatim == nullptr) continue;
    if (i + 1 < words.size() && (words[i + 1] == "--help" || words[i + 1] == "-h")) return nullptr;
    entry->verbatim->assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
    return entry;
  }
  return nullptr;
}

// The words with shortened flags written out, for a Azure-compatible command.
std::vector<std::string> CommandTree::lengthened(std::vector<std::string> words) const {
  const Command::Entry* entry = root_.get();
  for (const std::string& word : words)
    for (const auto& child : entry->children)
      if (child->words.name == word) {
        entry = child.get();
        break;
      }
  if (!entry->azure) return words;
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    std::string& word = words[i];
    if (!word.starts_with("-")) continue;
    const std::string name = word.substr(0, word.find('='));
    const FlagWords* meant = nullptr;
    std::string full;
    bool exact = false, several = false;
    for (const FlagWords& flag : entry->words.flags)
      for (const std::string& each : flag.names) {
        if (exact || !each.starts_with(name)) continue;
        exact = each == name;
        several = !exact && (several || (meant != nullptr && meant != &flag));
        meant = &flag;
        full = each;
      }
    if (meant == nullptr || several) continue;
    if (!exact && name.size() > 2) word = full + word.substr(name.size());
    if (!meant->value.empty() && word.find('=') == std::string::npos)
      ++i;  // its value, whatever it looks like
  }
  return words;
}

namespace {

const FlagWords* find_flag(const CommandWords& below, const std::string& name) {
  for (const FlagWords& flag : below.flags)
    if (std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end()) return &flag;
  for (const CommandWords* child : below.commands)
    if (const FlagWords* found = find_flag(*child, name)) return found;
  return nullptr;
}

}  // namespace

// Published command lines give some flags to commands that do not need them (-e to cluster delete), which az
// accepts where a default was configured. Such flags are dropped with a note; those that no command of the
// noun has stay unknown.
void CommandTree::drop_flags_of_others(const Command::Entry& entry, std::vector<std::string>& unknown) const {
  const auto noun = std::find_if(root_->children.begin(), root_->children.end(), [&](const auto& child) {
    return entry.words.path == child->words.path || entry.words.path.starts_with(child->words.path + " ");
  });
  if (noun == root_->children.end()) return;
  for (std::size_t i = 0; i < unknown.size();) {
    const std::string name = unknown[i].substr(0, unknown[i].find('='));
    const FlagWords* flag = name.starts_with("-") ? find_flag((*noun)->words, name) : nullptr;
    if (flag == nullptr) {
      ++i;
      continue;
    }
    std::fputs(fmt::format("note:  {} is not used by {}\n", name, entry.words.path).c_str(), stderr);
    const bool has_value = !flag->value.empty() && name.size() == unknown[i].size() && i + 1 < unknown.size();
    const auto begin = unknown.begin() + static_cast<std::ptrdiff_t>(i);
    unknown.erase(begin, begin + (has_value ? 2 : 1));
  }
}

Outcome<Action> CommandTree::parse(const std::vector<std::string>& given) {
  if (const Command::Entry* entry = take_verbatim(given)) return entry->action;
  const std::vector<std::string> words = lengthened(given);
  // `--` starts a command line that is none of our business; CLI11 would look for flags and commands in it.
  const auto mark = std::find(words.begin(), words.end(), "--");
  const std::vector<std::string> after(mark == words.end() ? mark : mark + 1, words.end());
  std::optional<Wrong> wrong = fill({std::make_reverse_iterator(mark), words.rend()});

  const auto [entry, help] = reached();
  const CommandWords& place = entry->words;
  if (help) return show_help(place);
  std::vector<std::string> unknown = entry->app->remaining();
  if (entry->rest != nullptr) {
    if (const Outcome<void> taken = take_rest(place, *entry->rest, unknown, after); !taken)
      return give_up(taken);
  } else {
    unknown.insert(unknown.end(), after.begin(), after.end());
  }
  if (entry->azure) drop_flags_of_others(*entry, unknown);
  if (!unknown.empty()) return give_up(unknown_word(place, unknown.front()));
  if (wrong && wrong->value) return give_up(std::move(*wrong->value));
  if (wrong) return give_up(translate(place, wrong->text, wrong->missing));
  if (!entry->action) return give_up(without_command(place));
  if (entry->rest != nullptr && entry->rest->empty())
    return misuse(place.path + " needs a command to run", place.example);
  return entry->action;
}

}  // namespace slipway::cli
