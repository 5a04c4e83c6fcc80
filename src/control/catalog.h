#pragma once
// Catalog: folders, datastores and tokens.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"

namespace slipway::control {

FolderRecord put_folder(Turn& turn, const Caller& caller, const std::string& path, Tags tags);
const FolderRecord* find_folder(const State& state, const Caller& caller, const std::string& path);
std::vector<FolderRecord> list_folders(const State& state, const Caller& caller, const std::string& prefix);
void remove_folder(Turn& turn, const Caller& caller, const std::string& path);
Result<DatastoreRecord> put_datastore(Turn& turn, const Caller& caller, DatastoreRecord record);
Result<DatastoreRecord> show_datastore(const State& state, const Caller& caller, const std::string& name);
std::vector<DatastoreRecord> list_datastores(const State& state, const Caller& caller);
Result<void> delete_datastore(Turn& turn, const Caller& caller, const std::string& name);
// Saved, and known to those who ask for tokens, after this turn.
void put_token(Turn& turn, const TokenRecord& token);
void drop_token(Turn& turn, const std::string& id);

// Deletes a folder under the data folder: on record until on_files_removed(), so that it comes to its end.
void remove_files(Turn& turn, const std::string& folder);
// The folder of a deleted job on nodes with storage of their own. Each is asked, in every session anew, until
// it has reported that nothing is left.
void remove_on_nodes(Turn& turn, const std::string& workspace, const std::string& folder);
void settle_removals(Turn& turn, Node& node);  // after its Hello
void on_removed_on_node(Turn& turn, Node& node, const std::string& folder);
void on_files_removed(Turn& turn, const std::string& folder);
Result<TokenRecord> add_token(Turn& turn, const TokenRecord& token);
// By somebody who is no admin: one of the caller's own, which allows no more than the token that was shown
// and is good no longer.
Result<TokenRecord> add_own_token(Turn& turn, const Caller& caller, TokenRecord token);
// Whether a caller who is no admin sees it.
bool is_own_token(const Caller& caller, const TokenRecord& token);
// By id, or by a name that only one has.
Result<void> revoke_token(Turn& turn, const Caller& caller, const std::string& id_or_name);
// Another one in its place, with this id and hash. Without `expires_in` it is good for as long as the old one
// was when it was made; of a caller who is no admin, no longer than the token that was shown.
struct Rotation {
  std::string id;
  std::string hash;
  std::optional<Duration> expires_in;
  std::vector<std::string> in_files;  // hashes of tokens that the service reads from files: these stay
};
Result<TokenRecord> rotate_token(Turn& turn, const Caller& caller, const std::string& id_or_name,
                                 const Rotation& rotation);
// When tokens were last used; those that are gone are left out.
void note_token_use(Turn& turn, const std::map<std::string, TimePoint>& last_used);
// An expired token is dropped as a revoked one is.
void watch_token_expiry(Turn& turn, const TokenRecord& token);
void on_token_expiry(Turn& turn, const std::string& id);

}  // namespace slipway::control
