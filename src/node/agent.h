#pragma once
// The agent: joins a node to a service and runs what the service orders, through its keeper.
//
// It may be killed at any moment: processes go on under the keeper, and the next agent of the same folder
// says how they are. It never ends a process because a connection was lost.
#include <string>
#include <vector>

#include "domain/job.h"

namespace slipway::node {

struct AgentOptions {
  std::string service;  // http://127.0.0.1:8470
  std::string token;    // a join token
  std::string pool;
  std::string name;     // default: the machine's host name
  std::string folder;   // the node's own, made if missing: lock, keeper, cache of code
  std::string address;  // where processes of other nodes reach those of this one; default: the address this
                        // machine uses towards the service
  Resources total;      // what is 0 is detected: cores this process may use, memory, GPUs of the machine
  bool local = false;   // started by the service's local provisioner
  std::string data;     // the service's data folder, where it is known to be the same one
  std::vector<std::string> keeper_command;  // default: this program, `node keep --folder FOLDER`
};

// Runs until told to quit by the service (0), by SIGTERM or SIGINT (0, processes go on), or until it cannot
// go on (1: another agent has the folder, the service refuses this node for good; the reason is on standard
// error). The keeper goes with it when it has nothing to keep, or when the service said so.
int run_agent(AgentOptions options);

}  // namespace slipway::node
