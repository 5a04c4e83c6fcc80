#include "cli/commands/commands.h"
#include "cli/commands/completion.h"

namespace slipway::cli {

void add_completion(CommandTree& tree, Context&) {
  Command completion =
      tree.add("completion", "Print a completion script for your shell", "source <(slipway completion bash)");
  struct Shell {
    const char* name;
    const char* example;
    std::string (*script)(const CommandWords&);
  };
  static constexpr Shell shells[] = {
      {"bash", "source <(slipway completion bash)", bash_completion},
      {"zsh", "slipway completion zsh > ~/.zfunc/_slipway", zsh_completion},
      {"fish", "slipway completion fish > ~/.config/fish/completions/slipway.fish", fish_completion}};
  for (const Shell& shell : shells)
    completion.verb(shell.name, std::string("For ") + shell.name, shell.example)
        .runs([&tree, script = shell.script]() -> Outcome<int> {
          write_out(script(tree.words()));
          return ExitCode::done;
        });
}

}  // namespace slipway::cli
