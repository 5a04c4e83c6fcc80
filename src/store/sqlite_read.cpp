// The reading half of the SQLite store.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "store/rest.h"
#include "store/sqlite_store.h"
#include "wire/job_file.h"
#include "wire/pool.h"

namespace slipway::store {
namespace {

TimePoint time_at(const Statement& row, int column) { return TimePoint(Duration(row.integer(column))); }
std::optional<TimePoint> maybe_time(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional(time_at(row, column));
}
std::optional<int> maybe_int(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional(static_cast<int>(row.integer(column)));
}
std::uint32_t small(const Statement& row, int column) {
  return static_cast<std::uint32_t>(row.integer(column));
}
std::uint64_t large(const Statement& row, int column) {
  return static_cast<std::uint64_t>(row.integer(column));
}

TaskCounts counts_at(const Statement& row, int column) {
  return {large(row, column),     large(row, column + 1), large(row, column + 2), large(row, column + 3),
          large(row, column + 4), large(row, column + 5), large(row, column + 6)};
}

Environment unpack_environment(std::string_view text) {  // see pack
  Environment environment;
  while (!text.empty()) {
    const std::size_t equals = text.find('='), colon = text.find(':', equals);
    if (colon == std::string_view::npos) break;
    std::size_t size = 0;
    std::from_chars(text.data() + equals + 1, text.data() + colon, size);
    environment[std::string(text.substr(0, equals))] = text.substr(colon + 1, size);
    text.remove_prefix(std::min(text.size(), colon + 1 + size));
  }
  return environment;
}

JobRecord job_from(const Statement& row) {  // SELECT * FROM jobs
  JobRecord job;
  job.id = JobId{large(row, 0)};
  job.workspace = row.text(1);
  job.name = row.text(2);
  job.pool = row.text(3);
  job.priority = static_cast<int>(row.integer(4));
  job.state = static_cast<JobState>(row.integer(5));
  job.reason = row.text(6);
  job.submitted_by = row.text(7);
  job.source = row.text(8);
  job.submitted_at = time_at(row, 9);
  job.started_at = maybe_time(row, 10);
  job.ended_at = maybe_time(row, 11);
  job.counts = counts_at(row, 12);
  job.evictions = large(row, 21);
  job.nodes_lost = large(row, 22);
  job.max_parallel_tasks = small(row, 23);
  job.max_nodes = small(row, 24);
  job.tags = unpack_environment(row.text(25));
  if (const auto end = maybe_int(row, 26)) job.end = static_cast<EndReason>(*end);
  job.exit_code = maybe_int(row, 27);
  return job;
}

TaskRecord task_from(const Statement& row) {  // SELECT * FROM tasks
  TaskRecord task;
  task.ref = {JobId{large(row, 0)}, small(row, 1), small(row, 2)};
  task.name = row.text(3);
  task.state = static_cast<TaskState>(row.integer(4));
  task.attempts = small(row, 5);
  task.retries_used = small(row, 6);
  task.not_before = maybe_time(row, 7);
  task.exit_code = maybe_int(row, 8);
  task.signal = maybe_int(row, 9);
  task.reason = row.text(10);
  task.evictions = small(row, 11);
  return task;
}

// See pack_nodes.
void unpack_nodes(std::string_view text, AttemptRecord& attempt) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = item.find('='), slash = item.rfind('/');
    if (equals == std::string_view::npos || slash == std::string_view::npos) continue;
    std::uint64_t id = 0;
    std::from_chars(item.data(), item.data() + equals, id);
    attempt.nodes.push_back(NodeId{id});
    attempt.node_names.emplace_back(item.substr(equals + 1, slash - equals - 1));
    attempt.gpus.emplace_back();
    for (std::string_view rest = item.substr(slash + 1); !rest.empty();) {
      std::uint32_t gpu = 0;
      const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), gpu);
      attempt.gpus.back().push_back(gpu);
      rest.remove_prefix(std::min(rest.size(), static_cast<std::size_t>(stop - rest.data()) + 1));
    }
  }
}

// See pack_launch.
void unpack_launch(std::string_view text, AttemptRecord& attempt) {
  attempt.is_launched = true;
  const auto take = [&] {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return item;
  };
  attempt.secret = take();
  while (!text.empty()) {
    std::string_view item = take();
    std::vector<std::uint16_t>& ports = attempt.ports.emplace_back();
    if (item.starts_with('!')) {
      item.remove_prefix(1);
      attempt.left.resize(attempt.ports.size());
      attempt.left.back() = true;
    }
    while (!item.empty() && item != "-") {
      const std::size_t end = std::min(item.find(','), item.size());
      std::uint16_t port = 0;
      std::from_chars(item.data(), item.data() + end, port);
      ports.push_back(port);
      item.remove_prefix(std::min(end + 1, item.size()));
    }
  }
}

AttemptRecord attempt_from(const Statement& row) {  // SELECT * FROM attempts
  AttemptRecord attempt;
  attempt.key = {{JobId{large(row, 0)}, small(row, 1), small(row, 2)}, small(row, 3)};
  unpack_nodes(row.text(4), attempt);
  attempt.placed_at = time_at(row, 5);
  attempt.started_at = maybe_time(row, 6);
  attempt.ended_at = maybe_time(row, 7);
  if (!row.is_null(8)) attempt.end = static_cast<EndReason>(row.integer(8));
  attempt.exit_code = maybe_int(row, 9);
  attempt.signal = maybe_int(row, 10);
  if (!row.is_null(11)) attempt.rank = small(row, 11);
  attempt.detail = row.text(12);
  attempt.use = {large(row, 13), Duration(row.integer(14))};
  if (!row.is_null(15)) unpack_launch(row.text(15), attempt);
  if (!row.is_null(16)) attempt.last_lines = row.text(16);
  return attempt;
}

std::vector<std::string> unpack_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// Every row of a statement through `read`.
template <class T, class Read>
Result<std::vector<T>> rows(Statement& statement, Read read) {
  std::vector<T> all;
  for (;;) {
    auto row = statement.step();
    if (!row) return fail(row.error());
    if (!*row) return all;
    all.push_back(read(statement));
  }
}

template <class T, class Read>
Result<std::optional<T>> first_row(Statement& statement, Read read) {
  auto row = statement.step();
  if (!row) return fail(row.error());
  return *row ? std::optional<T>(read(statement)) : std::nullopt;
}

}  // namespace

Result<control::Loaded> SqliteStore::load() {
  control::Loaded loaded;
  {
    Statement ask = db_->prepare("SELECT * FROM pools ORDER BY created_at");
    std::optional<Error> damaged;
    auto pools = rows<PoolRecord>(ask, [&](const Statement& row) {
      PoolRecord pool;
      pool.workspace = row.text(0);
      pool.name = row.text(1);
      pool.provisioner = row.text(2);
      pool.target.dedicated = small(row, 3);
      pool.per_node = {small(row, 4), large(row, 5), small(row, 6)};
      pool.overcommit = row.integer(7) != 0;
      pool.lost_after = Duration(row.integer(8));
      pool.created_at = time_at(row, 9);
      if (auto read = wire::parse_pool_settings(row.text(10), pool); !read) damaged = read.error();
      return pool;
    });
    if (damaged) return fail(*damaged);
    if (!pools) return fail(pools.error());
    loaded.pools = std::move(*pools);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM nodes ORDER BY id");
    std::optional<Error> damaged;
    auto nodes = rows<NodeRecord>(ask, [&](const Statement& row) {
      NodeRecord node;
      node.id = NodeId{large(row, 0)};
      node.workspace = row.text(1);
      node.pool = row.text(2);
      node.name = row.text(3);
      node.address = row.text(4);
      node.instance = row.text(5);
      node.host = row.text(6);
      node.local = row.integer(7) != 0;
      node.shares_storage = row.integer(8) != 0;
      node.total = {small(row, 9), large(row, 10), small(row, 11)};
      node.drained = row.integer(12) != 0;
      node.state = static_cast<NodeState>(row.integer(13));
      node.reason = row.text(14);
      node.notes = unpack_lines(row.text(15));
      node.created_at = time_at(row, 16);
      node.changed_at = time_at(row, 17);
      if (auto read = wire::parse_node_settings(row.text(18), node); !read) damaged = read.error();
      return node;
    });
    if (damaged) return fail(*damaged);
    if (!nodes) return fail(nodes.error());
    loaded.nodes = std::move(*nodes);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM pool_samples ORDER BY workspace, pool, time");
    auto samples = rows<PoolSample>(ask, [](const Statement& row) {
      PoolSample sample;
      sample.workspace = row.text(0);
      sample.pool = row.text(1);
      sample.time = time_at(row, 2);
      sample.every = Duration(row.integer(3));
      sample.count = small(row, 4);
      // One that cannot be read is as if it had not been taken.
      if (!wire::parse_sample_values(row.text(5), sample)) sample.values.clear();
      return sample;
    });
    if (!samples) return fail(samples.error());
    loaded.samples = std::move(*samples);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM pool_usage");
    auto usage = rows<PoolUsageRecord>(ask, [](const Statement& row) {
      // What cannot be read is counted from nothing: it is no reason not to start.
      return PoolUsageRecord{row.text(0), row.text(1), UsageMeter::parse(row.text(2)).value_or(UsageMeter{})};
    });
    if (!usage) return fail(usage.error());
    loaded.pool_usage = std::move(*usage);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM shares");
    auto shares = rows<ShareRecord>(ask, [](const Statement& row) {
      return ShareRecord{row.text(0), row.text(1), row.text(2), row.real(3), time_at(row, 4)};
    });
    if (!shares) return fail(shares.error());
    loaded.shares = std::move(*shares);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM tokens ORDER BY created_at");
    auto tokens = rows<TokenRecord>(ask, [](const Statement& row) {
      return TokenRecord{row.text(0), row.text(1),    row.text(2), static_cast<Role>(row.integer(3)),
                         row.text(4), time_at(row, 5)};
    });
    if (!tokens) return fail(tokens.error());
    loaded.tokens = std::move(*tokens);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM folders");
    auto folders = rows<FolderRecord>(ask, [](const Statement& row) {
      return FolderRecord{row.text(0), row.text(1), unpack_environment(row.text(2)), time_at(row, 3),
                          time_at(row, 4)};
    });
    if (!folders) return fail(folders.error());
    loaded.folders = std::move(*folders);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM datastores");
    auto datastores = rows<DatastoreRecord>(ask, [](const Statement& row) {
      return DatastoreRecord{row.text(0), row.text(1), row.text(2),
                             row.text(3), row.text(4), time_at(row, 5)};
    });
    if (!datastores) return fail(datastores.error());
    loaded.datastores = std::move(*datastores);
  }
  {
    Statement ask = db_->prepare("SELECT kind, id FROM last_ids");
    for (;;) {
      auto row = ask.step();
      if (!row) return fail(row.error());
      if (!*row) break;
      const std::string kind = ask.text(0);
      if (kind == "job") loaded.job_last = large(ask, 1);
      if (kind == "node") loaded.node_last = large(ask, 1);
      if (kind == "event") loaded.event_last = large(ask, 1);
    }
  }
  Statement ask = db_->prepare("SELECT * FROM jobs WHERE state < 3 ORDER BY id");
  auto live = rows<JobRecord>(ask, job_from);
  if (!live) return fail(live.error());
  for (const JobRecord& job : *live) {
    auto whole = load_live_job(job);
    if (!whole) return fail(whole.error());
    loaded.jobs.push_back(std::move(*whole));
  }
  return loaded;
}

Result<control::LiveJob> SqliteStore::load_live_job(const JobRecord& job) {
  auto usage = job_usage(job.id);
  if (!usage) return fail(usage.error());
  control::LiveJob live{job, {}, {}, {}, {}, *usage};
  Statement specs = db_->prepare("SELECT spec FROM task_specs WHERE job = ? ORDER BY grp");
  specs.bind(job.id.value());
  for (;;) {
    auto row = specs.step();
    if (!row) return fail(row.error());
    if (!*row) break;
    auto spec = wire::parse_task_spec(specs.text(0));
    if (!spec)
      return fail(ErrorCode::internal, fmt::format("the stored tasks of {} cannot be read: {}",
                                                   to_string(job.id), spec.error().what));
    spec->command = std::string();
    spec->environment.clear();
    live.tasks.push_back(std::move(*spec));
  }
  auto groups = group_records(job.id);
  if (!groups) return fail(groups.error());
  live.groups = std::move(*groups);
  Statement tasks = db_->prepare("SELECT * FROM tasks WHERE job = ? AND state < 5 ORDER BY grp, idx");
  auto live_tasks = rows<TaskRecord>(tasks.bind(job.id.value()), task_from);
  if (!live_tasks) return fail(live_tasks.error());
  live.live = std::move(*live_tasks);
  for (const TaskRecord& task : live.live) {
    if (!is_placed(task.state)) continue;
    Statement ask =
        db_->prepare("SELECT * FROM attempts WHERE job = ? AND grp = ? AND idx = ? AND attempt = ?");
    auto attempt = first_row<AttemptRecord>(
        ask.bind(task.ref.job.value()).bind(task.ref.group).bind(task.ref.index).bind(task.attempts),
        attempt_from);
    if (!attempt) return fail(attempt.error());
    if (*attempt) live.attempts.push_back(std::move(**attempt));
  }
  return live;
}

Result<UsageMeter> SqliteStore::job_usage(JobId job) {
  Statement ask = db_->prepare("SELECT usage FROM job_usage WHERE job = ?");
  auto usage =
      first_row<std::string>(ask.bind(job.value()), [](const Statement& row) { return row.text(0); });
  if (!usage) return fail(usage.error());
  return *usage ? UsageMeter::parse(**usage).value_or(UsageMeter{}) : UsageMeter{};
}

Result<std::vector<GroupRecord>> SqliteStore::group_records(JobId job) {
  Statement ask = db_->prepare("SELECT * FROM task_groups WHERE job = ? ORDER BY grp");
  return rows<GroupRecord>(ask.bind(job.value()), [](const Statement& row) {
    return GroupRecord{JobId{large(row, 0)}, small(row, 1), small(row, 2),
                       static_cast<TaskState>(row.integer(3)), counts_at(row, 4)};
  });
}

Result<TaskSpec> SqliteStore::task_spec(JobId job, std::uint32_t group) {
  Statement ask = db_->prepare("SELECT spec FROM task_specs WHERE job = ? AND grp = ?");
  auto spec = first_row<std::string>(ask.bind(job.value()).bind(group),
                                     [](const Statement& row) { return row.text(0); });
  if (!spec) return fail(spec.error());
  if (!*spec)
    return fail(ErrorCode::not_found, fmt::format("{} has no task number {}", to_string(job), group));
  return wire::parse_task_spec(**spec);
}

Result<JobSpec> SqliteStore::job_spec(JobId id, std::uint32_t tasks_max) {
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
  Statement head = db_->prepare("SELECT environment FROM jobs WHERE id = ?");
  auto environment =
      first_row<std::string>(head.bind(id.value()), [](const Statement& row) { return row.text(0); });
  if (!environment) return fail(environment.error());
  spec.environment = unpack_environment(environment->value_or(""));
  Statement ask = db_->prepare("SELECT spec FROM task_specs WHERE job = ? ORDER BY grp LIMIT ?");
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

Result<std::optional<JobRecord>> SqliteStore::job(JobId id) {
  Statement ask = db_->prepare("SELECT * FROM jobs WHERE id = ?");
  return first_row<JobRecord>(ask.bind(id.value()), job_from);
}

Result<std::optional<JobId>> SqliteStore::job_by_key(const std::string& workspace, const std::string& key) {
  Statement ask = db_->prepare("SELECT id FROM jobs WHERE workspace = ? AND idempotency_key = ?");
  return first_row<JobId>(ask.bind(workspace).bind(key),
                          [](const Statement& row) { return JobId{large(row, 0)}; });
}

Result<std::vector<JobRecord>> SqliteStore::jobs(const control::JobQuery& query) {
  if (!query.tag.first.empty()) {
    Statement tagged = db_->prepare(
        "SELECT jobs.* FROM job_tags CROSS JOIN jobs ON jobs.id = job_tags.job WHERE job_tags.name = ?1 AND "
        "job_tags.value = ?2 AND job_tags.job > ?3 AND jobs.workspace = ?4 AND (?5 < 0 OR state = ?5) ORDER "
        "BY "
        "job_tags.job LIMIT ?6");
    tagged.bind(query.tag.first)
        .bind(query.tag.second)
        .bind(query.after ? query.after->value() : 0)
        .bind(query.workspace)
        .bind(query.state ? static_cast<int>(*query.state) : -1)
        .bind(query.limit);
    return rows<JobRecord>(tagged, job_from);
  }
  // Two shapes of one query, so that each has its index.
  Statement ask = query.name.empty()
                      ? db_->prepare(
                            "SELECT * FROM jobs WHERE workspace = ?1 AND id < ?2 AND (?3 < 0 OR state = ?3) "
                            "ORDER BY id DESC LIMIT ?4")
                      : db_->prepare(
                            "SELECT * FROM jobs INDEXED BY jobs_by_name WHERE workspace = ?1 AND id < ?2 AND "
                            "(?3 < 0 OR state = ?3) AND name = ?5 ORDER BY id DESC LIMIT ?4");
  ask.bind(query.workspace)
      .bind(query.before ? static_cast<std::int64_t>(query.before->value()) : INT64_MAX)
      .bind(query.state ? static_cast<int>(*query.state) : -1)
      .bind(query.limit);
  if (!query.name.empty()) ask.bind(query.name);
  return rows<JobRecord>(ask, job_from);
}

Result<std::vector<TaskRecord>> SqliteStore::recorded(JobId job, std::uint32_t group, std::uint32_t from,
                                                      std::optional<TaskState> state, std::uint32_t limit) {
  // The partial indexes serve the states people ask for: those that live, and those that went wrong.
  const char* sql =
      "SELECT * FROM tasks WHERE job = ?1 AND grp = ?2 AND idx >= ?3 AND (?4 < 0 OR state = ?4) ORDER BY idx "
      "LIMIT ?5";
  if (state && *state > TaskState::succeeded)
    sql =
        "SELECT * FROM tasks INDEXED BY tasks_failed WHERE job = ?1 AND grp = ?2 AND idx >= ?3 AND state = "
        "?4 AND state > 5 ORDER BY idx LIMIT ?5";
  if (state && *state < TaskState::succeeded)
    sql =
        "SELECT * FROM tasks INDEXED BY tasks_live WHERE job = ?1 AND grp = ?2 AND idx >= ?3 AND state = ?4 "
        "AND state < 5 ORDER BY idx LIMIT ?5";
  Statement ask = db_->prepare(sql);
  return rows<TaskRecord>(
      ask.bind(job.value()).bind(group).bind(from).bind(state ? static_cast<int>(*state) : -1).bind(limit),
      task_from);
}

Result<std::vector<TaskRecord>> SqliteStore::tasks(JobId job, const control::TaskQuery& query) {
  std::vector<TaskRecord> page;
  Statement entries = db_->prepare(
      "SELECT s.grp, s.name, s.spec, g.next, g.rest FROM task_specs s LEFT JOIN task_groups g ON g.job = "
      "s.job AND g.grp = s.grp WHERE s.job = ? AND s.grp >= ? ORDER BY s.grp");
  entries.bind(job.value()).bind(query.after ? query.after->group : 0u);
  while (page.size() < query.limit) {
    auto row = entries.step();
    if (!row) return fail(row.error());
    if (!*row) break;
    auto spec = wire::parse_task_spec(entries.text(2));
    if (!spec) return fail(spec.error());
    const GroupRange range{small(entries, 0), spec->count, entries.is_null(3) ? 0 : small(entries, 3),
                           entries.is_null(4)
                               ? (spec->depends_on.empty() ? TaskState::queued : TaskState::waiting)
                               : static_cast<TaskState>(entries.integer(4)),
                           spec->name};
    const std::uint32_t from = query.after && query.after->group == range.group ? query.after->index + 1 : 0;
    auto placed =
        recorded(job, range.group, from, query.state, query.limit - static_cast<std::uint32_t>(page.size()));
    if (!placed) return fail(placed.error());
    std::move(placed->begin(), placed->end(), std::back_inserter(page));
    append_rest(page, job, range, from, query);
  }
  return page;
}

Result<std::optional<TaskRecord>> SqliteStore::task(JobId job, const std::string& name) {
  const TaskName wanted = parse_task_name(name);
  Statement find = db_->prepare(
      "SELECT s.grp, s.spec, g.next, g.rest FROM task_specs s LEFT JOIN task_groups g ON g.job = s.job AND "
      "g.grp = s.grp WHERE s.job = ? AND s.name = ?");
  find.bind(job.value()).bind(wanted.group);
  auto row = find.step();
  if (!row) return fail(row.error());
  if (!*row) return std::nullopt;
  auto spec = wire::parse_task_spec(find.text(1));
  if (!spec) return fail(spec.error());
  if (spec->count.has_value() != wanted.index.has_value() || (wanted.index && *wanted.index >= spec->tasks()))
    return std::nullopt;
  const GroupRange range{small(find, 0), spec->count, find.is_null(2) ? 0 : small(find, 2),
                         find.is_null(3) ? (spec->depends_on.empty() ? TaskState::queued : TaskState::waiting)
                                         : static_cast<TaskState>(find.integer(3)),
                         spec->name};
  const std::uint32_t index = wanted.index.value_or(0);
  if (index >= range.next) return rest_task(job, range, index);
  auto placed = recorded(job, range.group, index, std::nullopt, 1);
  if (!placed) return fail(placed.error());
  if (placed->empty() || placed->front().ref.index != index) return std::nullopt;
  return placed->front();
}

Result<std::vector<AttemptRecord>> SqliteStore::attempts(const TaskRef& task) {
  Statement ask =
      db_->prepare("SELECT * FROM attempts WHERE job = ? AND grp = ? AND idx = ? ORDER BY attempt");
  return rows<AttemptRecord>(ask.bind(task.job.value()).bind(task.group).bind(task.index), attempt_from);
}

Result<std::vector<std::vector<AttemptRecord>>> SqliteStore::attempts_of(const std::vector<TaskRef>& tasks) {
  Transaction together(*db_);  // the file is locked once, not for every task
  if (auto begun = together.begin_reading(); !begun) return fail(begun.error());
  return Store::attempts_of(tasks);
}

Result<std::vector<AttemptRecord>> SqliteStore::job_attempts(JobId job,
                                                             const std::optional<AttemptKey>& after,
                                                             std::uint32_t limit) {
  const AttemptKey from = after.value_or(AttemptKey{{job, 0, 0}, 0});
  Statement ask = db_->prepare(
      "SELECT * FROM attempts WHERE job = ? AND (grp, idx, attempt) > (?, ?, ?) ORDER BY grp, idx, attempt "
      "LIMIT ?");
  ask.bind(job.value()).bind(from.task.group).bind(from.task.index).bind(from.attempt).bind(limit);
  return rows<AttemptRecord>(ask, attempt_from);
}

Result<std::vector<EventRecord>> SqliteStore::events(const control::EventQuery& query) {
  Statement ask =
      query.job
          ? db_->prepare(
                "SELECT * FROM events WHERE workspace = ?1 AND id > ?2 AND job = ?4 ORDER BY id LIMIT ?3")
          : db_->prepare("SELECT * FROM events WHERE workspace = ?1 AND id > ?2 ORDER BY id LIMIT ?3");
  ask.bind(query.workspace).bind(query.after).bind(query.limit);
  if (query.job) ask.bind(query.job->value());
  return rows<EventRecord>(ask, [](const Statement& row) {
    EventRecord event;
    event.id = large(row, 0);
    event.time = time_at(row, 1);
    event.workspace = row.text(2);
    event.kind = row.text(3);
    if (!row.is_null(4)) event.job = JobId{large(row, 4)};
    event.task = row.text(5);
    if (!row.is_null(6)) event.attempt = small(row, 6);
    event.node = row.text(7);
    event.pool = row.text(8);
    event.text = row.text(9);
    return event;
  });
}

Result<std::vector<PoolMoment>> SqliteStore::pool_history(const std::string& workspace,
                                                          const std::string& pool, std::uint32_t limit) {
  Statement ask = db_->prepare(
      "SELECT moment FROM (SELECT id, moment FROM pool_history WHERE workspace = ? AND pool = ? "
      "ORDER BY id DESC LIMIT ?) ORDER BY id");
  std::optional<Error> damaged;
  auto moments = rows<PoolMoment>(ask.bind(workspace).bind(pool).bind(limit), [&](const Statement& row) {
    auto moment = wire::parse_pool_moment(row.text(0));
    if (!moment) {
      damaged = moment.error();
      return PoolMoment{};
    }
    moment->workspace = workspace;
    moment->pool = pool;
    return *moment;
  });
  if (damaged) return fail(*damaged);
  return moments;
}

Result<std::vector<std::string>> SqliteStore::sources() {
  Statement ask = db_->prepare("SELECT DISTINCT source FROM jobs WHERE source <> ''");
  return rows<std::string>(ask, [](const Statement& row) { return row.text(0); });
}

Result<std::vector<std::pair<JobState, std::uint64_t>>> SqliteStore::job_counts(
    const std::string& workspace) {
  Statement ask = db_->prepare("SELECT state, count(*) FROM jobs WHERE workspace = ? GROUP BY state");
  return rows<std::pair<JobState, std::uint64_t>>(ask.bind(workspace), [](const Statement& row) {
    return std::pair(static_cast<JobState>(row.integer(0)), large(row, 1));
  });
}

}  // namespace slipway::store
