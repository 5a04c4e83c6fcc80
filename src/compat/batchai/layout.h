#pragma once
// Where a job finds things: the paths that Batch AI promised, the volumes that are mounted there, and what
// the core calls them.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compat/batchai/body.h"
#include "compat/batchai/paths.h"
#include "domain/job.h"

namespace slipway::batchai {

inline constexpr std::string_view mount_root = "/mnt/batch/tasks/shared/LS_root";

// A text in pieces: literal ones, and $NAME and ${NAME}.
struct Piece {
  std::string text;  // as written
  std::string name;  // empty: a literal
};
std::vector<Piece> pieces_of(std::string_view text);
// Replaces $NAME and ${NAME} that are known. What is not known stays as it is and is named.
struct Expanded {
  std::string text;
  std::vector<std::string> unknown;
};
Expanded expand(std::string_view text, const Environment& known);

// a/b of "a/" and "/b"; nothing is doubled, and an empty part is none.
std::string join_path(std::string_view a, std::string_view b);

// {sub}/{rg}/workspaces/{ws}/experiments/{exp}/jobs/{job}/{uuid}
std::string job_segment(const ResourceId& resource, std::string_view uuid);
// {sub}/{rg}/workspaces/{ws}/clusters/{cluster}/{uuid}
std::string cluster_segment(const ResourceId& resource, std::string_view uuid);

// Names of datastores, made of letters that such a name may have.
std::string share_datastore(std::string_view account, std::string_view share);          // lab.file.logs
std::string container_datastore(std::string_view account, std::string_view container);  // lab.blob.sets
std::string valid_name(std::string_view text);

// The first label of the host of https://lab.file.core.windows.net/logs, and what follows: lab, logs.
std::pair<std::string, std::string> split_share_url(std::string_view url);

// File servers by their keys (key_of), and the datastores they stand for.
using FileServers = std::map<std::string, std::string>;

// Volumes as mounts below `under`: mounts, or jobs/main/digits/hello/mounts.
std::vector<Mount> mounts_of(const Value& volumes, std::string_view under, const std::string& path,
                             const FileServers& servers, Problems& problems);
// Keys of the file servers that volumes name.
std::vector<std::string> servers_in(const Value& volumes);

// The folders of one job.
struct JobPaths {
  std::string temp;                                          // AZ_BATCHAI_JOB_TEMP
  std::string mounts;                                        // AZ_BATCHAI_JOB_MOUNT_ROOT
  std::string shared;                                        // AZ_BATCHAI_SHARED_JOB_TEMP
  std::string host_file;                                     // AZ_BATCHAI_MPI_HOST_FILE
  std::string logs;                                          // AZ_BATCHAI_STDOUTERR_DIR
  std::vector<std::pair<std::string, std::string>> inputs;   // id, path
  std::vector<std::pair<std::string, std::string>> outputs;  // id, path
  std::vector<Mount> outside;  // of prefixes that do not lie under the mount root
  Environment known;           // every variable that is the same everywhere
};
JobPaths job_paths(const Value& properties, const ResourceId& resource, std::string_view uuid,
                   Problems& problems);

// Where a path under the mount root lies: the innermost mount that holds it, and the path in that.
struct Found {
  const Mount* mount = nullptr;
  std::string path;
};
std::optional<Found> find_mount(const std::vector<Mount>& mounts, std::string_view path);

// Mounts as a stored text, and back.
std::string format_mounts(const std::vector<Mount>& mounts);
std::vector<Mount> parse_mounts(std::string_view text);

}  // namespace slipway::batchai
