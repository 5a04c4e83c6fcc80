#include "cli/commands/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>

#include "base/suggest.h"
#include "cli/commands/command_entry.h"
#include "cli/output/jsonpath.h"

namespace slipway::cli {
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

}  // namespace slipway::cli
