// Placing: a ready task becomes an attempt on nodes, and orders to their agents.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "base/check.h"
#include "control/controller.h"
#include "domain/gang.h"
#include "domain/layout.h"

namespace slipway::control {
namespace {

constexpr std::size_t specs_max = 256;     // parsed specs kept
constexpr double behind_task_max = 0.010;  // seconds; longer ones are worth a question each
constexpr double behind_seconds = 0.060;   // of work sent ahead to a node, at most
constexpr std::size_t behind_max = 128;    // tasks sent ahead to a node, at most

}  // namespace

void Controller::remember_spec(JobId job, std::uint32_t group, std::shared_ptr<const TaskSpec> spec) {
  specs_.emplace_front(std::pair{job, group}, std::move(spec));
  specs_by_key_[{job, group}] = specs_.begin();
  if (specs_.size() > specs_max) {
    specs_by_key_.erase(specs_.back().first);
    specs_.pop_back();
  }
}

Result<std::shared_ptr<const TaskSpec>> Controller::spec_of(JobId job, std::uint32_t group) {
  if (const auto found = specs_by_key_.find({job, group}); found != specs_by_key_.end()) {
    specs_.splice(specs_.begin(), specs_, found->second);
    return found->second->second;
  }
  std::shared_ptr<const TaskSpec> spec;
  for (const NewJob& fresh : changes_.jobs_new)  // submitted in this very turn, so not in the store yet
    if (fresh.job.id == job) spec = std::make_shared<const TaskSpec>(fresh.spec.tasks[group]);
  if (!spec) {
    auto stored = store_.task_spec(job, group);
    if (!stored) return fail(stored.error());
    spec = std::make_shared<const TaskSpec>(std::move(*stored));
  }
  remember_spec(job, group, spec);
  return spec;
}

void Controller::place_ready() {
  if (stopping_) return;
  for (auto& entry : pools_) {
    Pool& pool = entry.second;
    if (!pool.changed) continue;
    pool.changed = false;
    const auto place = [&](const sched::Shape& shape, const sched::Turn& turn,
                           const std::vector<NodeId>& nodes) {
      Job& job = jobs_.at(turn.job);
      const auto found = std::find_if(job.shapes.begin(), job.shapes.end(),
                                      [&](const Shape& one) { return one.need == shape; });
      place_on(pool, job, static_cast<std::uint32_t>(found - job.shapes.begin()), nodes, false);
    };
    const auto look_again =
        sched::plan(pool,
                    {now_, pool.record.policy.reserve_after.value_or(settings_.reserve_after),
                     [&](NodeId node, const Resources& need) { return free_by(node, need); }},
                    place);
    if (look_again) timers_.insert({*look_again, TimerKind::look_again, {}, {}, entry.first});
    place_behind(pool);
    grow_elastic(entry.first, pool);
    scale_by_demand(entry.first, pool);
  }
}

// Short tasks are sent to a busy node a little ahead, so that it need not ask for the next one each time one
// ends. Only what is first in the whole queue goes ahead, so nobody is overtaken; a node with tasks sent
// ahead takes nothing else until they have begun, so that both sides count its room alike.
void Controller::place_behind(Pool& pool) {
  struct Place {  // the node with the fewest ahead is next, then the oldest
    std::size_t ahead;
    NodeId id;
    std::size_t depth;
    bool operator>(const Place& other) const { return std::tie(ahead, id) > std::tie(other.ahead, other.id); }
  };
  std::priority_queue<Place, std::vector<Place>, std::greater<>> places;
  if (pool.record.slots_per_node > 0) return;  // the node itself does not count them
  std::optional<std::pair<sched::Shape, sched::Turn>> looked_for;
  while (const auto head = sched::first(pool, now_)) {
    const sched::Shape& need = head->first;
    Job& job = jobs_.at(head->second.job);
    const auto shape = std::find_if(job.shapes.begin(), job.shapes.end(),
                                    [&](const Shape& one) { return one.need == need; });
    const std::uint32_t next = shape->again.empty() ? shape->groups.front() : shape->again.front().group;
    if (job.groups[next].prepares || need.nodes != 1 || need.per_node.gpus > 0 || shape->seconds_mean < 0 ||
        shape->seconds_mean > behind_task_max)
      return;
    if (looked_for != *head) {  // once for all tasks of this shape
      looked_for = *head;
      places = {};
      pool.capacity.nodes().visit([&](NodeId id, const sched::Room&) {
        const Node& node = nodes_.at(id);
        if (!is_usable(node) || node.preparing > 0 || !fits(need.per_node, node.record.total) ||
            pool.capacity.is_kept(id))
          return;
        const double slots = std::max(
            1.0, static_cast<double>(node.record.total.cores) / std::max<Millicores>(1, need.per_node.cores));
        const auto depth = std::min(
            behind_max,
            static_cast<std::size_t>(behind_seconds / std::max(shape->seconds_mean, 0.0005) * slots));
        if (node.behind.size() < depth) places.push({node.behind.size(), id, depth});
      });
    }
    if (places.empty()) return;
    Place place = places.top();
    places.pop();
    place_on(pool, job, static_cast<std::uint32_t>(shape - job.shapes.begin()), {place.id}, true);
    if (store_problem_) return;
    if (++place.ahead < place.depth) places.push(place);
  }
}

Controller::Task& Controller::take_next(Job& job, std::uint32_t s) {
  Shape& shape = job.shapes[s];
  if (!shape.again.empty()) {
    const TaskRef ref = shape.again.front();
    shape.again.pop_front();
    return *find_task(ref);
  }
  const std::uint32_t g = shape.groups.front();
  Group& group = job.groups[g];
  const std::uint32_t index = group.next++;
  if (group.next == group.tasks) shape.groups.pop_front();
  if (!group.live) group.live = std::make_unique<std::map<std::uint32_t, Task>>();
  Task& task = (*group.live)[index];
  task.record.ref = {job.record.id, g, index};
  task.record.name = name_of(job, task.record.ref);
  return task;
}

void Controller::place_on(Pool& pool, Job& job, std::uint32_t s, std::vector<NodeId> nodes, bool behind) {
  Task& task = take_next(job, s);
  Group& group = job.groups[task.record.ref.group];
  if (job.shapes[s].groups.empty() && job.shapes[s].again.empty())
    pool.queue.remove(job.shapes[s].need, job.turn);
  else
    pool.queue.renew(job.shapes[s].need, job.turn, now_);  // it moves on: its wait begins anew
  recount(job, group, TaskState::queued, TaskState::starting);
  task.record.state = TaskState::starting;
  task.record.reason.clear();
  ++task.record.attempts;

  task.attempt = std::make_unique<Attempt>();
  Attempt& attempt = *task.attempt;
  attempt.record.key = {task.record.ref, task.record.attempts};
  const auto spec = spec_of(job.record.id, task.record.ref.group);
  if (!spec) {
    store_problem_ = spec.error();
    return;
  }
  if ((*spec)->is_elastic()) {
    nodes = widened(pool, **spec, std::move(nodes), more_allowed(pool, **spec, job.turn));
    if (nodes.size() < (*spec)->nodes) elastic_.insert(attempt.record.key);
  }
  attempt.record.nodes = nodes;
  attempt.record.placed_at = now_;
  attempt.record.is_launched = !launch::needs_preparing(**spec);
  attempt.released.assign(nodes.size(), false);
  attempt.holds.assign(nodes.size(), false);
  attempt.shares.assign(nodes.size(), 0);
  attempt.prepared.assign(nodes.size(), attempt.record.is_launched);
  attempt.record.gpus.resize(nodes.size());
  fill_processes(attempt, **spec);
  pool.sharing.start(job.turn);
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    Node& node = nodes_.at(nodes[n]);
    attempt.record.node_names.push_back(node.record.name);
    charge(pool, attempt, n, now_);
    node.attempts.insert(attempt.record.key);
    node.preparing += !attempt.record.is_launched;
    for (std::uint32_t gpu = 0; gpu < job.shapes[s].need.per_node.gpus; ++gpu)
      attempt.record.gpus[n].push_back(node.gpus_free.extract(node.gpus_free.begin()).value());
    if (behind)
      put_behind(node, attempt);
    else
      hold_room(node, attempt);
    refresh_node(node);
  }
  touch(task);
  touch(attempt);
  if (!attempt.record.is_launched) {
    timers_.insert({now_ + (*spec)->start_timeout, TimerKind::start_timeout, attempt.record.key, {}, {}});
    std::vector<PrepareOrder> orders = preparing_orders_of(attempt);
    for (std::uint32_t n = 0; n < orders.size(); ++n)
      orders_to(nodes_.at(nodes[n])).prepare.push_back(std::move(orders[n]));
    return;
  }
  const std::vector<StartOrder> orders = orders_of(attempt);
  if (store_problem_) return;
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    orders_to(nodes_.at(nodes[n])).start.push_back(orders[n]);
    nodes_.at(nodes[n]).outbox.start.back().behind = behind;
  }
}

void Controller::fill_processes(Attempt& attempt, const TaskSpec& spec) {
  const std::vector<Member> members = gang_of(spec, static_cast<std::uint32_t>(attempt.record.nodes.size()));
  attempt.processes_left = static_cast<std::uint32_t>(members.size());
  attempt.processes.reserve(members.size());
  attempt.needs.assign(attempt.record.nodes.size(), {});
  for (const Member& member : members)
    attempt.needs[member.node] = attempt.needs[member.node] + member.resources;
  for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
    Process& process = attempt.processes.emplace_back();
    process.node = members[rank].node;
    process.decides = decides(spec, members[rank]);
    process.waited_for = is_waited_for(spec, members[rank]);
    process.matters = matters(spec, members[rank]);
    if (is_named(spec, members.size())) process.name = member_name(members[rank], rank);
  }
}

std::vector<StartOrder> Controller::orders_of(const Attempt& attempt) {
  const auto spec = spec_of(attempt.record.key.task.job, attempt.record.key.task.group);
  if (!spec) {
    store_problem_ = spec.error();
    return {};
  }
  return launch::launch(**spec, placement_of(attempt, **spec));
}

// The mounts of a pool and of a task, where they lie.
std::vector<View::Place> Controller::places_of(const PoolRecord& pool, const std::vector<Mount>& own,
                                               std::optional<JobId> job) const {
  std::vector<View::Place> places;
  const auto add = [&](const Mount& mount) {
    if (mount.kind == MountKind::shared && !job) return;  // a start task has no job
    std::erase_if(places, [&](const View::Place& place) { return place.at == mount.at; });
    View::Place& place = places.emplace_back();
    place.at = mount.at;
    place.kind = mount.kind;
    place.read_only = mount.read_only;
    switch (mount.kind) {
      case MountKind::datastore: {
        const auto known = datastores_.find({pool.workspace, mount.what});
        const bool has_path = known != datastores_.end() && !known->second.path.empty();
        place.source = has_path ? known->second.path : datastore_folder(pool.workspace, mount.what);
        if (known != datastores_.end()) {
          place.url = known->second.url;
          place.key = known->second.key;
        }
        break;
      }
      case MountKind::path: place.source = mount.what; break;
      case MountKind::command: place.command = mount.what; break;
      case MountKind::shared: place.source = shared_folder(pool.workspace, *job); break;
      case MountKind::scratch: break;  // the tree itself is the job's
    }
    if (!mount.folder.empty() && !place.source.empty()) place.source += "/" + mount.folder;
  };
  for (const Mount& mount : pool.mounts) add(mount);
  for (const Mount& mount : own) add(mount);
  std::stable_sort(places.begin(), places.end(),
                   [](const View::Place& a, const View::Place& b) { return a.at < b.at; });
  return places;
}

launch::Placement Controller::placement_of(const Attempt& attempt, const TaskSpec& spec) {
  const AttemptKey& key = attempt.record.key;
  Job& job = jobs_.at(key.task.job);
  launch::Placement placement{
      key, job.record.workspace, name_of(job, key.task), job.record.source, {}, attempt.record.secret, {}};
  if (!spec.mount_root.empty()) {
    const PoolRecord& pool = pool_of(job).record;
    placement.places =
        places_of(pool.mount_root == spec.mount_root ? pool : PoolRecord{.workspace = pool.workspace},
                  spec.mounts, key.task.job);
  }
  for (std::uint32_t n = 0; n < attempt.record.nodes.size(); ++n) {
    const auto node = nodes_.find(attempt.record.nodes[n]);
    placement.nodes.push_back(
        {attempt.record.node_names[n], node == nodes_.end() ? "" : node->second.record.address,
         attempt.record.gpus[n],
         n < attempt.record.ports.size() ? attempt.record.ports[n] : std::vector<std::uint16_t>(),
         node == nodes_.end() ? "" : node->second.record.host, attempt.record.has_left(n),
         node == nodes_.end() ? 0 : node->second.record.total.gpus,
         node != nodes_.end() && node->second.record.shares_storage});
  }
  return placement;
}

}  // namespace slipway::control
