#pragma once
// Records of the core as Batch AI's resources.
#include <string>
#include <vector>

#include "compat/batchai/paths.h"
#include "compat/batchai/tree.h"
#include "domain/records.h"

namespace slipway::batchai {

// What a folder is tagged with.
namespace tag {
inline constexpr const char* location = "location";
inline constexpr const char* owner = "owner";          // the user who made it
inline constexpr const char* datastore = "datastore";  // of a file server
inline constexpr const char* address = "address";      // likewise
inline constexpr const char* user = "tag:";            // before the names of a workspace's own tags
}  // namespace tag

Value render_workspace(const FolderRecord& folder, bool is_deleting);
Value render_experiment(const FolderRecord& folder, bool is_deleting);
Value render_file_server(const FolderRecord& folder, bool is_deleting);
Value render_cluster(const PoolView& pool, const std::vector<NodeView>& nodes);

struct JobView {
  JobRecord job;
  std::vector<AttemptRecord> attempts;
  bool is_deleting = false;  // it is being deleted
};
Value render_job(const JobView& view);
// The same as JSON, for lists: the body is shown as it was stored, where that is possible.
std::string format_job(const JobView& view);
// queued, running, terminating, succeeded, failed
std::string execution_state(const JobRecord& job);

bool is_present(const NodeRecord& node);  // a machine that has joined and is not gone
Value render_login(const NodeRecord& node);

Value render_operations();  // what can be done, in Azure's words
Value render_usages(const std::vector<PoolView>& pools);

}  // namespace slipway::batchai
