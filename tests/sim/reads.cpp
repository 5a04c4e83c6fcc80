#include "sim/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "domain/gang.h"

namespace slipway::sim {
namespace {

struct Shown {  // an attempt on a node
  AttemptRecord attempt;
  TaskSpec spec;
  std::size_t node_index = 0;
  Resources granted() const {
    Resources sum;
    for (const Member& member : gang_of(spec, static_cast<std::uint32_t>(attempt.nodes.size())))
      if (member.node == node_index) sum = sum + member.resources;
    return sum;
  }
};

// The attempt that is shown as job_1/train on a node; or why there is none.
Result<Shown> shown_on(const NodeView& node, const std::string& text, control::ReadStore& reads) {
  const auto wrong = [&](std::string_view what) {
    return fail(ErrorCode::internal, fmt::format("{} is shown on {} and {}", text, node.node.name, what));
  };
  const std::size_t slash = text.find('/');
  const auto id = parse_job_id(text.substr(0, slash));
  const auto job = id ? reads.job(*id) : Result<std::optional<JobRecord>>();
  if (!job || !*job) return wrong("its job is not stored");
  if (is_terminal((*job)->state)) return wrong("its job has ended");
  const auto task = reads.task(*id, text.substr(slash + 1));
  if (!task || !*task) return wrong("is not stored");
  if (!is_placed((*task)->state)) return wrong(fmt::format("is {}", to_string((*task)->state)));
  const auto attempts = reads.attempts((*task)->ref);
  if (!attempts || attempts->empty()) return wrong("has no attempt");
  Shown shown{attempts->back(), {}, 0};
  if (shown.attempt.ended_at) return wrong("its attempt has ended");
  const auto& nodes = shown.attempt.nodes;  // one that left and came back is there twice
  const auto last = std::find_if(nodes.rbegin(), nodes.rend(),
                                 [&](const AttemptNode& one) { return one.id == node.node.id; });
  if (last == nodes.rend()) return wrong("its attempt is on other nodes");
  shown.node_index = static_cast<std::size_t>(nodes.rend() - last) - 1;
  auto spec = reads.task_spec(*id, (*task)->ref.group);
  if (!spec) return wrong("has no spec");
  shown.spec = std::move(*spec);
  return shown;
}

// Capacity is held from when an attempt is placed; a prefetched one holds none until it starts. A node that
// prepares to join a gang holds some for it, and is not shown to run it yet.
std::string broken_node(const NodeView& node, bool may_be_joining, control::ReadStore& reads) {
  Resources least, most;
  std::vector<std::uint32_t> gpus;
  for (const std::string& text : node.running) {
    const auto shown = shown_on(node, text, reads);
    if (!shown) return shown.error().what;
    const Resources granted = shown->granted();
    most = most + granted;
    if (shown->attempt.started_at) least = least + granted;
    const auto& held = shown->attempt.nodes[shown->node_index].gpus;
    gpus.insert(gpus.end(), held.begin(), held.end());
  }
  if (!fits(least, node.used) || (!may_be_joining && !fits(node.used, most)))
    return fmt::format("{} uses {}, and its attempts were granted {}", node.node.name, describe(node.used),
                       describe(most));
  std::sort(gpus.begin(), gpus.end());
  const auto& granted = node.gpus_granted;
  if (may_be_joining ? !std::includes(granted.begin(), granted.end(), gpus.begin(), gpus.end())
                     : granted != gpus)
    return fmt::format("{} granted the GPUs {}, and its attempts have {}", node.node.name,
                       fmt::join(granted, ","), fmt::join(gpus, ","));
  return "";
}

std::string broken_pool(const control::Snapshot& snapshot, const PoolView& pool) {
  std::map<NodeState, std::uint32_t> states;
  NodeCounts present;
  for (const NodeView& node : snapshot.nodes) {
    if (node.node.workspace != pool.pool.workspace || node.node.pool != pool.pool.name) continue;
    ++states[node.node.state];
    present.of(node.node.low_priority) += !node.node.leaving;
  }
  std::map<NodeState, std::uint32_t> counted = pool.nodes;
  std::erase_if(counted, [](const auto& entry) { return entry.second == 0; });
  return states == counted && present == pool.present
             ? ""
             : fmt::format("pool {} counts other nodes than are shown", pool.pool.name);
}

TaskCounts counts_of(const std::vector<TaskView>& tasks) {
  TaskCounts counts;
  for (const TaskView& view : tasks) switch (view.task.state) {
      case TaskState::waiting: ++counts.waiting; break;
      case TaskState::queued: ++counts.queued; break;
      case TaskState::starting:
      case TaskState::running:
      case TaskState::stopping: ++counts.active; break;
      case TaskState::succeeded: ++counts.succeeded; break;
      case TaskState::failed: ++counts.failed; break;
      case TaskState::cancelled: ++counts.cancelled; break;
      case TaskState::skipped: ++counts.skipped; break;
    }
  return counts;
}

std::string broken_job(const control::Snapshot& snapshot, const JobRecord& job, control::ReadStore& reads) {
  constexpr std::uint32_t all = 100'000;
  const auto tasks = reads.tasks(job.id, {.state = {}, .after = {}, .limit = all});
  if (counts_of(*tasks) != job.counts)
    return fmt::format("{} counts other tasks than there are", to_string(job.id));
  const auto attempts = reads.job_attempts(job.id, std::nullopt, all);
  std::uint64_t live = 0;
  for (const AttemptRecord& attempt : *attempts) {
    if (attempt.ended_at) continue;
    ++live;
    const auto task = std::find_if(tasks->begin(), tasks->end(),
                                   [&](const TaskView& one) { return one.task.ref == attempt.key.task; });
    const std::string text = fmt::format("{}/{}", to_string(job.id), task->task.name);
    if (std::none_of(snapshot.nodes.begin(), snapshot.nodes.end(), [&](const NodeView& node) {
          return std::find(node.running.begin(), node.running.end(), text) != node.running.end();
        }))
      return fmt::format("{} has a live attempt and is shown on no node", text);
  }
  return live == job.counts.active ? ""
                                   : fmt::format("{} has {} live attempts and {} active tasks",
                                                 to_string(job.id), live, job.counts.active);
}

}  // namespace

std::string broken_snapshot(const control::Snapshot& snapshot, control::ReadStore& reads) {
  for (const PoolView& pool : snapshot.pools)
    if (std::string broken = broken_pool(snapshot, pool); !broken.empty()) return broken;
  // Which nodes are preparing to join a gang is not shown; they may where there is one that could grow.
  std::set<std::string> growing;  // pools
  for (const JobState state : {JobState::running, JobState::stopping}) {
    const auto jobs =
        reads.jobs({.workspace = "default", .state = state, .name = {}, .before = {}, .limit = 1'000});
    for (const JobRecord& job : *jobs) {
      if (growing.contains(job.pool)) continue;
      const auto spec = reads.job_spec(job.id, 100);
      if (std::any_of(spec->tasks.begin(), spec->tasks.end(),
                      [](const TaskSpec& task) { return task.framework_elastic; }))
        growing.insert(job.pool);
    }
  }
  for (const NodeView& node : snapshot.nodes)
    if (std::string broken = broken_node(node, growing.contains(node.node.pool), reads); !broken.empty())
      return broken;
  return "";
}

std::string broken_rows(const control::Snapshot& snapshot, control::Store& store) {
  const auto loaded = store.load();
  if (loaded->pools.size() != snapshot.pools.size() || loaded->nodes.size() != snapshot.nodes.size())
    return "other pools or nodes are shown than are stored";
  for (const PoolRecord& pool : loaded->pools)
    if (const auto view = snapshot.pool(pool.workspace, pool.name); !view || view->pool != pool)
      return fmt::format("pool {} is shown otherwise than it is stored", pool.name);
  for (NodeRecord node : loaded->nodes) {
    const auto view = snapshot.node(node.workspace, node.name);
    if (view) {  // shown with what follows from its pool
      node.cpu_limit = view->node.cpu_limit;
      node.cpu_limit_reason = view->node.cpu_limit_reason;
    }
    if (!view || view->node != node)
      return fmt::format("node {} is shown otherwise than it is stored", node.name);
  }
  const auto reads = store.open_reader();
  for (const control::LiveJob& live : loaded->jobs)
    if (std::string broken = broken_job(snapshot, live.job, **reads); !broken.empty()) return broken;
  return "";
}

}  // namespace slipway::sim
