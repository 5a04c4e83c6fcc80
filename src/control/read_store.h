#pragma once
// The reading port of the store: what was saved, for threads other than the control thread.
//
// A ReadStore belongs to one thread at a time. Between begin() and end() every call sees one and the same
// state, that of a whole turn; without them each call sees the last saved turn. A page costs a bounded number
// of queries, however many rows it has.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "domain/quota.h"
#include "domain/records.h"
#include "domain/usage.h"
#include "domain/user.h"

namespace slipway::control {

struct JobQuery {
  static constexpr std::size_t tags_max = 8;

  std::string workspace;
  std::optional<JobState> state;
  std::string name;             // exact; empty: any
  std::optional<JobId> before;  // newest first, from below this one
  std::uint32_t limit = 100;
  Tags tags = {};                   // only jobs with all of these
  std::optional<JobId> after = {};  // oldest first, from above this one; `before` is not looked at
  std::string pool = {};            // exact; empty: any
  std::string user = {};            // who submitted it; empty: anybody
};
struct TaskQuery {
  std::optional<TaskState> state;
  std::optional<TaskRef> after;
  std::uint32_t limit = 100;
};
struct EventQuery {
  std::string workspace;
  std::optional<JobId> job;
  std::uint64_t after = 0;
  std::uint32_t limit = 100;
  std::string pool = {};  // exact; empty: any
  std::string kind = {};  // node.lost, or node for all about nodes; empty: any
  std::optional<TimePoint> since = {};
  bool is_newest = false;  // the last `limit` of them, not the first; in order all the same

  bool takes(const EventRecord& event) const {
    return event.workspace == workspace && (!job || event.job == job) &&
           (pool.empty() || event.pool == pool) &&
           (kind.empty() || event.kind == kind || event.kind.starts_with(kind + ".")) &&
           (!since || event.time >= *since);
  }
};

class ReadStore {
 public:
  virtual ~ReadStore() = default;

  [[nodiscard]] virtual Result<void> begin() = 0;
  virtual void end() = 0;

  // -- jobs
  virtual Result<std::optional<JobRecord>> job(JobId job) = 0;
  virtual Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) = 0;
  virtual Result<std::vector<JobRecord>> jobs(const JobQuery& query) = 0;
  // The newest job with this tag.
  virtual Result<std::optional<JobRecord>> job_by_tag(const std::string& workspace, const std::string& name,
                                                      const std::string& value) = 0;
  // As it was submitted; of its tasks only the first `tasks_max`.
  virtual Result<JobSpec> job_spec(JobId job, std::uint32_t tasks_max) = 0;
  virtual Result<UsageMeter> job_usage(JobId job) = 0;     // nothing spent where nothing was saved
  virtual Result<std::vector<std::string>> sources() = 0;  // manifests of all jobs on record
  // Likewise of a workspace, with who submitted the jobs.
  virtual Result<std::vector<std::pair<std::string, std::string>>> sources_of(
      const std::string& workspace) = 0;
  // What is counted of the code that jobs of a workspace came with.
  virtual Result<std::vector<DiskUse>> disk_of_code(const std::string& workspace) = 0;
  virtual Result<std::vector<std::pair<JobState, std::uint64_t>>> job_counts(
      const std::string& workspace) = 0;

  // -- tasks and attempts
  virtual Result<TaskSpec> task_spec(JobId job, std::uint32_t group) = 0;
  // Of the groups from `first` to `last` that have had an attempt.
  virtual Result<std::map<std::uint32_t, TaskSpec>> task_specs(JobId job, std::uint32_t first,
                                                               std::uint32_t last) = 0;
  // Every task in the order of the list, those without a row of their own included, with the nodes of its
  // last attempt.
  virtual Result<std::vector<TaskView>> tasks(JobId job, const TaskQuery& query) = 0;
  virtual Result<std::optional<TaskRecord>> task(JobId job, const std::string& name) = 0;
  virtual Result<std::vector<AttemptRecord>> attempts(const TaskRef& task) = 0;
  // Of several tasks, each with its own, in the order they are asked for.
  virtual Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) = 0;
  // Those of a whole job in the order of its tasks, from past `after`.
  virtual Result<std::vector<AttemptRecord>> job_attempts(JobId job, const std::optional<AttemptKey>& after,
                                                          std::uint32_t limit) = 0;

  // -- events, pools, folders, datastores, secrets
  virtual Result<std::vector<EventRecord>> events(const EventQuery& query) = 0;
  // Those that were deleted and whose names no pool has since, the last deleted first.
  virtual Result<std::vector<PoolRecord>> deleted_pools(const std::string& workspace) = 0;
  // The last `limit` lines, oldest first.
  virtual Result<std::vector<PoolHistoryEntry>> pool_history(const std::string& workspace,
                                                             const std::string& pool,
                                                             std::uint32_t limit) = 0;
  virtual Result<std::optional<FolderRecord>> folder(const std::string& workspace,
                                                     const std::string& path) = 0;
  // Those whose path begins with `prefix`, in order.
  virtual Result<std::vector<FolderRecord>> folders(const std::string& workspace,
                                                    const std::string& prefix) = 0;
  virtual Result<std::optional<DatastoreRecord>> datastore(const std::string& workspace,
                                                           const std::string& name) = 0;
  virtual Result<std::vector<DatastoreRecord>> datastores(const std::string& workspace) = 0;
  virtual Result<std::vector<SecretRecord>> secrets(const std::string& workspace) = 0;  // in order

  // -- users
  virtual Result<std::vector<UserRecord>> users() = 0;  // by name
  virtual Result<std::optional<UserRecord>> user(const std::string& name) = 0;
  virtual Result<std::vector<MemberRecord>> members() = 0;  // of all workspaces, in their order
};

}  // namespace slipway::control
