// The agent and the keeper as a small program, for tests that need the real processes without the whole of
// slipway.
//
//   slipway_node_tool node keep --folder FOLDER
//   slipway_node_tool node run --folder FOLDER --service URL --token TOKEN [--data FOLDER] [--pool P] [--name
//   N]
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "agent/agent.h"
#include "keeper/keeper.h"

int main(int argc, char** argv) {
  slipway::agent::AgentOptions options;
  options.pool = "test";
  options.total = {.cores = 2000, .memory = 1ull << 30, .gpus = 0};
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--folder") options.folder = value;
    if (name == "--service") options.service = value;
    if (name == "--token") options.token = value;
    if (name == "--data") options.data = value;
    if (name == "--pool") options.pool = value;
    if (name == "--name") options.name = value;
  }
  const std::string_view verb = argc > 2 ? argv[2] : "";
  if (verb == "keep") return slipway::keeper::run_keeper({options.folder});
  if (verb == "run") return slipway::agent::run_agent(options);
  std::fprintf(stderr, "usage: %s node keep|run --folder FOLDER …\n", argv[0]);
  return 2;
}
