// The program: service, agent, keeper and command line in one file.
#include <cmath>
#include <cstdio>

#include "agent/agent.h"
#include "apps/service.h"
#include "base/file.h"
#include "blob/command.h"
#include "cli/cli.h"
#include "container/contain.h"
#include "container/run_as.h"
#include "container/view.h"
#include "gang_exec/launch.h"
#include "gang_exec/start_remote.h"
#include "gang_exec/start_server.h"
#include "keeper/keeper.h"
#include "simulate/simulate.h"

namespace {

int run_node(const slipway::cli::NodeRunOptions& options) {
  auto token = slipway::read_file(options.token_file);
  // A machine that joined once has a key; its join token is used up and may be gone.
  if (!token && slipway::read_file(options.folder + "/node-key")) token = std::string();
  if (!token) {
    std::fprintf(stderr,
                 "error: the join token cannot be read: %s\ntry:   slipway token create NAME --role node, "
                 "and put it into a file\n",
                 token.error().what.c_str());
    return 1;
  }
  while (!token->empty() && (token->back() == '\n' || token->back() == ' ')) token->pop_back();
  slipway::agent::AgentOptions agent;
  agent.service = options.service;
  agent.token = *token;
  agent.pool = options.pool;
  agent.name = options.name;
  agent.folder = options.folder;
  agent.address = options.address;
  agent.total.cores = static_cast<slipway::Millicores>(std::llround(options.cores * 1000));
  agent.total.memory = options.memory;
  agent.gpus = options.gpus;
  agent.local = options.local;
  if (options.local) agent.data = options.data;
  agent.workspace = options.workspace;
  return slipway::agent::run_agent(agent);
}

int keep_node(const std::string& folder) {
  return slipway::keeper::run_keeper({folder, {"slipway", "node", "keep", "--folder", folder}});
}

int contain(const slipway::cli::NodeContainOptions& options) {
  return slipway::container::contain({options.rootfs, options.image, options.mounts, options.command});
}

int run_as(const slipway::cli::NodeRunAsOptions& options) {
  return slipway::container::run_as({options.uid, options.gid, options.workspace, options.attempt,
                                     options.own, options.given, options.data, options.command});
}

}  // namespace

int main(int argc, char** argv) {
  return slipway::cli::run(
      argc, argv,
      {slipway::run_service, run_node, keep_node, contain, slipway::gang_exec::serve_starts,
       slipway::gang_exec::start_remote, slipway::gang_exec::launch_mpi, slipway::gang_exec::launch_horovod,
       slipway::gang_exec::launch_ssh, slipway::container::view, slipway::simulate::run,
       slipway::simulate::replay_of, slipway::blob::sync_datastore, run_as, slipway::check_store,
       slipway::restore_store});
}
