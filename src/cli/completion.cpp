#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "base/shell.h"

namespace slipway::cli {
namespace {

// The commands that print what an argument can be. What is not here completes as a file.
std::string_view lister_of(std::string_view argument) {
  if (argument.starts_with("JOB")) return "slipway job list --limit 100 -o quiet";
  if (argument.starts_with("POOL")) return "slipway pool list -o quiet";
  if (argument.starts_with("NODE")) return "slipway node list -o quiet";
  if (argument.starts_with("TOKEN")) return "slipway token list -o quiet";
  return {};
}

// Without the program's name: "pool create".
std::string place(const CommandWords& command) {
  const std::size_t space = command.path.find(' ');
  return space == std::string::npos ? "" : command.path.substr(space + 1);
}

void visit(const CommandWords& command, const std::function<void(const CommandWords&)>& each) {
  if (command.hidden) return;
  each(command);
  for (const CommandWords* child : command.commands) visit(*child, each);
}

std::vector<std::string> names_of(const CommandWords& command) {
  std::vector<std::string> names;
  for (const CommandWords* child : command.commands)
    if (!child->hidden) names.push_back(child->name);
  return names;
}

std::vector<std::string> flags_of(const CommandWords& command) {
  std::vector<std::string> names;
  for (const FlagWords& flag : command.flags) names.insert(names.end(), flag.names.begin(), flag.names.end());
  return names;
}

// The two shells differ in how a script learns the words and gives its answer, not in what it decides.
std::string cases(const CommandWords& root) {
  std::string text;
  visit(root, [&text](const CommandWords& command) {
    const std::string lister =
        command.arguments.empty() ? "" : std::string(lister_of(command.arguments[0].name));
    text += fmt::format("    '{}')\n      commands='{}'\n      flags='{}'\n", place(command),
                        fmt::join(names_of(command), " "), fmt::join(flags_of(command), " "));
    if (!lister.empty()) text += fmt::format("      lister='{}'\n", lister);
    text += "      ;;\n";
  });
  return text;
}

// Words that are commands make up the place; each is accepted only where the tree has it.
std::string places(const CommandWords& root) {
  std::vector<std::string> all;
  visit(root, [&all](const CommandWords& command) {
    if (!place(command).empty()) all.push_back("'" + place(command) + "'");
  });
  return fmt::format("{}", fmt::join(all, "|"));
}

}  // namespace

std::string bash_completion(const CommandWords& root) {
  return fmt::format(R"sh(# bash completion of slipway: source <(slipway completion bash)
_slipway() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" place='' commands='' flags='' lister='' word next
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -- ]] && {{ COMPREPLY=(); compopt -o default; return; }}
    next="${{place:+$place }}$word"
    case "$next" in
      {0}) place="$next" ;;
    esac
  done
  case "$place" in
{1}  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ -n $commands ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$current"))
  elif [[ -n $lister ]]; then
    COMPREPLY=($(compgen -W "$($lister 2>/dev/null)" -- "$current"))
  else
    COMPREPLY=()
    compopt -o default
  fi
}}
complete -F _slipway slipway
)sh",
                     places(root), cases(root));
}

std::string zsh_completion(const CommandWords& root) {
  return fmt::format(R"sh(#compdef slipway
# zsh completion of slipway: put this into a file _slipway in a folder of $fpath
_slipway() {{
  local place='' commands='' flags='' lister='' word next
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    if [[ $word == -- ]]; then _files; return; fi
    next="${{place:+$place }}$word"
    case "$next" in
      {0}) place="$next" ;;
    esac
  done
  case "$place" in
{1}  esac
  if [[ ${{words[CURRENT]}} == -* ]]; then
    compadd -- ${{=flags}}
  elif [[ -n $commands ]]; then
    compadd -- ${{=commands}}
  elif [[ -n $lister ]]; then
    compadd -- ${{(f)"$(${{=lister}} 2>/dev/null)"}}
  else
    _files
  fi
}}
if [ "$funcstack[1]" = "_slipway" ]; then _slipway "$@"; else compdef _slipway slipway; fi
)sh",
                     places(root), cases(root));
}

std::string fish_completion(const CommandWords& root) {
  std::string text =
      "# fish completion of slipway: slipway completion fish > ~/.config/fish/completions/slipway.fish\n"
      "function __slipway_at\n"
      "  set -l place\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    set -l next (string join ' ' $place $word)\n"
      "    if contains -- \"$next\" " +
      [&root] {
        std::string all = places(root);
        for (char& c : all)
          if (c == '|') c = ' ';
        return all;
      }() +
      "\n"
      "      set place $place $word\n"
      "    end\n"
      "  end\n"
      "  test \"$place\" = \"$argv\"\n"
      "end\n";
  visit(root, [&text](const CommandWords& command) {
    const std::string here = fmt::format("complete -c slipway -n '__slipway_at {}'", place(command));
    for (const CommandWords* child : command.commands)
      if (!child->hidden)
        text += fmt::format("{} -f -a {} -d {}\n", here, child->name, quote_for_shell(child->about));
    for (const FlagWords& flag : command.flags) {
      text += here;
      for (const std::string& name : flag.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!flag.value.empty()) text += " -r";
      if (!flag.values.empty()) text += fmt::format(" -f -a '{}'", fmt::join(flag.values, " "));
      text += fmt::format(" -d {}\n", quote_for_shell(flag.about));
    }
    const std::string_view lister = command.arguments.empty() ? "" : lister_of(command.arguments[0].name);
    if (!lister.empty()) text += fmt::format("{} -f -a '({} 2>/dev/null)'\n", here, lister);
  });
  return text;
}

}  // namespace slipway::cli
