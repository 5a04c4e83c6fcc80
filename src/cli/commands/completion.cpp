#include "cli/commands/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "base/shell.h"

namespace slipway::cli {
namespace {

// The command that prints what an argument or the value of a flag can be.
std::string_view lister_of(std::string_view argument) {
  if (argument == "JOB_NAME") return R"(slipway job list --limit 100 | awk "NR > 1 {print \$2}")";
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

// How the value of a flag is completed, as the scripts have it: a kind and what belongs to it.
std::string value_case(const FlagWords& flag) {
  const std::string_view lister = lister_of(flag.value);
  std::string kind = "none", choices;
  if (!flag.values.empty()) {
    kind = "words";
    choices = fmt::format("{}", fmt::join(flag.values, " "));
  } else if (!lister.empty()) {
    kind = "list";
    choices = lister;
  } else if (flag.value == "FILE" || flag.value == "DIR" || flag.value == "PATH") {
    kind = "file";
  }
  return fmt::format("        {}) kind={} choices='{}' ;;\n", fmt::join(flag.names, "|"), kind, choices);
}

// Cases for the values of a command's flags; what all commands have alike is written once, for the root.
std::string value_cases(const CommandWords& command, const CommandWords& root) {
  std::string text;
  for (const FlagWords& flag : command.flags) {
    const auto same = [&](const FlagWords& each) {
      return each.names == flag.names && each.values == flag.values;
    };
    const bool is_known = &command != &root && std::any_of(root.flags.begin(), root.flags.end(), same);
    if (!flag.value.empty() && !is_known) text += value_case(flag);
  }
  return text.empty() ? text : fmt::format("      case \"$previous\" in\n{}      esac\n", text);
}

// The two shells differ in how a script learns the words and gives its answer, not in what it decides.
std::string cases(const CommandWords& root) {
  std::string text;
  visit(root, [&](const CommandWords& command) {
    const std::string lister =
        command.arguments.empty() ? "" : std::string(lister_of(command.arguments[0].name));
    text += fmt::format("    '{}')\n      commands='{}'\n      flags='{}'\n", place(command),
                        fmt::join(names_of(command), " "), fmt::join(flags_of(command), " "));
    if (!lister.empty()) text += fmt::format("      lister='{}'\n", lister);
    if (&command != &root) text += value_cases(command, root);
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
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local place='' commands='' flags='' lister='' kind='' choices='' word next
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -- ]] && {{ COMPREPLY=(); compopt -o default; return; }}
    next="${{place:+$place }}$word"
    case "$next" in
      {0}) place="$next" ;;
    esac
  done
{2}  case "$place" in
{1}  esac
  case "$kind" in
    words) COMPREPLY=($(compgen -W "$choices" -- "$current")); return ;;
    list) COMPREPLY=($(compgen -W "$(eval "$choices" 2>/dev/null)" -- "$current")); return ;;
    file) COMPREPLY=(); compopt -o default; return ;;
    none) COMPREPLY=(); return ;;
  esac
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
                     places(root), cases(root), value_cases(root, root));
}

std::string zsh_completion(const CommandWords& root) {
  return fmt::format(R"sh(#compdef slipway
# zsh completion of slipway: put this into a file _slipway in a folder of $fpath
_slipway() {{
  local place='' commands='' flags='' lister='' kind='' choices='' word next previous="${{words[CURRENT-1]}}"
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    if [[ $word == -- ]]; then _files; return; fi
    next="${{place:+$place }}$word"
    case "$next" in
      {0}) place="$next" ;;
    esac
  done
{2}  case "$place" in
{1}  esac
  case "$kind" in
    words) compadd -- ${{=choices}}; return ;;
    list) compadd -- ${{(f)"$(eval "$choices" 2>/dev/null)"}}; return ;;
    file) _files; return ;;
    none) return ;;
  esac
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
                     places(root), cases(root), value_cases(root, root));
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
      const std::string_view lister = lister_of(flag.value);
      if (!flag.values.empty())
        text += fmt::format(" -f -a '{}'", fmt::join(flag.values, " "));
      else if (!lister.empty())
        text += fmt::format(" -f -a '({} 2>/dev/null)'", lister);
      else if (flag.value != "FILE" && flag.value != "DIR" && flag.value != "PATH")
        text += " -f";
      text += fmt::format(" -d {}\n", quote_for_shell(flag.about));
    }
    const std::string_view lister = command.arguments.empty() ? "" : lister_of(command.arguments[0].name);
    if (!lister.empty()) text += fmt::format("{} -f -a '({} 2>/dev/null)'\n", here, lister);
  });
  return text;
}

}  // namespace slipway::cli
