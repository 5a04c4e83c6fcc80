#pragma once
// The agent: joins a node to a service and runs what the service orders, through its keeper.
//
// It may be killed at any time: processes continue under the keeper, and the next agent of the same folder
// reports them. It never ends a process because a connection was lost.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "domain/job.h"

namespace slipway::agent {

struct AgentOptions {
  std::string service;  // http://127.0.0.1:8470
  std::string token;    // a join token
  std::string pool;
  std::string name;     // default: the machine's host name
  std::string folder;   // the node's own, made if missing: lock, keeper, cache of code
  std::string address;  // where processes of other nodes reach those of this one; default: the address this
                        // machine uses towards the service
  Resources total;      // cores and memory; what is 0 is detected
  std::optional<std::vector<std::uint32_t>> gpus;  // indices of those to offer; absent: all of the machine
  bool local = false;                              // started by the service's local provisioner
  std::string workspace;  // of a local node: the service's own agents join any; else that of the token
  std::string data;       // the service's data folder, where it is known to be the same one
  std::vector<std::string> keeper_command;  // default: this program, `node keep --folder FOLDER`
};

// Runs until the service orders it to quit (0), until SIGTERM or SIGINT (0, processes continue), or until it
// cannot continue (1: another agent has the folder, the service refuses this node for good; the reason is on
// standard error). The keeper goes with it when it has nothing to keep, or when the service ordered it.
int run_agent(AgentOptions options);

}  // namespace slipway::agent
