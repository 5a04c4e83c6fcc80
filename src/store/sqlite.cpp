// The writing half of the SQLite store.
#include "store/sqlite.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "store/sqlite_store.h"
#include "wire/job_file.h"
#include "wire/pool.h"

namespace slipway::store {
namespace {

constexpr std::uint64_t events_kept = 1'000'000;
constexpr std::uint64_t events_removed_at_once = 1'000;
constexpr int log_pages_max = 8'000;            // 32 MiB; as a rule it begins anew at a quarter of this
constexpr std::size_t tag_indexed_max = 1'000;  // jobs are not looked up by longer ones

std::int64_t micros(TimePoint time) { return time.time_since_epoch().count(); }
std::optional<std::int64_t> micros(const std::optional<TimePoint>& time) {
  return time ? std::optional(micros(*time)) : std::nullopt;
}
template <class Enum>
int number(Enum value) {
  return static_cast<int>(value);
}

// Names hold no line ends and variables no '=' in their names; values are written with their length.
std::string pack(const Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) text += fmt::format("{}={}:{}", name, value.size(), value);
  return text;
}

std::string pack(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

// "3=lab-1/0,1 4=lab-2/": node ids, names and GPU indices; names are plain characters.
std::string pack_nodes(const AttemptRecord& attempt) {
  std::string text;
  for (const AttemptNode& node : attempt.nodes)
    text += fmt::format("{}{}={}/{}", text.empty() ? "" : " ", node.id.value(), node.name,
                        fmt::join(node.gpus, ","));
  return text;
}

// "secret 31001,31002 -": of the nodes in order, "-" where one has none, "!" before those of one that has
// left; empty where nothing was looked for.
std::optional<std::string> pack_launch(const AttemptRecord& attempt) {
  if (!attempt.is_launched) return std::nullopt;
  std::string text = attempt.secret;
  const bool has_more = std::any_of(attempt.nodes.begin(), attempt.nodes.end(), [](const AttemptNode& node) {
    return node.has_left || !node.ports.empty();
  });
  if (!has_more) return text;
  for (const AttemptNode& node : attempt.nodes) {
    text += node.has_left ? " !" : " ";
    text += node.ports.empty() ? "-" : fmt::format("{}", fmt::join(node.ports, ","));
  }
  return text;
}

Statement& bind_counts(Statement& statement, const TaskCounts& c) {
  return statement.bind(c.waiting)
      .bind(c.queued)
      .bind(c.active)
      .bind(c.succeeded)
      .bind(c.failed)
      .bind(c.cancelled)
      .bind(c.skipped);
}

}  // namespace

Result<std::shared_ptr<control::ReadStore>> SqliteStore::open_reader() {
  auto db = Database::open_reader(path_, vfs_);
  if (!db) return fail(db.error());
  return std::make_shared<SqliteReads>(std::move(*db), gate_);
}

Result<void> SqliteStore::save(const control::Changes& changes) {
  if (auto there = look(); !there) return there;
  auto saved = save_in_transaction(changes);
  if (saved) note_turn(changes);
  if (saved && db_->log_pages() >= std::max(log_pages_max, log_pages_retry_)) shorten_log();
  return saved;
}

// Readers that overlap keep the log from beginning anew. They are held back, for a moment, only when it has
// become large.
void SqliteStore::shorten_log() {
  Result<void> done;
  const bool ran = gate_->close_for(20ms, [&] { done = db_->execute("PRAGMA wal_checkpoint(RESTART)"); });
  if (ran && !done) log::warning("store.checkpoint", {{"why", done.error().what}});
  log_pages_retry_ = ran && done ? 0 : db_->log_pages() + log_pages_max / 4;
}

Result<void> SqliteStore::save_in_transaction(const control::Changes& changes) {
  Transaction transaction(*db_);
  return transaction.begin()
      .and_then([&] { return save_pools_and_nodes(changes); })
      .and_then([&] { return save_pool_past(changes); })
      .and_then([&] { return save_places(changes); })
      .and_then([&] { return save_secrets(changes); })
      .and_then([&] { return save_quotas(changes); })
      .and_then([&] { return save_jobs(changes); })
      .and_then([&] { return save_tasks(changes); })
      .and_then([&] { return save_removals(changes); })
      .and_then([&] { return save_users(changes); })
      .and_then([&] { return save_turn(); })
      .and_then([&] { return save_events_and_tokens(changes); })
      .and_then([&] { return transaction.commit(); });
}

Result<void> SqliteStore::probe() {
  if (auto there = look(); !there) return there;
  // More than one page, so that a disk with a few bytes left does not count as free.
  Transaction transaction(*db_);
  return transaction.begin()
      .and_then([&] {
        const std::string page(64 << 10, ' ');
        Statement put = db_->prepare("INSERT OR REPLACE INTO last_ids (kind, id) VALUES (?, 0)");
        return put.bind("probe:" + page).run();
      })
      .and_then([&] { return db_->execute("DELETE FROM last_ids WHERE kind LIKE 'probe:%'"); })
      .and_then([&] { return transaction.commit(); });
}

Result<void> SqliteStore::save_last_id(const char* kind, std::uint64_t id) {
  Statement put = db_->prepare(
      "INSERT INTO last_ids (kind, id) VALUES (?, ?) ON CONFLICT DO UPDATE SET id = max(id, excluded.id)");
  return put.bind(std::string_view(kind)).bind(id).run();
}

Result<void> SqliteStore::save_pools_and_nodes(const control::Changes& changes) {
  for (const PoolRecord& pool : changes.pools) {
    const std::string settings = wire::format_pool_settings(pool);
    Statement put = db_->prepare("INSERT OR REPLACE INTO pools VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    auto saved = put.bind(pool.workspace)
                     .bind(pool.name)
                     .bind(pool.provisioner)
                     .bind(pool.target.dedicated)
                     .bind(pool.per_node.cores)
                     .bind(pool.per_node.memory)
                     .bind(pool.per_node.gpus)
                     .bind(pool.overcommit)
                     .bind(pool.lost_after.count())
                     .bind(micros(pool.created_at))
                     .bind(settings)
                     .run();
    if (!saved) return saved;
  }
  for (const auto& [workspace, name] : changes.pools_removed) {
    for (const char* sql :
         {"INSERT OR REPLACE INTO deleted_pools SELECT NULL, * FROM pools WHERE workspace = ? AND name = ?",
          "DELETE FROM pools WHERE workspace = ? AND name = ?",
          "DELETE FROM shares WHERE workspace = ? AND pool = ?",
          "DELETE FROM pool_usage WHERE workspace = ? AND pool = ?",
          "DELETE FROM pool_history WHERE workspace = ? AND pool = ?",
          "DELETE FROM pool_samples WHERE workspace = ? AND pool = ?"}) {
      Statement remove = db_->prepare(sql);
      if (auto done = remove.bind(workspace).bind(name).run(); !done) return done;
    }
    Statement prune =
        db_->prepare("DELETE FROM deleted_pools WHERE id <= (SELECT max(id) FROM deleted_pools) - ?");
    if (auto done = prune.bind(control::Kept::deleted_pools).run(); !done) return done;
  }
  for (const NodeRecord& node : changes.nodes) {
    const std::string notes = pack(node.notes);
    const std::string settings = wire::format_node_settings(node);
    Statement put =
        db_->prepare("INSERT OR REPLACE INTO nodes VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    auto saved = put.bind(node.id.value())
                     .bind(node.workspace)
                     .bind(node.pool)
                     .bind(node.name)
                     .bind(node.address)
                     .bind(node.instance)
                     .bind(node.host)
                     .bind(node.local)
                     .bind(node.shares_storage)
                     .bind(node.total.cores)
                     .bind(node.total.memory)
                     .bind(node.total.gpus)
                     .bind(node.drained)
                     .bind(number(node.state))
                     .bind(node.reason)
                     .bind(notes)
                     .bind(micros(node.created_at))
                     .bind(micros(node.changed_at))
                     .bind(settings)
                     .run();
    if (!saved) return saved;
    if (auto done = save_last_id("node", node.id.value()); !done) return done;
  }
  for (const NodeId id : changes.nodes_removed) {
    Statement remove = db_->prepare("DELETE FROM nodes WHERE id = ?");
    if (auto done = remove.bind(id.value()).run(); !done) return done;
    if (auto done = save_last_id("node", id.value()); !done) return done;
  }
  return {};
}

Result<void> SqliteStore::save_pool_past(const control::Changes& changes) {
  for (const PoolHistoryEntry& entry : changes.pool_history) {
    const std::string text = wire::format(entry);
    Statement add = db_->prepare(
        "INSERT INTO pool_history SELECT ?1, ?2, coalesce(max(id), 0) + 1, ?3 FROM pool_history "
        "WHERE workspace = ?1 AND pool = ?2");
    if (auto saved = add.bind(entry.workspace).bind(entry.pool).bind(text).run(); !saved) return saved;
    Statement prune = db_->prepare(
        "DELETE FROM pool_history WHERE workspace = ?1 AND pool = ?2 AND id <= "
        "(SELECT max(id) FROM pool_history WHERE workspace = ?1 AND pool = ?2) - ?3");
    if (auto done = prune.bind(entry.workspace).bind(entry.pool).bind(control::Kept::pool_history).run();
        !done)
      return done;
  }
  for (const ShareRecord& share : changes.shares) {
    Statement put = db_->prepare("INSERT OR REPLACE INTO shares VALUES (?,?,?,?,?)");
    auto saved = put.bind(share.workspace)
                     .bind(share.pool)
                     .bind(share.user)
                     .bind(share.used)
                     .bind(micros(share.at))
                     .run();
    if (!saved) return saved;
  }
  for (const PoolUsageRecord& usage : changes.pool_usage) {
    const std::string text = usage.meter.to_string();
    Statement put = db_->prepare("INSERT OR REPLACE INTO pool_usage VALUES (?,?,?)");
    if (auto saved = put.bind(usage.workspace).bind(usage.pool).bind(text).run(); !saved) return saved;
  }
  for (const PoolSample& sample : changes.samples) {
    const std::string values = wire::format_sample_values(sample);
    Statement put = db_->prepare("INSERT OR REPLACE INTO pool_samples VALUES (?,?,?,?,?,?)");
    auto saved = put.bind(sample.workspace)
                     .bind(sample.pool)
                     .bind(micros(sample.time))
                     .bind(sample.every.count())
                     .bind(sample.count)
                     .bind(values)
                     .run();
    if (!saved) return saved;
    if (sample.count > 1) continue;  // more of a run that was counted
    Statement prune = db_->prepare(
        "DELETE FROM pool_samples WHERE workspace = ? AND pool = ? AND time + every * count < ?");
    if (auto done = prune.bind(sample.workspace)
                        .bind(sample.pool)
                        .bind(micros(sample.time - control::Kept::samples))
                        .run();
        !done)
      return done;
  }
  return {};
}

Result<void> SqliteStore::save_places(const control::Changes& changes) {
  for (const FolderRecord& folder : changes.folders) {
    const std::string tags = pack(folder.tags);
    Statement put = db_->prepare("INSERT OR REPLACE INTO folders VALUES (?,?,?,?,?)");
    auto saved = put.bind(folder.workspace)
                     .bind(folder.path)
                     .bind(tags)
                     .bind(micros(folder.created_at))
                     .bind(micros(folder.changed_at))
                     .run();
    if (!saved) return saved;
  }
  for (const DatastoreRecord& store : changes.datastores) {
    Statement put = db_->prepare("INSERT OR REPLACE INTO datastores VALUES (?,?,?,?,?,?,?)");
    auto saved = put.bind(store.workspace)
                     .bind(store.name)
                     .bind(store.path)
                     .bind(store.url)
                     .bind(store.key)
                     .bind(micros(store.created_at))
                     .bind(store.owner)
                     .run();
    if (!saved) return saved;
  }
  for (const auto& [workspace, path] : changes.folders_removed) {
    Statement remove = db_->prepare("DELETE FROM folders WHERE workspace = ? AND path = ?");
    if (auto done = remove.bind(workspace).bind(path).run(); !done) return done;
  }
  for (const auto& [workspace, name] : changes.datastores_removed) {
    Statement remove = db_->prepare("DELETE FROM datastores WHERE workspace = ? AND name = ?");
    if (auto done = remove.bind(workspace).bind(name).run(); !done) return done;
  }
  return {};
}

Result<void> SqliteStore::save_jobs(const control::Changes& changes) {
  for (const control::NewJob& fresh : changes.jobs_new) {
    const JobRecord& job = fresh.job;
    const std::string environment = pack(fresh.spec.environment);
    Statement put = db_->prepare(
        "INSERT INTO jobs VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,?,?,?,NULL,NULL,'',?,0)");
    put.bind(job.id.value())
        .bind(job.workspace)
        .bind(job.name)
        .bind(job.pool)
        .bind(job.priority)
        .bind(number(job.state))
        .bind(job.reason)
        .bind(job.submitted_by)
        .bind(job.source)
        .bind(micros(job.submitted_at))
        .bind(micros(job.started_at))
        .bind(micros(job.ended_at));
    bind_counts(put, job.counts);
    if (fresh.idempotency_key.empty())
      put.bind_null();
    else
      put.bind(fresh.idempotency_key);
    const std::string tags = pack(job.tags);
    put.bind(environment).bind(job.max_parallel_tasks).bind(job.max_nodes).bind(tags);
    put.bind(job.retain ? std::optional<std::int64_t>(job.retain->count()) : std::nullopt);
    if (auto saved = put.run(); !saved) return saved;
    for (const auto& [name, value] : job.tags) {
      if (value.size() > tag_indexed_max) continue;
      Statement tag = db_->prepare("INSERT INTO job_tags VALUES (?,?,?)");
      if (auto saved = tag.bind(name).bind(value).bind(job.id.value()).run(); !saved) return saved;
    }
    for (std::uint32_t g = 0; g < fresh.spec.tasks.size(); ++g) {
      const std::string spec = wire::format_task_spec(fresh.spec.tasks[g]);
      Statement add = db_->prepare("INSERT INTO task_specs VALUES (?,?,?,?)");
      if (auto saved = add.bind(job.id.value()).bind(g).bind(fresh.spec.tasks[g].name).bind(spec).run();
          !saved)
        return saved;
    }
    if (auto done = save_last_id("job", job.id.value()); !done) return done;
  }
  for (const JobRecord& job : changes.jobs) {
    Statement put = db_->prepare(
        "UPDATE jobs SET waiting=?, queued=?, active=?, succeeded=?, failed=?, cancelled=?, skipped=?, "
        "state=?, reason=?, started_at=?, ended_at=?, evictions=?, nodes_lost=?, end_reason=?, exit_code=?, "
        "priority=?, max_parallel_tasks=?, held_by=?, pinned=? WHERE id=?");
    bind_counts(put, job.counts);
    if (auto saved = put.bind(number(job.state))
                         .bind(job.reason)
                         .bind(micros(job.started_at))
                         .bind(micros(job.ended_at))
                         .bind(job.evictions)
                         .bind(job.nodes_lost)
                         .bind(job.end ? std::optional(number(*job.end)) : std::nullopt)
                         .bind(job.exit_code)
                         .bind(job.priority)
                         .bind(job.max_parallel_tasks)
                         .bind(job.held_by)
                         .bind(job.is_pinned ? 1 : 0)
                         .bind(job.id.value())
                         .run();
        !saved)
      return saved;
  }
  for (const auto& [id, usage] : changes.job_usage) {
    const std::string text = usage.to_string();
    Statement put = db_->prepare("INSERT OR REPLACE INTO job_usage VALUES (?,?)");
    if (auto saved = put.bind(id.value()).bind(text).run(); !saved) return saved;
  }
  for (const JobId id : changes.jobs_removed)
    if (auto removed = remove_job(id); !removed) return removed;
  return {};
}

Result<void> SqliteStore::save_tasks(const control::Changes& changes) {
  for (const GroupRecord& group : changes.groups) {
    Statement put = db_->prepare("INSERT OR REPLACE INTO task_groups VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
    put.bind(group.job.value()).bind(group.group).bind(group.next).bind(number(group.rest));
    if (auto saved = bind_counts(put, group.counts).bind(group.rest_reason).run(); !saved) return saved;
  }
  for (const TaskRecord& task : changes.tasks) {
    Statement put = db_->prepare("INSERT OR REPLACE INTO tasks VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)");
    auto saved = put.bind(task.ref.job.value())
                     .bind(task.ref.group)
                     .bind(task.ref.index)
                     .bind(task.name)
                     .bind(number(task.state))
                     .bind(task.attempts)
                     .bind(task.retries_used)
                     .bind(micros(task.not_before))
                     .bind(task.exit_code)
                     .bind(task.signal)
                     .bind(task.reason)
                     .bind(task.evictions)
                     .bind(task.attempts_before)
                     .run();
    if (!saved) return saved;
  }
  for (const AttemptRecord& attempt : changes.attempts) {
    const std::string nodes = pack_nodes(attempt);
    const std::optional<std::string> launch = pack_launch(attempt);
    const auto last_lines =
        attempt.last_lines.empty() ? std::nullopt : std::optional<std::string_view>(attempt.last_lines);
    const TaskRef& ref = attempt.key.task;
    Statement put =
        db_->prepare("INSERT OR REPLACE INTO attempts VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    auto saved = put.bind(ref.job.value())
                     .bind(ref.group)
                     .bind(ref.index)
                     .bind(attempt.key.attempt)
                     .bind(nodes)
                     .bind(micros(attempt.placed_at))
                     .bind(micros(attempt.started_at))
                     .bind(micros(attempt.ended_at))
                     .bind(attempt.end ? std::optional(number(*attempt.end)) : std::nullopt)
                     .bind(attempt.exit_code)
                     .bind(attempt.signal)
                     .bind(attempt.rank)
                     .bind(attempt.detail)
                     .bind(attempt.use.memory_peak)
                     .bind(attempt.use.cpu_time.count())
                     .bind(launch)
                     .bind(last_lines)
                     .bind(attempt.lease.count())
                     .run();
    if (!saved) return saved;
  }
  return {};
}

Result<void> SqliteStore::save_events_and_tokens(const control::Changes& changes) {
  for (const EventRecord& event : changes.events) {
    Statement put = db_->prepare("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?)");
    auto saved = put.bind(event.id)
                     .bind(micros(event.time))
                     .bind(event.workspace)
                     .bind(event.kind)
                     .bind(event.job ? std::optional(event.job->value()) : std::nullopt)
                     .bind(event.task)
                     .bind(event.attempt)
                     .bind(event.node)
                     .bind(event.pool)
                     .bind(event.text)
                     .run();
    if (!saved) return saved;
    if (event.id > events_kept && event.id % events_removed_at_once == 0) {
      Statement prune = db_->prepare("DELETE FROM events WHERE id <= ?");
      if (auto done = prune.bind(event.id - events_kept).run(); !done) return done;
    }
  }
  if (!changes.events.empty())
    if (auto done = save_last_id("event", changes.events.back().id); !done) return done;
  for (const TokenRecord& token : changes.tokens) {
    Statement put = db_->prepare("INSERT OR REPLACE INTO tokens VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    if (auto saved = put.bind(token.id)
                         .bind(token.name)
                         .bind(token.workspace)
                         .bind(number(token.role))
                         .bind(token.hash)
                         .bind(micros(token.created_at))
                         .bind(token.author)
                         .bind(token.node)
                         .bind(token.uses_left)
                         .bind(micros(token.expires_at))
                         .bind(micros(token.last_used_at))
                         .bind(to_string(token.scope))
                         .bind(token.pool)
                         .bind(token.user)
                         .run();
        !saved)
      return saved;
  }
  for (const std::string& id : changes.tokens_removed) {
    Statement remove = db_->prepare("DELETE FROM tokens WHERE id = ?");
    if (auto done = remove.bind(id).run(); !done) return done;
  }
  return {};
}

}  // namespace slipway::store
