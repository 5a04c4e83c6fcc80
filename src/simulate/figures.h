#pragma once
// Private to simulate/: from what was counted for each user in each pool to the figures of a run.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "domain/simulation.h"

namespace slipway::simulate {

struct Account {  // of one user in one pool
  WorkFigures work;
  std::vector<float> waits;  // seconds; of a million tasks, so small
};
using Accounts = std::map<std::pair<std::string, std::string>, Account>;  // by pool and user

WaitFigures summed_up(std::vector<float>& waits);
void add(WorkFigures& sum, const WorkFigures& one);

// Fills in all, users and the work of pools; what pools had to offer and cost is in them already.
void sum_up(const Accounts& accounts, SimulationFigures& figures);

}  // namespace slipway::simulate
