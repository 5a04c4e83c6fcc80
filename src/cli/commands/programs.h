#pragma once
// Programs of other layers that commands start; passed in from apps/.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "domain/recording.h"
#include "domain/simulation.h"

namespace slipway::cli {

struct UpOptions {  // defaults are filled in: data from SLIPWAY_HOME or ~/.slipway
  std::string data;
  std::string listen;
  bool detach = false;
  bool insecure = false;
};

struct NodeRunOptions {  // service, token_file, name, data and folder are never empty; the rest may be
  std::string service;
  std::string token_file;
  std::string pool;
  std::string name;
  std::string address;
  std::string folder;
  std::string data;
  double cores = 0;                                // 0: all of the machine
  Bytes memory = 0;                                // 0: all of the machine
  std::optional<std::vector<std::uint32_t>> gpus;  // indices; absent: all of the machine
  bool local = false;
};

struct NodeContainOptions {  // one of rootfs and image is given
  std::string rootfs;
  std::string image;
  std::vector<std::string> mounts;
  std::vector<std::string> command;
};

struct Programs {
  std::function<int(const UpOptions&)> up;
  std::function<int(const NodeRunOptions&)> node_run;
  std::function<int(const std::string& folder)> node_keep;
  std::function<int(const NodeContainOptions&)> node_contain;
  std::function<int()> node_serve_starts;
  std::function<int(const std::vector<std::string>& words)> node_start_remote;
  std::function<int(const std::vector<std::string>& command)> node_launch_mpi;
  std::function<int(const std::vector<std::string>& command)> node_launch_horovod;
  std::function<int(const std::vector<std::string>& command)> node_launch_ssh;
  std::function<int(const std::vector<std::string>& command)> node_view;
  std::function<Result<SimulationFigures>(const Simulation&)> simulate;
  std::function<Result<Replay>(const Recording&)> replay_of;
  std::function<int(const std::string& direction, const std::string& folder)> node_sync_datastore;
};

}  // namespace slipway::cli
