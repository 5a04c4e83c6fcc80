#include "store/rows.h"

#include <algorithm>
#include <charconv>

#include "wire/pool.h"

namespace slipway::store {
namespace {

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
    AttemptNode& node = attempt.nodes.emplace_back();
    node.id = NodeId{id};
    node.name = item.substr(equals + 1, slash - equals - 1);
    for (std::string_view rest = item.substr(slash + 1); !rest.empty();) {
      std::uint32_t gpu = 0;
      const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), gpu);
      node.gpus.push_back(gpu);
      rest.remove_prefix(std::min(rest.size(), static_cast<std::size_t>(stop - rest.data()) + 1));
    }
  }
}

// See pack_launch. The nodes are known.
void unpack_launch(std::string_view text, AttemptRecord& attempt) {
  attempt.is_launched = true;
  const auto take = [&] {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return item;
  };
  attempt.secret = take();
  for (AttemptNode& node : attempt.nodes) {
    std::string_view item = take();
    node.has_left = item.starts_with('!');
    if (node.has_left) item.remove_prefix(1);
    while (!item.empty() && item != "-") {
      const std::size_t end = std::min(item.find(','), item.size());
      std::uint16_t port = 0;
      std::from_chars(item.data(), item.data() + end, port);
      node.ports.push_back(port);
      item.remove_prefix(std::min(end + 1, item.size()));
    }
  }
}

}  // namespace

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

JobRecord job_from(const Statement& row) {
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
  job.held_by = row.text(28);
  if (!row.is_null(29)) job.retain = Duration(row.integer(29));
  job.is_pinned = row.integer(30) != 0;
  return job;
}

PoolRecord pool_from(const Statement& row, std::optional<Error>& damaged) {
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
}

TaskRecord task_from(const Statement& row) {
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
  task.attempts_before = small(row, 12);
  return task;
}

AttemptRecord attempt_from(const Statement& row) {
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
  attempt.lease = Duration(row.integer(17));
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

EventRecord event_from(const Statement& row) {
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
}

FolderRecord folder_from(const Statement& row) {
  return {row.text(0), row.text(1), unpack_environment(row.text(2)), time_at(row, 3), time_at(row, 4)};
}

DatastoreRecord datastore_from(const Statement& row) {
  return {row.text(0), row.text(1), row.text(2), row.text(3), row.text(4), row.text(6), time_at(row, 5)};
}

SecretRecord secret_from(const Statement& row) {
  return {{row.text(0), row.text(1), row.text(2)},
          row.text(3),
          unpack_lines(row.text(4)),
          row.text(5),
          time_at(row, 6)};
}
UserRecord user_from(const Statement& row) {
  return {row.text(0),        row.integer(1) != 0, row.integer(2) != 0, row.text(3), row.text(4),
          maybe_time(row, 5), row.text(6),         time_at(row, 7),     row.text(8)};
}
MemberRecord member_from(const Statement& row) {
  // A role that cannot be read lets in no further than to look.
  return {row.text(0), row.text(1), parse_role(row.text(2)).value_or(Role::viewer)};
}

std::vector<std::string> unpack_node_names(std::string_view nodes) {
  AttemptRecord attempt;
  unpack_nodes(nodes, attempt);
  return attempt.node_names();
}

}  // namespace slipway::store
