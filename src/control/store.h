#pragma once
// The Store port: where the control plane saves its state. Used by the control thread only;
// other threads read through a ReadStore each.
//
// A turn's changes are saved together or not at all, and save() returns only when they would survive a power
// cut. Lookups see everything saved before.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/read_store.h"
#include "control/settings.h"
#include "control/turn_history.h"
#include "domain/protocol.h"
#include "domain/quota.h"
#include "domain/records.h"
#include "domain/usage.h"
#include "domain/user.h"

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
  std::vector<PoolHistoryEntry> pool_history;
  std::vector<ShareRecord> shares;
  std::vector<PoolUsageRecord> pool_usage;
  std::vector<std::pair<JobId, UsageMeter>> job_usage;
  std::vector<PoolSample> samples;  // one that begins when a saved one did replaces it
  std::vector<FolderRecord> folders;
  std::vector<std::pair<std::string, std::string>> folders_removed;  // workspace, path
  std::vector<DatastoreRecord> datastores;
  std::vector<std::pair<std::string, std::string>> datastores_removed;  // workspace, name
  std::vector<SecretRecord> secrets;
  std::vector<SecretKey> secrets_removed;
  std::vector<UserRecord> users;
  std::vector<std::string> users_removed;
  std::vector<MemberRecord> members;
  std::vector<std::pair<std::string, std::string>> members_removed;  // workspace, user
  std::vector<QuotaRecord> quotas;                                   // one without limits takes its row away
  std::vector<DiskUse> disk;                                         // one of no bytes takes its row away
  std::vector<std::string> removals;       // folders under the data folder that are to be deleted
  std::vector<std::string> removals_done;  // and that are
  std::vector<std::pair<NodeId, std::string>> node_removals, node_removals_done;  // of nodes, likewise

  bool empty() const {
    return pools.empty() && pools_removed.empty() && nodes.empty() && nodes_removed.empty() &&
           jobs_new.empty() && jobs.empty() && jobs_removed.empty() && groups.empty() && tasks.empty() &&
           attempts.empty() && tokens.empty() && tokens_removed.empty() && events.empty() &&
           pool_history.empty() && shares.empty() && pool_usage.empty() && job_usage.empty() &&
           samples.empty() && folders.empty() && folders_removed.empty() && datastores.empty() &&
           datastores_removed.empty() && secrets.empty() && secrets_removed.empty() && users.empty() &&
           users_removed.empty() && members.empty() && members_removed.empty() && quotas.empty() &&
           disk.empty() && removals.empty() && removals_done.empty() && node_removals.empty() &&
           node_removals_done.empty();
  }
};

struct Kept {  // what is dropped when it is older, or when there are more
  static constexpr Duration samples{24 * 3'600'000'000ll};
  static constexpr std::uint32_t pool_history = 5'000;  // of a pool
  static constexpr std::uint32_t deleted_pools = 1'000;
};

// What a controller needs to continue: everything that has not ended.
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
  std::vector<SecretRecord> secrets;
  std::vector<UserRecord> users;
  std::vector<MemberRecord> members;
  std::vector<QuotaRecord> quotas;
  std::vector<DiskUse> disk;          // sums: of all things of a user, or of nobody, in a workspace
  std::vector<std::string> removals;  // of folders that are not over
  std::vector<std::pair<NodeId, std::string>> node_removals;
  SavedTurn saved;             // the last one
  TurnHistory turns;           // those before it
  std::uint64_t job_last = 0;  // highest ids ever given
  std::uint64_t node_last = 0;
  std::uint64_t event_last = 0;
  TimePoint recorded_until{};  // the time of the last event
};

class Store {
 public:
  virtual ~Store() = default;

  [[nodiscard]] virtual Result<void> save(const Changes& changes) = 0;
  [[nodiscard]] virtual Result<Loaded> load() = 0;
  // Whether a small write would succeed now.
  [[nodiscard]] virtual Result<void> probe() = 0;
  // Whether what was saved is still where it can be found again; costs next to nothing.
  [[nodiscard]] virtual Result<void> look() { return {}; }
  virtual SavedTurn last_turn() const { return {}; }
  // Seals the secrets of stored jobs anew: `seal` gets a sealed value and what it was sealed for. Between two
  // turns.
  using SealAnew = std::function<std::string(const std::string& sealed, const std::string& purpose)>;
  [[nodiscard]] virtual Result<void> seal_specs_anew(const SealAnew&) { return {}; }
  // A turn that nodes know of is not here. Who opens the store again is refused, until he accepts it.
  virtual void note_loss(std::uint64_t /*turn*/) {}
  // Deletes a bounded part of what removed jobs left; false: there was nothing. Between two turns.
  [[nodiscard]] virtual Result<bool> remove_some() { return false; }

  // As load() gives it, of a job that may have ended.
  virtual Result<LiveJob> live_job(const JobRecord& job) = 0;
  // Tasks with a record of their own that failed, were cancelled or skipped, in order; at most `limit`.
  virtual Result<std::vector<TaskRecord>> unsuccessful_tasks(JobId job, std::uint32_t limit) = 0;

  // Jobs that have ended and are kept no longer, some of each workspace, those first that ended first. At
  // most `limit`; none of them is pinned.
  virtual Result<std::vector<JobRecord>> expired_jobs(const Retention& retain, TimePoint now,
                                                      std::uint32_t limit) = 0;

  // Things that have ended, or are too large to keep in memory, looked up within a turn.
  virtual Result<TaskSpec> task_spec(JobId job, std::uint32_t group) = 0;
  virtual Result<std::optional<JobRecord>> job(JobId job) = 0;
  virtual Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) = 0;
  virtual Result<std::vector<JobRecord>> jobs(const JobQuery& query) = 0;
  // Of several tasks, each with its own, in the order they are asked for.
  virtual Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) = 0;
  virtual Result<UsageMeter> job_usage(JobId job) = 0;  // nothing spent where nothing was saved
  // What was saved last of it, or 0.
  virtual Result<std::uint64_t> disk_of(const QuotaKey& key, const std::string& thing) = 0;

  // For one other thread; used no longer than this store. Thread-safe.
  virtual Result<std::shared_ptr<ReadStore>> open_reader() = 0;
};

}  // namespace slipway::control
