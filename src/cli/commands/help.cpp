#include "cli/commands/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

std::vector<Row> flag_rows(const CommandWords& command, bool common) {
  std::vector<Row> rows;
  for (const FlagWords& flag : command.flags)
    if (flag.common == common)
      rows.emplace_back(format_flag(flag), flag.about + (flag.required ? " (needed)" : ""));
  return rows;
}

}  // namespace

std::string format_flag(const FlagWords& flag) {
  std::string text = fmt::format("{}", fmt::join(flag.names, ", "));
  return flag.value.empty() ? text : text + " " + flag.value;
}

std::string format_help(const CommandWords& command) {
  std::string text =
      fmt::format("Example:\n  {}\n\n{}.\n\nUsage: {}\n", command.example, command.about, usage(command));
  std::vector<Row> arguments, commands;
  for (const ArgumentWords& argument : command.arguments)
    arguments.emplace_back(argument.name, argument.about);
  for (const CommandWords* child : command.commands)
    if (!child->hidden) commands.emplace_back(child->name, child->about);
  text += block("Arguments", arguments);
  text += block("Commands", commands);
  text += block("Options", flag_rows(command, false));
  text += block("Options of every command", flag_rows(command, true));
  return text;
}

}  // namespace slipway::cli
