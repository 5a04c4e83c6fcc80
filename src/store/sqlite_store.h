#pragma once
// Private to store/: the SQLite home of the Store port.
#include <memory>
#include <string>
#include <vector>

#include "control/store.h"
#include "store/database.h"

namespace slipway::store {

class SqliteStore final : public control::Store {
 public:
  explicit SqliteStore(std::unique_ptr<Database> db) : db_(std::move(db)) {}

  Result<void> save(const control::Changes& changes) override;
  Result<control::Loaded> load() override;
  Result<void> probe() override;
  Result<TaskSpec> task_spec(JobId job, std::uint32_t group) override;
  Result<JobSpec> job_spec(JobId job, std::uint32_t tasks_max) override;
  Result<std::optional<JobRecord>> job(JobId job) override;
  Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) override;
  Result<std::vector<JobRecord>> jobs(const control::JobQuery& query) override;
  Result<std::vector<TaskRecord>> tasks(JobId job, const control::TaskQuery& query) override;
  Result<std::optional<TaskRecord>> task(JobId job, const std::string& name) override;
  Result<std::vector<AttemptRecord>> attempts(const TaskRef& task) override;
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) override;
  Result<std::vector<AttemptRecord>> job_attempts(JobId job, const std::optional<AttemptKey>& after,
                                                  std::uint32_t limit) override;
  Result<std::vector<EventRecord>> events(const control::EventQuery& query) override;
  Result<std::vector<PoolMoment>> pool_history(const std::string& workspace, const std::string& pool,
                                               std::uint32_t limit) override;
  Result<UsageMeter> job_usage(JobId job) override;
  Result<std::vector<std::string>> sources() override;
  Result<std::vector<std::pair<JobState, std::uint64_t>>> job_counts(const std::string& workspace) override;

 private:
  Result<void> save_pools_and_nodes(const control::Changes& changes);
  Result<void> save_pool_past(const control::Changes& changes);
  Result<void> save_places(const control::Changes& changes);
  Result<void> save_jobs(const control::Changes& changes);
  Result<void> save_tasks(const control::Changes& changes);
  Result<void> save_events_and_tokens(const control::Changes& changes);
  Result<void> save_last_id(const char* kind, std::uint64_t id);
  Result<void> remove_job(JobId job);
  Result<control::LiveJob> load_live_job(const JobRecord& job);
  Result<std::vector<GroupRecord>> group_records(JobId job);
  Result<std::vector<TaskRecord>> recorded(JobId job, std::uint32_t group, std::uint32_t from,
                                           std::optional<TaskState> state, std::uint32_t limit);

  std::unique_ptr<Database> db_;
};

}  // namespace slipway::store
