#pragma once
// The commands under `slipway storage`: shares and containers are datastores. Included in .cpp files only.
#include "cli/az/output.h"
#include "cli/client/datastore_files.h"

namespace slipway::cli::az {

enum class Kind { share, container };

struct StorageOptions : Common {
  std::string account, key, connection, sas, auth_mode;
  std::string container;  // or share
  std::string name;       // of a blob or a directory; a share or container of its own commands
  std::string path, file, source, destination, destination_path, pattern, prefix;
  std::optional<std::uint32_t> quota, results;
  bool yes = false, no_progress = false, overwrite = false;
};

// What all of them take of an account.
Command& add_account(Command& command, StorageOptions& options);
// <account>.file.<share>, <account>.blob.<container>.
std::string datastore_name(const Arm& arm, const StorageOptions& options, Kind kind, const std::string& name);
DatastoreFiles files_of(Arm& arm, const StorageOptions& options, Kind kind);
Outcome<void> need_flag(const std::string& value, const char* flag);

using StorageWork = Outcome<Value> (*)(Arm&, const StorageOptions&);
// One verb with its options, which the caller adds flags for.
std::pair<Command, std::shared_ptr<StorageOptions>> storage_verb(Command& noun, Context& context,
                                                                 const char* name, const char* about,
                                                                 const char* example, StorageWork work,
                                                                 const View& view = plain_view());

void add_account_commands(Command& storage, Context& context);  // the accounts themselves
void add_file_commands(Command& storage, Context& context);     // and directories
void add_blob_commands(Command& storage, Context& context);

}  // namespace slipway::cli::az
