// What a controller needs to continue, read when it is loaded.
#include <fmt/format.h>

#include "store/rows.h"
#include "store/sqlite_store.h"
#include "wire/job_file.h"
#include "wire/pool.h"

namespace slipway::store {

Result<control::Loaded> SqliteStore::load() {
  control::Loaded loaded;
  {
    Statement ask = db_->prepare("SELECT * FROM pools ORDER BY created_at");
    std::optional<Error> damaged;
    auto pools = rows<PoolRecord>(ask, [&](const Statement& row) { return pool_from(row, damaged); });
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
      return TokenRecord{row.text(0), row.text(1), row.text(2), static_cast<Role>(row.integer(3)),
                         row.text(4), time_at(row, 5), row.text(6), row.text(7),
                         row.is_null(8) ? std::nullopt : std::optional(small(row, 8)), maybe_time(row, 9),
                         maybe_time(row, 10),
                         // What cannot be read lets in no further than to look.
                         parse_token_scope(row.text(11)).value_or(TokenScope::read), row.text(12),
                         row.text(13)};
    });
    if (!tokens) return fail(tokens.error());
    loaded.tokens = std::move(*tokens);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM users");
    auto users = rows<UserRecord>(ask, user_from);
    if (!users) return fail(users.error());
    loaded.users = std::move(*users);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM members");
    auto members = rows<MemberRecord>(ask, member_from);
    if (!members) return fail(members.error());
    loaded.members = std::move(*members);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM folders");
    auto folders = rows<FolderRecord>(ask, folder_from);
    if (!folders) return fail(folders.error());
    loaded.folders = std::move(*folders);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM datastores");
    auto datastores = rows<DatastoreRecord>(ask, datastore_from);
    if (!datastores) return fail(datastores.error());
    loaded.datastores = std::move(*datastores);
  }
  {
    auto quotas = load_quotas();
    if (!quotas) return fail(quotas.error());
    loaded.quotas = std::move(*quotas);
    auto disk = load_disk_use();
    if (!disk) return fail(disk.error());
    loaded.disk = std::move(*disk);
  }
  {
    Statement ask = db_->prepare("SELECT * FROM secrets");
    auto secrets = rows<SecretRecord>(ask, secret_from);
    if (!secrets) return fail(secrets.error());
    loaded.secrets = std::move(*secrets);
  }
  {
    Statement ask = db_->prepare("SELECT folder FROM removals");
    auto removals = rows<std::string>(ask, [](const Statement& row) { return row.text(0); });
    if (!removals) return fail(removals.error());
    loaded.removals = std::move(*removals);
  }
  {
    Statement ask = db_->prepare("SELECT node, folder FROM node_removals");
    auto removals = rows<std::pair<NodeId, std::string>>(
        ask, [](const Statement& row) { return std::pair(NodeId{large(row, 0)}, row.text(1)); });
    if (!removals) return fail(removals.error());
    loaded.node_removals = std::move(*removals);
  }
  {
    Statement ask = db_->prepare("SELECT time FROM events ORDER BY id DESC LIMIT 1");
    auto row = ask.step();
    if (!row) return fail(row.error());
    if (*row) loaded.recorded_until = time_at(ask, 0);
  }
  {
    auto turns = load_turns();
    if (!turns) return fail(turns.error());
    loaded.turns = std::move(*turns);
    loaded.saved = last_turn();
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
    auto whole = live_job(job);
    if (!whole) return fail(whole.error());
    loaded.jobs.push_back(std::move(*whole));
  }
  return loaded;
}

Result<control::LiveJob> SqliteStore::live_job(const JobRecord& job) {
  auto usage = reads_.job_usage(job.id);
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

Result<std::vector<TaskRecord>> SqliteStore::unsuccessful_tasks(JobId job, std::uint32_t limit) {
  Statement ask = db_->prepare(
      "SELECT * FROM tasks INDEXED BY tasks_failed WHERE job = ? AND state > 5 ORDER BY grp, idx LIMIT ?");
  return rows<TaskRecord>(ask.bind(job.value()).bind(limit), task_from);
}

Result<std::vector<GroupRecord>> SqliteStore::group_records(JobId job) {
  Statement ask = db_->prepare("SELECT * FROM task_groups WHERE job = ? ORDER BY grp");
  return rows<GroupRecord>(ask.bind(job.value()), [](const Statement& row) {
    return GroupRecord{JobId{large(row, 0)}, small(row, 1),
                       small(row, 2),        static_cast<TaskState>(row.integer(3)),
                       counts_at(row, 4),    row.text(11)};
  });
}

}  // namespace slipway::store
