#pragma once
// Files written for Batch AI: cluster.json, job.json, nfs.json, of any of its versions. Included in .cpp
// files only.
#include "cli/az/output.h"

namespace slipway::cli::az {

// What a command line says of storage, for clusters and jobs.
struct Storage {
  std::string account, key;
  std::string share, share_path;
  std::string container, container_path;
  std::string file_server, file_server_path;
};
Command& add_storage(Command& command, Storage& storage);

// The `properties` of a configuration file, as the service takes them: old spellings brought up to date. What
// `view` does not know is passed on, with a warning each.
Outcome<Value> read_config(Arm& arm, const std::string& path, const View& view);
// Sends the properties. What the service finds wrong is said with the lines of the file they came from, if
// any.
Outcome<Value> put_config(Arm& arm, const std::string& target, const Value& properties, Waiting waiting,
                          const std::string& file);
// Placeholders replaced, account names and credentials filled in.
Outcome<void> fill_volumes(Arm& arm, Value& volumes, const Storage& storage);
// Adds what the switches name to `volumes`, which may be null.
Outcome<void> add_volumes(Arm& arm, const Scope& scope, Value& volumes, const Storage& storage);

// https://account.file.core.windows.net/share
std::string share_url(const std::string& account, const std::string& share);

// How the administrator of nodes or a file server logs in.
struct Admin {
  std::string user, key, password;
  bool generate = false;
};
Command& add_admin(Command& command, Admin& admin);
// `settings` as the file has them (or null), with what the switches say over them.
Outcome<Value> admin_settings(const Value& settings, const Admin& admin);

}  // namespace slipway::cli::az
