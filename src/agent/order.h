#pragma once
// An order of the service as its keeper carries it out: real paths, and the whole environment. Pure.
//
// Under the data folder an attempt has <folder>/stdout.txt, stderr.txt, wd/ (the working folder, unless the
// order names another) and outputs/.
#include <functional>
#include <string>

#include "domain/job.h"
#include "domain/protocol.h"
#include "keeper/protocol.h"

namespace slipway::agent {

struct NodeContext {
  std::string data;     // absolute; the folders of orders lie under it
  Environment base;     // what every process gets, unless the order says otherwise
  Resources total;      // of the node
  std::string program;  // this one, for orders that run a part of it
  bool shares_storage = false;
  // Whether processes can have a view under this path; without: they cannot.
  std::function<bool(const std::string& root)> can_view{};
  bool limits_cores = false;  // its keeper can
  std::string node{};         // its name
};

// The attempt that is run or prepared, for people.
std::string work_name(const WorkKey& key);

// Where the secrets lie that its processes get as files. Of nodes that share the data folder each has its
// own.
std::string secrets_folder(const StartOrder& order, const NodeContext& context);

keeper::StartRequest to_keeper(const StartOrder& order, const NodeContext& context);

// PATH, HOME, USER, LANG and TMPDIR of this process, as far as they are set.
Environment base_environment();

}  // namespace slipway::agent
