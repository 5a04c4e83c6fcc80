#include "compat/batchai/script.h"

#include <fmt/format.h>

#include "base/shell.h"
#include "compat/batchai/layout.h"

namespace slipway::batchai {

std::string run_command(std::string_view variable) {
  return fmt::format(R"(slipway_text=${0}; unset {0}; eval "$slipway_text")", variable);
}

Command command_for(std::string_view variable) {
  return std::vector<std::string>{"/bin/bash", "-c", run_command(variable)};
}

Late settle_variables(const Value& owner, Environment& known, Environment& environment) {
  Late late;
  for (const Value& item : items_at(owner, "environmentVariables")) {
    const std::string name = text_at(item, "name");
    if (name.starts_with("AZ_BATCHAI_") && known.contains(name)) continue;  // ours stand
    const Expanded value = expand(text_at(item, "value"), known);
    if (value.unknown.empty()) {
      environment[name] = value.text;
      known[name] = value.text;
    } else {
      late.emplace_back(name, value.text);
      known.erase(name);
    }
  }
  return late;
}

namespace {

// 'literal'"${NAME}"'literal': nothing in it but the names is read by the shell.
std::string shell_value(std::string_view text) {
  std::string out;
  for (const Piece& piece : pieces_of(text))
    out += piece.name.empty() ? quote_for_shell(piece.text) : "\"${" + piece.name + "-}\"";
  return out;
}

}  // namespace

std::string prologue(const Late& late, std::string_view folder) {
  // As if the shell were interactive, which many ~/.bashrc ask for; a real one would complain of a missing
  // terminal.
  std::string text =
      "PS1='$ '\n"
      "if [ -f \"${HOME:-/}/.bashrc\" ]; then . \"$HOME/.bashrc\"; fi\n"
      "unset PS1\n";
  for (const auto& [name, value] : late) text += fmt::format("export {}={}\n", name, shell_value(value));
  if (!folder.empty()) text += fmt::format("cd \"{}\" || exit 1\n", folder);
  return text;
}

std::string python_line(const Value& settings, std::string_view arguments) {
  const std::string interpreter =
      text_at(settings, "pythonInterpreterPath", "$(command -v python || command -v python3 || echo python)");
  std::string line = interpreter + " " + text_at(settings, "pythonScriptFilePath");
  if (!arguments.empty()) line += " " + std::string(arguments);
  return line;
}

}  // namespace slipway::batchai
