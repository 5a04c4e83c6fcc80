#pragma once
// Which MPI a node has, and becoming its mpirun.
#include <string>
#include <vector>

#include "base/result.h"
#include "gang_exec/mpi.h"

namespace slipway::gang_exec {

struct FoundMpi {
  MpiFlavour flavour{};
  std::string program;  // its mpirun
};
// Error `not_found` when there is none, `conflict` when mpirun and mpiexec are of two.
Result<FoundMpi> find_mpi(const std::string& node, const Environment& variables);

// Returns only when it failed, after printing the reason.
int run_mpi(const Gang& gang, const FoundMpi& mpi, const std::vector<std::string>& command,
            Environment variables, bool for_horovod);

}  // namespace slipway::gang_exec
