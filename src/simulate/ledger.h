#pragma once
// The store of a simulation. It keeps what the controller reads back, counts what is over, and forgets it: a
// million tasks leave a few numbers.
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/store.h"
#include "simulate/figures.h"

namespace slipway::simulate {

class Ledger final : public control::Store {
 public:
  // When every task of an entry of a job's list has succeeded: what depends on it may be ready.
  std::function<void(JobId, std::uint32_t group)> on_group_done;
  std::function<void(const JobRecord&)> on_job_end;
  std::function<void(const NodeRecord&)> on_node;  // new, or changed
  std::function<void(NodeId)> on_node_gone;

  Account& account(const std::string& pool, const std::string& user) { return accounts_[{pool, user}]; }
  const Accounts& accounts() const { return accounts_; }
  // Of a job that has not ended.
  const JobRecord* live_job(JobId job) const;
  const std::map<JobId, JobRecord> unfinished() const;

  Result<void> save(const control::Changes& changes) override;
  Result<control::Loaded> load() override { return control::Loaded{}; }
  Result<void> probe() override { return {}; }
  Result<TaskSpec> task_spec(JobId job, std::uint32_t group) override;

  // Nobody asks a simulation for these: there is no API in front of it.
  Result<std::optional<JobRecord>> job(JobId) override { return std::nullopt; }
  Result<std::optional<JobId>> job_by_key(const std::string&, const std::string&) override {
    return std::nullopt;
  }
  Result<std::vector<JobRecord>> jobs(const control::JobQuery&) override { return std::vector<JobRecord>(); }
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) override {
    return std::vector<std::vector<AttemptRecord>>(tasks.size());
  }
  // Nothing runs again in a simulation, and nothing is deleted.
  Result<control::LiveJob> live_job(const JobRecord&) override {
    return fail(ErrorCode::not_found, "simulated jobs do not run again");
  }
  Result<std::vector<TaskRecord>> unsuccessful_tasks(JobId, std::uint32_t) override {
    return std::vector<TaskRecord>{};
  }
  Result<std::vector<JobRecord>> expired_jobs(const control::Retention&, TimePoint, std::uint32_t) override {
    return std::vector<JobRecord>{};
  }
  Result<UsageMeter> job_usage(JobId) override { return UsageMeter{}; }
  Result<std::uint64_t> disk_of(const QuotaKey&, const std::string&) override { return 0u; }
  Result<std::shared_ptr<control::ReadStore>> open_reader() override {
    return fail(ErrorCode::unavailable, "a simulation keeps nothing to read");
  }

 private:
  struct LiveJob {
    JobRecord record;
    std::vector<TaskSpec> tasks;
  };
  void count(const AttemptRecord& attempt);
  void count(const TaskRecord& task);
  void end(const JobRecord& job);

  std::unordered_map<JobId, LiveJob> jobs_;
  Accounts accounts_;
};

}  // namespace slipway::simulate
