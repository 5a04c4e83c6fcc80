#pragma once
// The Store port: where the control plane writes down what it believes.
//
// A turn's changes are saved together or not at all, and save() returns only when they would survive a power
// cut. Reads see everything saved before.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "domain/records.h"
#include "domain/usage.h"

namespace slipway::control {

struct NewJob {
  JobRecord job;
  JobSpec spec;
  std::string idempotency_key;  // empty: none
};

struct Changes {
  std::vector<PoolRecord> pools;
  std::vector<std::pair<std::string, std::string>> pools_removed;  // workspace, name
  std::vector<NodeRecord> nodes;
  std::vector<NodeId> nodes_removed;
  std::vector<NewJob> jobs_new;
  std::vector<JobRecord> jobs;
  std::vector<JobId> jobs_removed;
  std::vector<GroupRecord> groups;
  std::vector<TaskRecord> tasks;
  std::vector<AttemptRecord> attempts;
  std::vector<TokenRecord> tokens;
  std::vector<std::string> tokens_removed;
  std::vector<EventRecord> events;
  std::vector<PoolMoment> moments;
  std::vector<ShareRecord> shares;
  std::vector<PoolUsageRecord> pool_usage;
  std::vector<std::pair<JobId, UsageMeter>> job_usage;
  std::vector<PoolSample> samples;  // one that begins when a saved one did replaces it
  std::vector<FolderRecord> folders;
  std::vector<std::pair<std::string, std::string>> folders_removed;  // workspace, path
  std::vector<DatastoreRecord> datastores;
  std::vector<std::pair<std::string, std::string>> datastores_removed;  // workspace, name

  bool empty() const {
    return pools.empty() && pools_removed.empty() && nodes.empty() && nodes_removed.empty() &&
           jobs_new.empty() && jobs.empty() && jobs_removed.empty() && groups.empty() && tasks.empty() &&
           attempts.empty() && tokens.empty() && tokens_removed.empty() && events.empty() &&
           moments.empty() && shares.empty() && pool_usage.empty() && job_usage.empty() && samples.empty() &&
           folders.empty() && folders_removed.empty() && datastores.empty() && datastores_removed.empty();
  }
};

struct Kept {  // what is dropped when it is older, or when there are more
  static constexpr Duration samples{24 * 3'600'000'000ll};
  static constexpr std::uint32_t moments = 5'000;  // of a pool
};

// What a controller needs to go on: everything that has not ended.
struct LiveJob {
  JobRecord job;
  std::vector<TaskSpec> tasks;          // in order; commands and environments left empty
  std::vector<GroupRecord> groups;      // only those that have moved
  std::vector<TaskRecord> live;         // placed, or waiting for another try
  std::vector<AttemptRecord> attempts;  // the last one of each of those
  UsageMeter usage;
};
struct Loaded {
  std::vector<PoolRecord> pools;
  std::vector<NodeRecord> nodes;
  std::vector<LiveJob> jobs;
  std::vector<TokenRecord> tokens;
  std::vector<PoolSample> samples;  // oldest first
  std::vector<ShareRecord> shares;
  std::vector<PoolUsageRecord> pool_usage;
  std::vector<FolderRecord> folders;
  std::vector<DatastoreRecord> datastores;
  std::uint64_t job_last = 0;  // highest ids ever given
  std::uint64_t node_last = 0;
  std::uint64_t event_last = 0;
};

struct JobQuery {
  std::string workspace;
  std::optional<JobState> state;
  std::string name;             // exact; empty: any
  std::optional<JobId> before;  // newest first, from below this one
  std::uint32_t limit = 100;
  std::pair<std::string, std::string> tag = {};  // only jobs with this one; oldest first. Empty: any
  std::optional<JobId> after = {};               // with a tag: from above this one
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
};

class Store {
 public:
  virtual ~Store() = default;

  [[nodiscard]] virtual Result<void> save(const Changes& changes) = 0;
  [[nodiscard]] virtual Result<Loaded> load() = 0;
  // Whether a small write would succeed now.
  [[nodiscard]] virtual Result<void> probe() = 0;

  virtual Result<TaskSpec> task_spec(JobId job, std::uint32_t group) = 0;
  // As it was submitted; of its tasks only the first `tasks_max`.
  virtual Result<JobSpec> job_spec(JobId job, std::uint32_t tasks_max) = 0;
  virtual Result<std::optional<JobRecord>> job(JobId job) = 0;
  virtual Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) = 0;
  virtual Result<std::vector<JobRecord>> jobs(const JobQuery& query) = 0;
  // Every task in the order of the list, those without a row of their own included.
  virtual Result<std::vector<TaskRecord>> tasks(JobId job, const TaskQuery& query) = 0;
  virtual Result<std::optional<TaskRecord>> task(JobId job, const std::string& name) = 0;
  virtual Result<std::vector<AttemptRecord>> attempts(const TaskRef& task) = 0;
  // Of several tasks, each with its own, in the order they are asked for.
  virtual Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) {
    std::vector<std::vector<AttemptRecord>> all;
    all.reserve(tasks.size());
    for (const TaskRef& task : tasks) {
      auto found = attempts(task);
      if (!found) return fail(found.error());
      all.push_back(std::move(*found));
    }
    return all;
  }
  // Those of a whole job in the order of its tasks, from past `after`.
  virtual Result<std::vector<AttemptRecord>> job_attempts(JobId job, const std::optional<AttemptKey>& after,
                                                          std::uint32_t limit) = 0;
  virtual Result<std::vector<EventRecord>> events(const EventQuery& query) = 0;
  // The last `limit` lines, oldest first.
  virtual Result<std::vector<PoolMoment>> pool_history(const std::string& workspace, const std::string& pool,
                                                       std::uint32_t limit) = 0;
  virtual Result<UsageMeter> job_usage(JobId job) = 0;     // nothing spent where nothing was written down
  virtual Result<std::vector<std::string>> sources() = 0;  // manifests of all jobs on record
  virtual Result<std::vector<std::pair<JobState, std::uint64_t>>> job_counts(
      const std::string& workspace) = 0;
};

}  // namespace slipway::control
