#include "cli/commands/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/commands/topics.h"

namespace slipway::cli {
namespace {

using Row = std::pair<std::string, std::string>;

std::string block(std::string_view title, const std::vector<Row>& rows) {
  if (rows.empty()) return {};
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.first.size());
  std::string text = fmt::format("\n{}:\n", title);
  for (const Row& row : rows) text += fmt::format("  {:<{}}  {}\n", row.first, width, row.second);
  return text;
}

std::string usage(const CommandWords& command) {
  std::string text = command.path;
  for (const FlagWords& flag : command.flags)
    if (flag.required) text += fmt::format(" {} {}", flag.names.back(), flag.value);
  const bool has_options = std::any_of(command.flags.begin(), command.flags.end(),
                                       [](const FlagWords& flag) { return !flag.required; });
  if (has_options) text += " [OPTIONS]";
  for (const ArgumentWords& argument : command.arguments)
    text += fmt::format(fmt::runtime(argument.required ? " {}" : " [{}]"), argument.name);
  if (!command.commands.empty()) text += " COMMAND";
  return text;
}

constexpr std::size_t values_shown_max = 30;

std::string value_of(const FlagWords& flag) {
  const std::string values = fmt::format("{}", fmt::join(flag.values, "|"));
  return flag.values.empty() || values.size() > values_shown_max ? flag.value : values;
}

// Where the values stand neither in place of the flag's value nor in its text.
std::string about(const FlagWords& flag) {
  std::string text = flag.about + (flag.required ? " (needed)" : "");
  const bool are_told = value_of(flag) != flag.value ||
                        std::all_of(flag.values.begin(), flag.values.end(), [&](const std::string& value) {
                          return flag.about.find(value) != std::string::npos;
                        });
  return are_told ? text : text + fmt::format(": {}", fmt::join(flag.values, ", "));
}

std::vector<Row> flag_rows(const CommandWords& command, bool common) {
  std::vector<Row> rows;
  for (const FlagWords& flag : command.flags)
    if (flag.common == common) rows.emplace_back(format_flag(flag), about(flag));
  return rows;
}

}  // namespace

std::string format_flag(const FlagWords& flag) {
  std::string text = fmt::format("{}", fmt::join(flag.names, ", "));
  return flag.value.empty() ? text : text + " " + value_of(flag);
}

std::string format_help(const CommandWords& command) {
  std::string text =
      fmt::format("Example:\n  {}\n\n{}.\n\nUsage: {}\n", command.example, command.about, usage(command));
  std::vector<Row> arguments, commands, azure;
  for (const ArgumentWords& argument : command.arguments)
    arguments.emplace_back(argument.name, argument.about);
  for (const CommandWords* child : command.commands)
    if (!child->hidden)
      (child->azure && !command.azure ? azure : commands).emplace_back(child->name, child->about);
  text += block("Arguments", arguments);
  text += block("Commands", commands);
  text += block("Options", flag_rows(command, false));
  text += block("Options of every command", flag_rows(command, true));
  text += block("Commands compatible with Azure's az", azure);
  if (command.name == "slipway")
    text += fmt::format("\nMore: slipway COMMAND --help, slipway help TOPIC ({})\n",
                        fmt::join(topic_names(), ", "));
  return text;
}

}  // namespace slipway::cli
