// The program: service, agent, keeper and command line in one file.
#include <cmath>
#include <cstdio>

#include "apps/service.h"
#include "base/file.h"
#include "blob/command.h"
#include "cli/cli.h"
#include "container/contain.h"
#include "container/view.h"
#include "node/agent.h"
#include "node/keeper.h"
#include "remote/launch.h"
#include "remote/start_remote.h"
#include "remote/start_server.h"
#include "simulate/simulate.h"

namespace {

int run_node(const slipway::cli::NodeRunOptions& options) {
  auto token = slipway::read_file(options.token_file);
  if (!token) {
    std::fprintf(stderr,
                 "error: the join token cannot be read: %s\ntry:   slipway token create NAME --role node, "
                 "and put it into a file\n",
                 token.error().what.c_str());
    return 1;
  }
  while (!token->empty() && (token->back() == '\n' || token->back() == ' ')) token->pop_back();
  slipway::node::AgentOptions agent;
  agent.service = options.service;
  agent.token = *token;
  agent.pool = options.pool;
  agent.name = options.name;
  agent.folder = options.folder;
  agent.address = options.address;
  agent.total.cores = static_cast<slipway::Millicores>(std::llround(options.cores * 1000));
  agent.total.memory = options.memory;
  agent.local = options.local;
  if (options.local) agent.data = options.data;
  return slipway::node::run_agent(agent);
}

int keep_node(const std::string& folder) { return slipway::node::run_keeper({folder}); }

int contain(const slipway::cli::NodeContainOptions& options) {
  return slipway::container::contain({options.rootfs, options.image, options.mounts, options.command});
}

}  // namespace

int main(int argc, char** argv) {
  return slipway::cli::run(
      argc, argv,
      {slipway::run_service, run_node, keep_node, contain, slipway::remote::serve_starts,
       slipway::remote::start_remote, slipway::remote::launch_mpi, slipway::remote::launch_horovod,
       slipway::remote::launch_ssh, slipway::container::view, slipway::simulate::run,
       slipway::simulate::replay_of, slipway::blob::sync_datastore});
}
