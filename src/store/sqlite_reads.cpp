// Reading jobs, events, histories, folders, datastores, secrets and users.
#include "store/sqlite_reads.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/rows.h"
#include "wire/job_file.h"
#include "wire/pool.h"

namespace slipway::store {

SqliteReads::~SqliteReads() {
  if (is_reading_) end();
}

Result<void> SqliteReads::begin() {
  if (gate_) gate_->enter();
  auto begun = db_.execute("BEGIN");
  is_reading_ = begun.has_value();
  if (!begun && gate_) gate_->leave();
  return begun;
}

void SqliteReads::end() {
  is_reading_ = false;
  (void)db_.execute("COMMIT");  // nothing was written: there is nothing that could fail to be kept
  if (gate_) gate_->leave();
}

Result<UsageMeter> SqliteReads::job_usage(JobId job) {
  Statement ask = db_.prepare("SELECT usage FROM job_usage WHERE job = ?");
  auto usage =
      first_row<std::string>(ask.bind(job.value()), [](const Statement& row) { return row.text(0); });
  if (!usage) return fail(usage.error());
  return *usage ? UsageMeter::parse(**usage).value_or(UsageMeter{}) : UsageMeter{};
}

Result<JobSpec> SqliteReads::job_spec(JobId id, std::uint32_t tasks_max) {
  auto record = job(id);
  if (!record) return fail(record.error());
  if (!*record) return fail(ErrorCode::not_found, fmt::format("there is no {}", to_string(id)));
  JobSpec spec;
  spec.name = (*record)->name;
  spec.pool = (*record)->pool;
  spec.priority = (*record)->priority;
  spec.max_parallel_tasks = (*record)->max_parallel_tasks;
  spec.max_nodes = (*record)->max_nodes;
  spec.source = (*record)->source;
  spec.tags = (*record)->tags;
  Statement head = db_.prepare("SELECT environment FROM jobs WHERE id = ?");
  auto environment =
      first_row<std::string>(head.bind(id.value()), [](const Statement& row) { return row.text(0); });
  if (!environment) return fail(environment.error());
  spec.environment = unpack_environment(environment->value_or(""));
  Statement ask = db_.prepare("SELECT spec FROM task_specs WHERE job = ? ORDER BY grp LIMIT ?");
  auto tasks = rows<std::string>(ask.bind(id.value()).bind(tasks_max),
                                 [](const Statement& row) { return row.text(0); });
  if (!tasks) return fail(tasks.error());
  for (const std::string& text : *tasks) {
    auto task = wire::parse_task_spec(text);
    if (!task) return fail(task.error());
    spec.tasks.push_back(std::move(*task));
  }
  return spec;
}

Result<std::optional<JobRecord>> SqliteReads::job(JobId id) {
  Statement ask = db_.prepare("SELECT * FROM jobs WHERE id = ?");
  return first_row<JobRecord>(ask.bind(id.value()), job_from);
}

Result<std::optional<JobId>> SqliteReads::job_by_key(const std::string& workspace, const std::string& key) {
  Statement ask = db_.prepare("SELECT id FROM jobs WHERE workspace = ? AND idempotency_key = ?");
  return first_row<JobId>(ask.bind(workspace).bind(key),
                          [](const Statement& row) { return JobId{large(row, 0)}; });
}

Result<std::vector<JobRecord>> SqliteReads::jobs(const control::JobQuery& query) {
  const bool is_tagged = !query.tags.empty();
  std::string sql = is_tagged ? "SELECT jobs.* FROM job_tags t CROSS JOIN jobs ON jobs.id = t.job WHERE "
                                "t.name = ? AND t.value = ?"
                    : query.name.empty() ? "SELECT * FROM jobs WHERE true"
                                         : "SELECT * FROM jobs INDEXED BY jobs_by_name WHERE true";
  for (std::size_t i = 1; i < query.tags.size(); ++i)
    sql += " AND EXISTS (SELECT 1 FROM job_tags o WHERE o.name = ? AND o.value = ? AND o.job = t.job)";
  sql += " AND workspace = ?";
  if (query.state) sql += " AND state = ?";
  if (!query.name.empty()) sql += " AND jobs.name = ?";
  if (!query.pool.empty()) sql += " AND pool = ?";
  if (!query.user.empty()) sql += " AND submitted_by = ?";
  const char* const id = is_tagged ? "t.job" : "id";
  sql += fmt::format(" AND {0} {1} ? ORDER BY {0} {2} LIMIT ?", id, query.after ? ">" : "<",
                     query.after ? "ASC" : "DESC");
  Statement ask = db_.prepare(job_queries_.insert(std::move(sql)).first->c_str());
  for (const auto& [name, value] : query.tags) ask.bind(name).bind(value);
  ask.bind(query.workspace);
  if (query.state) ask.bind(static_cast<int>(*query.state));
  for (const std::string* text : {&query.name, &query.pool, &query.user})
    if (!text->empty()) ask.bind(*text);
  const std::int64_t newest = query.before ? static_cast<std::int64_t>(query.before->value()) : INT64_MAX;
  ask.bind(query.after ? static_cast<std::int64_t>(query.after->value()) : newest).bind(query.limit);
  return rows<JobRecord>(ask, job_from);
}

Result<std::optional<JobRecord>> SqliteReads::job_by_tag(const std::string& workspace,
                                                         const std::string& name, const std::string& value) {
  Statement ask = db_.prepare(
      "SELECT jobs.* FROM job_tags CROSS JOIN jobs ON jobs.id = job_tags.job WHERE job_tags.name = ? AND "
      "job_tags.value = ? AND jobs.workspace = ? ORDER BY job_tags.job DESC LIMIT 1");
  return first_row<JobRecord>(ask.bind(name).bind(value).bind(workspace), job_from);
}

Result<std::vector<std::string>> SqliteReads::sources() {
  Statement ask = db_.prepare("SELECT DISTINCT source FROM jobs WHERE source <> ''");
  return rows<std::string>(ask, [](const Statement& row) { return row.text(0); });
}

Result<std::vector<std::pair<JobState, std::uint64_t>>> SqliteReads::job_counts(
    const std::string& workspace) {
  Statement ask = db_.prepare("SELECT state, count(*) FROM jobs WHERE workspace = ? GROUP BY state");
  return rows<std::pair<JobState, std::uint64_t>>(ask.bind(workspace), [](const Statement& row) {
    return std::pair(static_cast<JobState>(row.integer(0)), large(row, 1));
  });
}

// The job stands there only where it is asked for, so that its index is used. Statements are kept by the
// address of their text.
static const char* event_query(bool of_job, bool is_newest) {
  static const auto text = [](bool job, bool newest) {
    return fmt::format(
        "SELECT * FROM events WHERE workspace = ?1 AND id > ?2 AND (?4 = '' OR pool = ?4) AND (?5 = '' OR "
        "kind = ?5 OR substr(kind, 1, length(?5) + 1) = ?5 || '.') AND time >= ?6{} ORDER BY id{} LIMIT ?3",
        job ? " AND job = ?7" : "", newest ? " DESC" : "");
  };
  static const std::string texts[2][2] = {{text(false, false), text(false, true)},
                                          {text(true, false), text(true, true)}};
  return texts[of_job][is_newest].c_str();
}

Result<std::vector<EventRecord>> SqliteReads::events(const control::EventQuery& query) {
  Statement ask = db_.prepare(event_query(query.job.has_value(), query.is_newest));
  ask.bind(query.workspace).bind(query.after).bind(query.limit).bind(query.pool).bind(query.kind);
  ask.bind(query.since.value_or(TimePoint{}).time_since_epoch().count());
  if (query.job) ask.bind(query.job->value());
  auto events = rows<EventRecord>(ask, event_from);
  if (events && query.is_newest) std::reverse(events->begin(), events->end());
  return events;
}

Result<std::vector<PoolRecord>> SqliteReads::deleted_pools(const std::string& workspace) {
  Statement ask = db_.prepare(
      "SELECT workspace, name, provisioner, nodes, cores, memory, gpus, overcommit, lost_after, created_at, "
      "settings FROM deleted_pools d WHERE workspace = ? AND NOT EXISTS (SELECT 1 FROM pools p WHERE "
      "p.workspace = d.workspace AND p.name = d.name) ORDER BY id DESC");
  std::optional<Error> damaged;
  auto pools =
      rows<PoolRecord>(ask.bind(workspace), [&](const Statement& row) { return pool_from(row, damaged); });
  if (damaged) return fail(*damaged);
  return pools;
}

Result<std::vector<PoolHistoryEntry>> SqliteReads::pool_history(const std::string& workspace,
                                                                const std::string& pool,
                                                                std::uint32_t limit) {
  Statement ask = db_.prepare(
      "SELECT moment FROM (SELECT id, moment FROM pool_history WHERE workspace = ? AND pool = ? "
      "ORDER BY id DESC LIMIT ?) ORDER BY id");
  std::optional<Error> damaged;
  auto entries =
      rows<PoolHistoryEntry>(ask.bind(workspace).bind(pool).bind(limit), [&](const Statement& row) {
        auto entry = wire::parse_pool_history_entry(row.text(0));
        if (!entry) {
          damaged = entry.error();
          return PoolHistoryEntry{};
        }
        entry->workspace = workspace;
        entry->pool = pool;
        return *entry;
      });
  if (damaged) return fail(*damaged);
  return entries;
}

Result<std::optional<FolderRecord>> SqliteReads::folder(const std::string& workspace,
                                                        const std::string& path) {
  Statement ask = db_.prepare("SELECT * FROM folders WHERE workspace = ? AND path = ?");
  return first_row<FolderRecord>(ask.bind(workspace).bind(path), folder_from);
}

Result<std::vector<FolderRecord>> SqliteReads::folders(const std::string& workspace,
                                                       const std::string& prefix) {
  const std::string past = prefix + "\xff";  // above every text that begins so: no UTF-8 has this byte
  Statement ask =
      db_.prepare("SELECT * FROM folders WHERE workspace = ? AND path >= ? AND path < ? ORDER BY path");
  return rows<FolderRecord>(ask.bind(workspace).bind(prefix).bind(past), folder_from);
}

Result<std::optional<DatastoreRecord>> SqliteReads::datastore(const std::string& workspace,
                                                              const std::string& name) {
  Statement ask = db_.prepare("SELECT * FROM datastores WHERE workspace = ? AND name = ?");
  return first_row<DatastoreRecord>(ask.bind(workspace).bind(name), datastore_from);
}

Result<std::vector<DatastoreRecord>> SqliteReads::datastores(const std::string& workspace) {
  Statement ask = db_.prepare("SELECT * FROM datastores WHERE workspace = ? ORDER BY name");
  return rows<DatastoreRecord>(ask.bind(workspace), datastore_from);
}

Result<std::vector<SecretRecord>> SqliteReads::secrets(const std::string& workspace) {
  Statement ask = db_.prepare("SELECT * FROM secrets WHERE workspace = ? ORDER BY name, user");
  return rows<SecretRecord>(ask.bind(workspace), secret_from);
}

Result<std::vector<UserRecord>> SqliteReads::users() {
  Statement ask = db_.prepare("SELECT * FROM users ORDER BY name");
  return rows<UserRecord>(ask, user_from);
}

Result<std::optional<UserRecord>> SqliteReads::user(const std::string& name) {
  Statement ask = db_.prepare("SELECT * FROM users WHERE name = ?");
  return first_row<UserRecord>(ask.bind(name), user_from);
}

Result<std::vector<MemberRecord>> SqliteReads::members() {
  Statement ask = db_.prepare("SELECT * FROM members ORDER BY workspace, user");
  return rows<MemberRecord>(ask, member_from);
}

}  // namespace slipway::store
