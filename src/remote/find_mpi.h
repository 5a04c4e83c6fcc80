#pragma once
// Which MPI a node has, and becoming its mpirun.
#include <string>
#include <vector>

#include "base/result.h"
#include "remote/mpi.h"

namespace slipway::remote {

struct FoundMpi {
  MpiFlavour flavour{};
  std::string program;  // its mpirun
};
// Error `not_found` when there is none, `conflict` when mpirun and mpiexec are of two.
Result<FoundMpi> find_mpi(const std::string& node, const Variables& variables);

// Comes back only when it failed, having said why.
int run_mpi(const Gang& gang, const FoundMpi& mpi, const std::vector<std::string>& command,
            Variables variables, bool for_horovod);

}  // namespace slipway::remote
