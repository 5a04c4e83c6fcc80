#pragma once
// The launchers of a gang, run on its first node. Each gives the exit code of the whole.
#include <string>
#include <vector>

namespace slipway::gang_exec {

// Becomes mpirun, which reaches the other nodes through `slipway node start-remote`. 127 when there is none.
int launch_mpi(const std::vector<std::string>& command);

// Becomes the command, which finds an `ssh` that reaches the other nodes of its attempt.
int launch_ssh(const std::vector<std::string>& command);

// By Open MPI where it is installed, else by Gloo: then this process serves Horovod's key-value store and
// starts every rank itself. SLIPWAY_HOROVOD=gloo or mpi chooses.
int launch_horovod(const std::vector<std::string>& command);

}  // namespace slipway::gang_exec
