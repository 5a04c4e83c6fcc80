// Jobs are deleted in bounded steps: what goes at once is the job itself, so that nothing finds the rest.
#include <array>

#include "store/rows.h"
#include "store/sqlite_store.h"

namespace slipway::store {
namespace {

constexpr std::int64_t rows_at_once = 2'000;

}  // namespace

// Up to `rows_at_once` rows; true: there are more.
Result<bool> SqliteStore::remove_rows(JobId job) {
  constexpr std::array statements = {
      "DELETE FROM attempts WHERE (job, grp, idx, attempt) IN "
      "(SELECT job, grp, idx, attempt FROM attempts WHERE job = ? LIMIT ?)",
      "DELETE FROM tasks WHERE (job, grp, idx) IN (SELECT job, grp, idx FROM tasks WHERE job = ? LIMIT ?)",
      "DELETE FROM task_groups WHERE (job, grp) IN (SELECT job, grp FROM task_groups WHERE job = ? LIMIT ?)",
      "DELETE FROM task_specs WHERE (job, grp) IN (SELECT job, grp FROM task_specs WHERE job = ? LIMIT ?)"};
  std::int64_t left = rows_at_once;
  for (const char* sql : statements) {
    Statement remove = db_->prepare(sql);
    if (auto done = remove.bind(job.value()).bind(left).run(); !done) return fail(done.error());
    left -= db_->changed_rows();
    if (left <= 0) return true;
  }
  return false;
}

Result<void> SqliteStore::remove_job(JobId job) {
  for (const char* sql : {"DELETE FROM job_usage WHERE job = ?", "DELETE FROM job_tags WHERE job = ?",
                          "DELETE FROM jobs WHERE id = ?"}) {
    Statement remove = db_->prepare(sql);
    if (auto done = remove.bind(job.value()).run(); !done) return done;
  }
  const auto has_more = remove_rows(job);
  if (!has_more) return fail(has_more.error());
  if (!*has_more) return {};
  Statement put = db_->prepare("INSERT OR IGNORE INTO jobs_removed VALUES (?)");
  return put.bind(job.value()).run();
}

Result<void> SqliteStore::save_removals(const control::Changes& changes) {
  for (const std::string& folder : changes.removals) {
    Statement put = db_->prepare("INSERT OR IGNORE INTO removals VALUES (?)");
    if (auto saved = put.bind(folder).run(); !saved) return saved;
  }
  for (const std::string& folder : changes.removals_done) {
    Statement remove = db_->prepare("DELETE FROM removals WHERE folder = ?");
    if (auto done = remove.bind(folder).run(); !done) return done;
  }
  for (const auto& [node, folder] : changes.node_removals) {
    Statement put = db_->prepare("INSERT OR IGNORE INTO node_removals VALUES (?,?)");
    if (auto saved = put.bind(node.value()).bind(folder).run(); !saved) return saved;
  }
  for (const auto& [node, folder] : changes.node_removals_done) {
    Statement remove = db_->prepare("DELETE FROM node_removals WHERE node = ? AND folder = ?");
    if (auto done = remove.bind(node.value()).bind(folder).run(); !done) return done;
  }
  for (const NodeId node : changes.nodes_removed) {
    Statement remove = db_->prepare("DELETE FROM node_removals WHERE node = ?");
    if (auto done = remove.bind(node.value()).run(); !done) return done;
  }
  return {};
}

Result<std::vector<JobRecord>> SqliteStore::expired_jobs(const control::Retention& retain, TimePoint now,
                                                         std::uint32_t limit) {
  const std::int64_t today = now.time_since_epoch().count();
  Statement own = db_->prepare(
      "SELECT * FROM jobs INDEXED BY jobs_by_own_end WHERE ended_at IS NOT NULL AND pinned = 0 AND retain IS "
      "NOT NULL AND ended_at + retain <= ? ORDER BY ended_at + retain LIMIT ?");
  auto expired = rows<JobRecord>(own.bind(today).bind(limit), job_from);
  if (!expired || (!retain.usual && retain.workspaces.empty())) return expired;
  // From one workspace to the next, by the index.
  Statement ask = db_->prepare(
      "WITH RECURSIVE w(name) AS (SELECT min(workspace) FROM jobs UNION ALL SELECT (SELECT min(workspace) "
      "FROM jobs WHERE workspace > w.name) FROM w WHERE w.name IS NOT NULL) "
      "SELECT name FROM w WHERE name IS NOT NULL");
  const auto workspaces = rows<std::string>(ask, [](const Statement& row) { return row.text(0); });
  if (!workspaces) return fail(workspaces.error());
  for (const std::string& workspace : *workspaces) {
    const auto kept = retain.of(workspace);
    if (!kept || expired->size() >= limit) continue;
    Statement usual = db_->prepare(
        "SELECT * FROM jobs INDEXED BY jobs_by_end WHERE workspace = ? AND ended_at IS NOT NULL AND pinned = "
        "0 AND retain IS NULL AND ended_at <= ? ORDER BY ended_at LIMIT ?");
    auto more = rows<JobRecord>(usual.bind(workspace)
                                    .bind(today - kept->count())
                                    .bind(static_cast<std::uint32_t>(limit - expired->size())),
                                job_from);
    if (!more) return more;
    expired->insert(expired->end(), more->begin(), more->end());
  }
  return expired;
}

Result<bool> SqliteStore::remove_some() {
  std::optional<JobId> job;
  {
    Statement ask = db_->prepare("SELECT min(job) FROM jobs_removed");
    auto row = ask.step();
    if (!row) return fail(row.error());
    if (*row && !ask.is_null(0)) job = JobId{static_cast<std::uint64_t>(ask.integer(0))};
  }
  if (!job) return false;
  if (auto there = look(); !there) return fail(there.error());
  Transaction transaction(*db_);
  if (auto begun = transaction.begin(); !begun) return fail(begun.error());
  auto has_more = remove_rows(*job);
  if (!has_more) return has_more;
  if (!*has_more) {
    Statement remove = db_->prepare("DELETE FROM jobs_removed WHERE job = ?");
    if (auto done = remove.bind(job->value()).run(); !done) return fail(done.error());
  }
  if (auto committed = transaction.commit(); !committed) return fail(committed.error());
  return true;
}

}  // namespace slipway::store
