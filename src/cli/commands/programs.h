#pragma once
// Programs of other layers that commands start; passed in from apps/.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/result.h"
#include "domain/recording.h"
#include "domain/simulation.h"

namespace slipway::cli {

struct UpOptions {  // defaults are filled in: data from SLIPWAY_HOME or ~/.slipway
  std::string data;
  std::string listen;  // ADDRESS:PORT; https://ADDRESS:PORT?cert=FILE&key=FILE: with TLS, the files as given
  bool detach = false;
  bool insecure = false;
  std::vector<std::string> datastore_roots{};  // absolute
  bool new_secret_key = false;
  std::vector<std::string> run_as{};  // rules (domain/run_as.h)
  bool trust_members = false;
  bool audit_reads = false;
  bool is_new = false;        // begins anew in a folder whose database is gone
  bool accepts_loss = false;  // continues with the database that is there
  std::string backup_folder;  // empty: no backups
  std::uint32_t backups_kept = 7;
  bool mask_secrets = false;
  std::string passphrase_file{};          // for the key of secrets; empty: none
  std::vector<std::string> host_names{};  // that requests may be for
  struct Oidc {  // the provider by which users sign in; without an issuer there is none
    std::string issuer, client, secret_file, groups_file;
  };
  Oidc oidc{};
  // How long jobs are kept after their end; absent: for ever. And in workspaces where it is otherwise.
  std::optional<Duration> retain{};
  std::map<std::string, Duration> retain_in{};
};

struct StoreReport {    // what is in a database
  std::string service;  // its id
  std::uint64_t first_turn = 1, last_turn = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> lost;  // after, before: turns that it lacks
  std::uint64_t jobs = 0, job_last = 0;
  std::vector<std::string> problems;  // nothing: it is whole
};

struct Restored {
  StoreReport report;
  std::string moved_aside;          // where the database of before is now; empty: there was none
  std::uint64_t turns_missing = 0;  // of those that the folder knows of
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
  std::string workspace{};  // of a local node
};

struct NodeContainOptions {  // one of rootfs and image is given
  std::string rootfs;
  std::string image;
  std::vector<std::string> mounts;
  std::vector<std::string> command;
};

struct NodeRunAsOptions {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string workspace, attempt, data;
  std::vector<std::string> own, given;
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
  std::function<int(const NodeRunAsOptions&)> node_run_as;
  std::function<Result<StoreReport>(const std::string& file)> store_check;
  std::function<Result<Restored>(const std::string& data, const std::string& backup)> restore;
};

}  // namespace slipway::cli
