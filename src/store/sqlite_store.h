#pragma once
// Private to store/: the SQLite home of the Store port.
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "control/store.h"
#include "store/database.h"
#include "store/mark.h"
#include "store/read_gate.h"
#include "store/sqlite_reads.h"

namespace slipway::store {

class SqliteStore final : public control::Store {
 public:
  SqliteStore(std::unique_ptr<Database> db, std::string path, const char* vfs)
      : db_(std::move(db)), path_(std::move(path)), vfs_(vfs), reads_(*db_), own_run_(random_hex(8)) {}

  Result<void> save(const control::Changes& changes) override;
  Result<control::Loaded> load() override;
  Result<void> probe() override;
  Result<void> look() override;
  SavedTurn last_turn() const override { return {mark_.service, mark_.turn, {}, run_}; }
  void note_loss(std::uint64_t turn) override;
  // Of a store just opened.
  Result<void> take_identity(const std::optional<Mark>& known, const std::optional<Mark>& lost_before);
  Result<bool> remove_some() override;
  Result<void> seal_specs_anew(const SealAnew& seal) override;  // (sqlite_secrets.cpp)
  Result<TaskSpec> task_spec(JobId job, std::uint32_t group) override { return reads_.task_spec(job, group); }
  Result<std::optional<JobRecord>> job(JobId job) override { return reads_.job(job); }
  Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) override {
    return reads_.job_by_key(workspace, key);
  }
  Result<std::vector<JobRecord>> jobs(const control::JobQuery& query) override { return reads_.jobs(query); }
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) override {
    return reads_.attempts_of(tasks);
  }
  Result<control::LiveJob> live_job(const JobRecord& job) override;
  Result<std::vector<TaskRecord>> unsuccessful_tasks(JobId job, std::uint32_t limit) override;
  Result<std::vector<JobRecord>> expired_jobs(const control::Retention& retain, TimePoint now,
                                              std::uint32_t limit) override;  // (sqlite_removals.cpp)
  Result<UsageMeter> job_usage(JobId job) override { return reads_.job_usage(job); }
  Result<std::uint64_t> disk_of(const QuotaKey& key, const std::string& thing) override;
  Result<std::shared_ptr<control::ReadStore>> open_reader() override;

 private:
  struct File {
    std::uint64_t inode = 0;  // 0: it is not there
    std::int64_t size = 0;    // neither file becomes smaller while a service uses it
  };
  struct Files {
    File database, log;
  };
  Files look_at_files() const;
  Result<void> save_identity(const std::optional<Mark>& lost_before);
  Result<void> save_turn();
  Result<control::TurnHistory> load_turns();
  void note_turn(const control::Changes& changes);
  Result<void> save_pools_and_nodes(const control::Changes& changes);
  Result<void> save_pool_past(const control::Changes& changes);
  Result<void> save_places(const control::Changes& changes);
  Result<void> save_quotas(const control::Changes& changes);  // (sqlite_quotas.cpp)
  Result<std::vector<QuotaRecord>> load_quotas();
  Result<void> save_disk_use(const control::Changes& changes);
  Result<std::vector<DiskUse>> load_disk_use();
  Result<void> save_secrets(const control::Changes& changes);  // (sqlite_secrets.cpp)
  Result<void> save_jobs(const control::Changes& changes);
  Result<void> save_tasks(const control::Changes& changes);
  Result<void> save_events_and_tokens(const control::Changes& changes);
  Result<void> save_users(const control::Changes& changes);
  Result<void> save_last_id(const char* kind, std::uint64_t id);
  Result<void> remove_job(JobId job);
  Result<bool> remove_rows(JobId job);
  Result<void> save_removals(const control::Changes& changes);
  Result<std::vector<GroupRecord>> group_records(JobId job);
  Result<void> save_in_transaction(const control::Changes& changes);
  void shorten_log();

  std::unique_ptr<Database> db_;
  std::string path_;
  const char* vfs_;
  SqliteReads reads_;  // on the writer's own connection
  Mark mark_;          // as of the last turn that was saved
  std::string run_;    // that saved it: this one's from its first turn on
  const std::string own_run_;
  MarkFile mark_file_ = MarkFile::none();
  Files files_;
  std::shared_ptr<ReadGate> gate_ = std::make_shared<ReadGate>();
  int log_pages_retry_ = 0;  // the log is not shortened again before it has grown to this
};

}  // namespace slipway::store
