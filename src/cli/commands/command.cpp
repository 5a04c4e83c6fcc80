#include "cli/commands/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/suggest.h"
#include "cli/commands/help.h"
#include "cli/output/jsonpath.h"

namespace slipway::cli {

struct Command::Entry {
  Entry(CLI::App& app_given, Settings& settings_given) : app(&app_given), settings(settings_given) {}
  CLI::App* app;
  Settings& settings;
  CommandWords words;
  Action action;
  bool azure = false;
  bool help = false;  // CLI11 wants a place for it; reached() asks by name
  std::vector<std::string>* rest = nullptr;
  std::vector<std::string>* verbatim = nullptr;
  std::vector<std::unique_ptr<Entry>> children;
  std::unique_ptr<CLI::App> owned;  // the root's
};

namespace {

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

FlagWords split_flag(const std::string& flag, const std::string& about) {
  const std::size_t space = flag.find(' ');
  FlagWords words;
  words.names = split_names(flag.substr(0, space));
  if (space != std::string::npos) words.value = flag.substr(space + 1);
  words.about = about;
  return words;
}

template <class Number>
Result<void> parse_number(const std::string& text, std::optional<Number>& value, const char* kind) {
  Number number{};
  if (text.size() > 1 && text[0] == '-' && text.find_first_not_of("0123456789.", 1) == std::string::npos)
    return fail(ErrorCode::invalid, "must be 0 or more");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || number < Number{0})
    return fail(ErrorCode::invalid, fmt::format("'{}' is not {}", text, kind));
  value = number;
  return {};
}

// CLI11 allows fewer characters in a name than JOB/TASK has; it sees a number instead.
std::string argument_key(const CommandWords& words) {
  return fmt::format("argument{}", words.arguments.size());
}

// Carries an Error of one of our parsers through CLI11.
struct ValueError {
  std::string flag;
  Error error;
};

}  // namespace

Command& Command::value(const std::string& flag, const std::string& about, Need need, Parse parse) {
  FlagWords words = split_flag(flag, about);
  words.required = need == Need::required;
  const std::string name = words.names.back();
  entry_->app
      ->add_option_function<std::string>(flag.substr(0, flag.find(' ')),
                                         [parse = std::move(parse), name](const std::string& text) {
                                           if (auto parsed = parse(text); !parsed)
                                             throw ValueError{name, parsed.error()};
                                         })
      ->required(words.required);
  entry_->words.flags.push_back(std::move(words));
  return *this;
}

Command& Command::argument(const std::string& name, std::string& value, const std::string& about, Need need) {
  entry_->app->add_option(argument_key(entry_->words), value)->required(need == Need::required);
  entry_->words.arguments.push_back({name, about, need == Need::required});
  return *this;
}

Command& Command::arguments(const std::string& name, std::vector<std::string>& values,
                            const std::string& about, Need need) {
  entry_->app->add_option(argument_key(entry_->words), values)->required(need == Need::required);
  entry_->words.arguments.push_back({name + "...", about, need == Need::required});
  return *this;
}

Command& Command::rest(const std::string& name, std::vector<std::string>& words, const std::string& about) {
  entry_->rest = &words;
  entry_->words.arguments.push_back({name, about, true});
  return *this;
}

Command& Command::verbatim(const std::string& name, std::vector<std::string>& words,
                           const std::string& about) {
  entry_->verbatim = &words;
  entry_->words.arguments.push_back({name, about, true});
  return *this;
}

Command& Command::flag(const std::string& flag, bool& value, const std::string& about) {
  entry_->app->add_flag(flag, value);
  entry_->words.flags.push_back(split_flag(flag, about));
  return *this;
}

Command& Command::text(const std::string& flag, std::string& target, const std::string& about) {
  return value(flag, about, Need::optional, [&target](const std::string& text) -> Result<void> {
    if (text.empty()) return fail(ErrorCode::invalid, "it is empty");
    target = text;
    return {};
  });
}

Command& Command::texts(const std::string& flag, std::vector<std::string>& values, const std::string& about) {
  // One value each time it is given; otherwise CLI11 would take all words up to the next flag.
  entry_->app->add_option(flag.substr(0, flag.find(' ')), values)->allow_extra_args(false);
  entry_->words.flags.push_back(split_flag(flag, about));
  return *this;
}

Command& Command::word(const std::string& flag, std::string& target, const std::vector<std::string>& words,
                       const std::string& about) {
  value(flag, about, Need::optional, [&target, words](const std::string& text) -> Result<void> {
    if (std::find(words.begin(), words.end(), text) == words.end()) {
      const std::string close = nearest(text, words);
      return fail(ErrorCode::invalid, fmt::format("'{}' is none of {}", text, fmt::join(words, ", ")), close);
    }
    target = text;
    return {};
  });
  entry_->words.flags.back().values = words;
  return *this;
}

Command& Command::form(const std::string& flag, std::string& target, const std::string& about) {
  static const std::vector<std::string> forms{"table", "wide", "json", "yaml", "name", "quiet"};
  value(flag, about, Need::optional, [&target](const std::string& text) -> Result<void> {
    if (text.starts_with("jsonpath=")) {
      if (const auto path = JsonPath::parse(text.substr(text.find('=') + 1)); !path)
        return fail(path.error());
    } else if (std::find(forms.begin(), forms.end(), text) == forms.end()) {
      return fail(ErrorCode::invalid,
                  fmt::format("'{}' is none of {}, jsonpath=TEMPLATE", text, fmt::join(forms, ", ")),
                  nearest(text, forms));
    }
    target = text;
    return {};
  });
  entry_->words.flags.back().values = forms;
  return *this;
}

Command& Command::lists() {
  Settings& settings = entry_->settings;
  flag("-w,--watch", settings.watch, "show it again whenever it changes, until Ctrl-C");
  text("--columns LIST", settings.columns, "only these columns, in this order: JOB,STATE");
  flag("--no-headers", settings.no_headers, "a table without its first line");
  return flag("--no-pager", settings.no_pager,
              "no pager for what is longer than the terminal (SLIPWAY_PAGER, PAGER)");
}

Command& Command::alias(const std::string& name) {
  entry_->app->alias(name);
  return *this;
}

Command& Command::number(const std::string& flag, std::optional<std::uint32_t>& target,
                         const std::string& about, Need need) {
  return value(flag, about, need,
               [&target](const std::string& text) { return parse_number(text, target, "a whole number"); });
}

Command& Command::integer(const std::string& flag, std::optional<int>& target, const std::string& about) {
  return value(flag, about, Need::optional, [&target](const std::string& text) -> Result<void> {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
      return fail(ErrorCode::invalid, fmt::format("'{}' is not a whole number", text));
    target = number;
    return {};
  });
}

Command& Command::decimal(const std::string& flag, std::optional<double>& target, const std::string& about) {
  return value(flag, about, Need::optional,
               [&target](const std::string& text) { return parse_number(text, target, "a number"); });
}

Command& Command::size(const std::string& flag, std::optional<Bytes>& target, const std::string& about) {
  return value(flag, about, Need::optional, [&target](const std::string& text) {
    return parse_bytes(text).map([&target](Bytes bytes) { target = bytes; });
  });
}

Command& Command::duration(const std::string& flag, std::optional<Duration>& target,
                           const std::string& about) {
  return value(flag, about, Need::optional, [&target](const std::string& text) {
    return parse_duration(text).map([&target](Duration duration) { target = duration; });
  });
}

Command& Command::hidden() {
  entry_->words.hidden = true;
  return *this;
}

namespace {

const std::vector<std::string> azure_forms{"json", "jsonc", "table", "tsv", "quiet", "none"};

void add_output(Command& command, Settings& settings, bool azure) {
  if (azure)
    command.word("-o,--output FORM", settings.output, azure_forms,
                 "json, jsonc, table, tsv, quiet (only names) or none");
  else
    command.form("-o,--output FORM", settings.output,
                 "table, wide, json, yaml, name or quiet (only ids), jsonpath=TEMPLATE");
}

}  // namespace

Command& Command::azure_compatible() {
  entry_->azure = entry_->words.azure = true;
  entry_->app->remove_option(entry_->app->get_option("--output"));
  std::vector<FlagWords>& flags = entry_->words.flags;
  std::erase_if(flags, [](const FlagWords& flag) { return flag.names.back() == "--output"; });
  add_output(*this, entry_->settings, true);
  flags.back().common = true;
  std::rotate(flags.begin(), flags.end() - 1, flags.end());
  return *this;
}

void Command::runs(Action action) { entry_->action = std::move(action); }

Command Command::verb(const std::string& name, const std::string& about, const std::string& example) {
  auto child = std::make_unique<Entry>(*entry_->app->add_subcommand(name), entry_->settings);
  child->azure = entry_->azure;
  child->words.path = entry_->words.path + " " + name;
  child->words.name = name;
  child->words.about = about;
  child->words.example = example;
  entry_->words.commands.push_back(&child->words);
  entry_->children.push_back(std::move(child));
  Command command(*entry_->children.back());
  command.add_common(entry_->settings);
  return command;
}

void Command::add_common(Settings& settings) {
  CLI::App& app = *entry_->app;
  // Unknown words are refused in conclude(), which can name the word that was probably meant.
  app.allow_extras();
  app.require_subcommand(0, 1);  // and no second command is taken for one
  app.set_help_flag();
  add_output(*this, settings, entry_->azure);
  text("--service URL", settings.service, "where the service is (or SLIPWAY_SERVICE)");
  text("--token-file FILE", settings.token_file, "the file with your token (or SLIPWAY_TOKEN_FILE)");
  text("--data DIR", settings.data, "the service's folder (or SLIPWAY_HOME; default ~/.slipway)");
  flag("-h,--help", entry_->help, "show this help");
  for (FlagWords& words : entry_->words.flags) words.common = true;
}

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
