// Reading tasks and attempts.
#include <fmt/format.h>

#include "store/rows.h"
#include "store/sqlite_reads.h"
#include "wire/job_file.h"

namespace slipway::store {
namespace {

// Of one entry of a job's list; the columns are grp, spec, next, rest, rest_reason from `column` on.
Result<GroupRange> range_at(const Statement& row, int column) {
  auto spec = wire::parse_task_spec(row.text(column + 1));
  if (!spec) return fail(spec.error());
  const TaskState rest = spec->has_dependencies() ? TaskState::waiting : TaskState::queued;
  return GroupRange{small(row, column),
                    spec->count,
                    row.is_null(column + 2) ? 0 : small(row, column + 2),
                    row.is_null(column + 3) ? rest : static_cast<TaskState>(row.integer(column + 3)),
                    spec->name,
                    row.is_null(column + 4) ? "" : row.text(column + 4)};
}

// Whether a task can be in this state without a row of its own.
bool is_rest_state(TaskState state) {
  return state == TaskState::waiting || state == TaskState::queued || state == TaskState::skipped ||
         state == TaskState::cancelled;
}

std::string as_json(const std::vector<TaskRef>& tasks) {
  std::string text = "[";
  for (const TaskRef& task : tasks)
    text += fmt::format("{}[{},{},{}]", text.size() > 1 ? "," : "", task.job.value(), task.group, task.index);
  return text + "]";
}

}  // namespace

class SqliteReads::PlacedTasks {
 public:
  PlacedTasks(Database& db, JobId job, const control::TaskQuery& query) : ask_(db.prepare(sql_for(query))) {
    ask_.bind(job.value())
        .bind(query.after ? query.after->group : 0u)
        .bind(query.after ? static_cast<std::int64_t>(query.after->index) : std::int64_t{-1})
        .bind(query.state ? static_cast<int>(*query.state) : -1)
        .bind(query.limit);
  }

  Result<void> step() {
    auto row = ask_.step();
    if (!row) return fail(row.error());
    has_row_ = *row;
    return {};
  }
  bool has_row() const { return has_row_; }
  std::uint32_t group() const { return small(ask_, 1); }
  TaskView view() const { return {task_from(ask_), unpack_node_names(ask_.text(nodes_column))}; }

 private:
  static constexpr int nodes_column = 13;

  // The partial indexes serve the states people ask for: those that live, and those that went wrong.
  static const char* sql_for(const control::TaskQuery& query) {
    if (query.state && *query.state > TaskState::succeeded)
      return "SELECT t.*, a.nodes FROM tasks t INDEXED BY tasks_failed LEFT JOIN attempts a ON a.job = t.job "
             "AND "
             "a.grp = t.grp AND a.idx = t.idx AND a.attempt = t.attempts WHERE t.job = ?1 AND (t.grp, t.idx) "
             "> "
             "(?2, ?3) AND t.state = ?4 AND t.state > 5 ORDER BY t.grp, t.idx LIMIT ?5";
    if (query.state && *query.state < TaskState::succeeded)
      return "SELECT t.*, a.nodes FROM tasks t INDEXED BY tasks_live LEFT JOIN attempts a ON a.job = t.job "
             "AND "
             "a.grp = t.grp AND a.idx = t.idx AND a.attempt = t.attempts WHERE t.job = ?1 AND (t.grp, t.idx) "
             "> "
             "(?2, ?3) AND t.state = ?4 AND t.state < 5 ORDER BY t.grp, t.idx LIMIT ?5";
    return "SELECT t.*, a.nodes FROM tasks t LEFT JOIN attempts a ON a.job = t.job AND a.grp = t.grp AND "
           "a.idx = "
           "t.idx AND a.attempt = t.attempts WHERE t.job = ?1 AND (t.grp, t.idx) > (?2, ?3) AND (?4 < 0 OR "
           "t.state = ?4) ORDER BY t.grp, t.idx LIMIT ?5";
  }

  Statement ask_;
  bool has_row_ = false;
};

Result<TaskSpec> SqliteReads::task_spec(JobId job, std::uint32_t group) {
  Statement ask = db_.prepare("SELECT spec FROM task_specs WHERE job = ? AND grp = ?");
  auto spec = first_row<std::string>(ask.bind(job.value()).bind(group),
                                     [](const Statement& row) { return row.text(0); });
  if (!spec) return fail(spec.error());
  if (!*spec)
    return fail(ErrorCode::not_found, fmt::format("{} has no task number {}", to_string(job), group));
  return wire::parse_task_spec(**spec);
}

Result<std::map<std::uint32_t, TaskSpec>> SqliteReads::task_specs(JobId job, std::uint32_t first,
                                                                  std::uint32_t last) {
  Statement ask = db_.prepare(
      "SELECT grp, spec FROM task_specs s WHERE job = ?1 AND grp BETWEEN ?2 AND ?3 AND EXISTS (SELECT 1 FROM "
      "attempts a WHERE a.job = ?1 AND a.grp = s.grp)");
  ask.bind(job.value()).bind(first).bind(last);
  std::map<std::uint32_t, TaskSpec> specs;
  for (;;) {
    auto row = ask.step();
    if (!row) return fail(row.error());
    if (!*row) return specs;
    auto spec = wire::parse_task_spec(ask.text(1));
    if (!spec) return fail(spec.error());
    specs.emplace(small(ask, 0), std::move(*spec));
  }
}

// Two statements walk the job side by side: the entries of its list, and the tasks that have a row.
Result<std::vector<TaskView>> SqliteReads::tasks(JobId job, const control::TaskQuery& query) {
  std::vector<TaskView> page;
  PlacedTasks placed(db_, job, query);
  if (auto stepped = placed.step(); !stepped) return fail(stepped.error());
  const auto take_placed = [&](std::uint32_t group_max) -> Result<void> {
    while (placed.has_row() && placed.group() <= group_max && page.size() < query.limit) {
      page.push_back(placed.view());
      if (auto stepped = placed.step(); !stepped) return stepped;
    }
    return {};
  };
  if (!query.state || is_rest_state(*query.state)) {
    Statement entries = db_.prepare(
        "SELECT s.grp, s.spec, g.next, g.rest, g.rest_reason FROM task_specs s LEFT JOIN task_groups g ON "
        "g.job = s.job AND "
        "g.grp = s.grp WHERE s.job = ? AND s.grp >= ? ORDER BY s.grp");
    entries.bind(job.value()).bind(query.after ? query.after->group : 0u);
    while (page.size() < query.limit) {
      auto row = entries.step();
      if (!row) return fail(row.error());
      if (!*row) break;
      auto range = range_at(entries, 0);
      if (!range) return fail(range.error());
      if (auto taken = take_placed(range->group); !taken) return fail(taken.error());
      const bool is_first = query.after && query.after->group == range->group;
      append_rest(page, job, *range, is_first ? query.after->index + 1 : 0, query);
    }
  }
  if (auto taken = take_placed(UINT32_MAX); !taken) return fail(taken.error());
  return page;
}

Result<std::optional<TaskRecord>> SqliteReads::task(JobId job, const std::string& name) {
  const TaskName wanted = parse_task_name(name);
  Statement find = db_.prepare(
      "SELECT s.grp, s.spec, g.next, g.rest, g.rest_reason FROM task_specs s LEFT JOIN task_groups g ON "
      "g.job = s.job AND "
      "g.grp = s.grp WHERE s.job = ? AND s.name = ?");
  find.bind(job.value()).bind(wanted.group);
  auto row = find.step();
  if (!row) return fail(row.error());
  if (!*row) return std::nullopt;
  auto range = range_at(find, 0);
  if (!range) return fail(range.error());
  if (range->count.has_value() != wanted.index.has_value() ||
      (wanted.index && *wanted.index >= range->count.value_or(1)))
    return std::nullopt;
  const std::uint32_t index = wanted.index.value_or(0);
  if (index >= range->next) return rest_task(job, *range, index);
  Statement placed = db_.prepare("SELECT * FROM tasks WHERE job = ? AND grp = ? AND idx = ?");
  return first_row<TaskRecord>(placed.bind(job.value()).bind(range->group).bind(index), task_from);
}

Result<std::vector<AttemptRecord>> SqliteReads::attempts(const TaskRef& task) {
  Statement ask =
      db_.prepare("SELECT * FROM attempts WHERE job = ? AND grp = ? AND idx = ? ORDER BY attempt");
  return rows<AttemptRecord>(ask.bind(task.job.value()).bind(task.group).bind(task.index), attempt_from);
}

Result<std::vector<std::vector<AttemptRecord>>> SqliteReads::attempts_of(const std::vector<TaskRef>& tasks) {
  std::vector<std::vector<AttemptRecord>> all(tasks.size());
  const std::string wanted = as_json(tasks);
  Statement ask = db_.prepare(
      "SELECT a.*, k.key FROM json_each(?) k CROSS JOIN attempts a ON a.job = k.value ->> 0 AND a.grp = "
      "k.value "
      "->> 1 AND a.idx = k.value ->> 2 ORDER BY k.key, a.attempt");
  ask.bind(wanted);
  for (;;) {
    auto row = ask.step();
    if (!row) return fail(row.error());
    if (!*row) return all;
    all[large(ask, 18)].push_back(attempt_from(ask));
  }
}

Result<std::vector<AttemptRecord>> SqliteReads::job_attempts(JobId job,
                                                             const std::optional<AttemptKey>& after,
                                                             std::uint32_t limit) {
  const AttemptKey from = after.value_or(AttemptKey{{job, 0, 0}, 0});
  Statement ask = db_.prepare(
      "SELECT * FROM attempts WHERE job = ? AND (grp, idx, attempt) > (?, ?, ?) ORDER BY grp, idx, attempt "
      "LIMIT ?");
  ask.bind(job.value()).bind(from.task.group).bind(from.task.index).bind(from.attempt).bind(limit);
  return rows<AttemptRecord>(ask, attempt_from);
}

}  // namespace slipway::store
