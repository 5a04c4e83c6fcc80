// Elastic gangs: they take the nodes there are. A gang that could have more is started anew with them; where
// its framework can go on with other nodes (torchrun, Horovod), they come and go while it runs.
//
// Such a node gets ready like those a gang begins with, holding its room meanwhile, and becomes a part of the
// attempt, with the next rank, when it has said so: nothing is saved before. The first node never goes: the
// others meet there. When it is lost, or too few are left, the gang is started anew.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/controller.h"
#include "domain/gang.h"
#include "domain/layout.h"

namespace slipway::control {

// How many nodes more the limits of the pool and the job allow.
std::uint64_t Controller::more_allowed(const Pool& pool, const TaskSpec& spec,
                                       const sched::Turn& turn) const {
  const auto room = pool.sharing.room(turn);
  return room ? *room / pool.capacity.share(need_per_node(spec, spec.nodes)) : spec.nodes;
}

// More nodes, as far as they have room right now.
std::vector<NodeId> Controller::widened(const Pool& pool, const TaskSpec& spec, std::vector<NodeId> nodes,
                                        std::uint64_t nodes_max) const {
  const Resources need = need_per_node(spec, spec.nodes);
  const std::uint64_t most = std::min<std::uint64_t>(spec.nodes, nodes_max);
  std::set<NodeId> more;  // by id, so that the same room gives the same gang
  pool.capacity.nodes().visit([&](NodeId id, const sched::Room& room) {
    if (room.has(need) && std::find(nodes.begin(), nodes.end(), id) == nodes.end() &&
        !pool.capacity.is_kept(id))
      more.insert(id);
  });
  for (auto id = more.begin(); id != more.end() && nodes.size() < most; ++id) nodes.push_back(*id);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<NodeId> Controller::present_nodes(const Attempt& attempt) {
  std::vector<NodeId> nodes;
  for (std::uint32_t n = 0; n < attempt.record.nodes.size(); ++n)
    if (!attempt.record.has_left(n)) nodes.push_back(attempt.record.nodes[n]);
  return nodes;
}

// When nobody waits and there is room.
void Controller::grow_elastic(const std::string& pool_key, Pool& pool) {
  if (!pool.queue.empty()) return;
  for (const AttemptKey& key : elastic_) {
    Attempt* attempt = find_attempt(key);
    if (!attempt || attempt->stopping || attempt->is_ending || !attempt->record.started_at ||
        !attempt->joining.empty() || &pool_of(jobs_.at(key.task.job)) != &pool)
      continue;
    const auto spec = spec_of(key.task.job, key.task.group);
    if (!spec) {
      store_problem_ = spec.error();
      return;
    }
    const bool some_have_done =
        std::any_of(attempt->processes.begin(), attempt->processes.end(), [&](const Process& process) {
          return process.state == Process::State::ended && !attempt->record.has_left(process.node);
        });
    if (some_have_done) continue;  // soon the others will have, too
    const std::vector<NodeId> now = present_nodes(*attempt);
    std::vector<NodeId> more;
    const std::uint64_t allowed = now.size() + more_allowed(pool, **spec, jobs_.at(key.task.job).turn);
    for (const NodeId id : widened(pool, **spec, now, allowed))
      if (std::find(now.begin(), now.end(), id) == now.end() && !attempt->unwilling.contains(id))
        more.push_back(id);
    if (more.empty()) continue;
    const TimePoint due = std::max(*attempt->record.started_at, attempt->changed_at) + settings_.reform_after;
    if (due > now_) {
      timers_.insert({due, TimerKind::look_again, {}, {}, pool_key});
      continue;
    }
    if (!(*spec)->framework_elastic)
      return stop_attempt(
          *attempt, EndReason::evicted,
          fmt::format("it is started anew with {} nodes instead of {}, as there is room for it",
                      now.size() + more.size(), now.size()));
    for (const NodeId id : more) invite(*attempt, nodes_.at(id), **spec);
  }
}

void Controller::invite(Attempt& attempt, Node& node, const TaskSpec& spec) {
  const Resources need = need_per_node(spec, spec.nodes);
  std::vector<std::uint32_t>& gpus = attempt.joining[node.record.id];
  for (std::uint32_t gpu = 0; gpu < need.gpus; ++gpu)
    gpus.push_back(node.gpus_free.extract(node.gpus_free.begin()).value());
  node.joining.insert(attempt.record.key);
  node.used = node.used + need;
  ++node.preparing;
  update_capacity(node);
  launch::Placement placement = placement_of(attempt, spec);
  placement.nodes.push_back({node.record.name, node.record.address, gpus, {}, node.record.host, false});
  orders_to(node).prepare.push_back(std::move(launch::prepare(spec, placement).back()));
}

// Gives back what was kept there for it; the GPUs are the caller's.
std::vector<std::uint32_t> Controller::uninvite(Attempt& attempt, Node& node) {
  const auto spec = spec_of(attempt.record.key.task.job, attempt.record.key.task.group);
  if (!spec) {
    store_problem_ = spec.error();
    return {};
  }
  attempt.changed_at = now_;
  node.joining.erase(attempt.record.key);
  node.used = node.used - need_per_node(**spec, (*spec)->nodes);
  --node.preparing;
  return std::move(attempt.joining.extract(node.record.id).mapped());
}

void Controller::uninvite_all(Attempt& attempt) {
  while (!attempt.joining.empty() && !store_problem_) {
    Node& node = nodes_.at(attempt.joining.begin()->first);
    for (const std::uint32_t gpu : uninvite(attempt, node)) node.gpus_free.insert(gpu);
    orders_to(node).stop.push_back({attempt.record.key, Duration(0), {}, {}});
    update_capacity(node);
  }
}

void Controller::uninvite_all(Node& node) {
  while (!node.joining.empty() && !store_problem_) {
    Attempt& attempt = *find_attempt(*node.joining.begin());
    for (const std::uint32_t gpu : uninvite(attempt, node)) node.gpus_free.insert(gpu);
  }
  update_capacity(node);
}

void Controller::join_gang(Attempt& attempt, Node& node, const Prepared& prepared) {
  AttemptRecord& record = attempt.record;
  std::vector<std::uint32_t> gpus = uninvite(attempt, node);
  const auto spec = spec_of(record.key.task.job, record.key.task.group);
  if (!spec) {
    store_problem_ = spec.error();
    return;
  }
  const Job& job = jobs_.at(record.key.task.job);
  const std::string task = name_of(job, record.key.task);
  if (!prepared.problem.empty()) {
    for (const std::uint32_t gpu : gpus) node.gpus_free.insert(gpu);
    attempt.unwilling.insert(node.record.id);
    update_capacity(node);
    return event(
        "attempt.not_joined", &job, task, record.key.attempt,
        fmt::format("node {} could not get ready for {}: {}", node.record.name, task, prepared.problem),
        node.record.name);
  }
  const auto place = static_cast<std::uint32_t>(record.nodes.size());
  record.nodes.push_back(node.record.id);
  record.node_names.push_back(node.record.name);
  record.gpus.push_back(std::move(gpus));
  record.ports.resize(place);
  record.ports.push_back(prepared.ports);
  attempt.released.push_back(false);
  attempt.holds.push_back(false);
  attempt.shares.push_back(0);
  attempt.prepared.push_back(true);
  const std::vector<Member> members = gang_of(**spec, place + 1);
  SLIPWAY_CHECK(members.size() == attempt.processes.size() + 1);  // a launcher a node
  attempt.needs.push_back(members.back().resources);
  charge(pool_of(node), attempt, place, now_);
  // Its framework decides what its end means: it may have come when all was over.
  attempt.processes.push_back({Process::State::sent, place, false, is_waited_for(**spec, members.back()),
                               false, member_name(members.back(), place)});
  ++attempt.processes_left;
  node.attempts.insert(record.key);
  hold_room(node, attempt);
  refresh_node(node);
  attempt.changed_at = now_;
  if (present_nodes(attempt).size() >= (*spec)->nodes) elastic_.erase(record.key);
  touch(attempt);
  event("attempt.node_joined", &job, task, record.key.attempt,
        fmt::format("{} joined {}, which has {} nodes now", node.record.name, task,
                    present_nodes(attempt).size()),
        node.record.name);
  std::vector<StartOrder> orders = orders_of(attempt);
  if (store_problem_) return;
  orders_to(node).start.push_back(std::move(orders[place]));
  tell_hosts(attempt, **spec);
}

bool Controller::can_lose(const Attempt& attempt, std::uint32_t node_place) {
  const auto spec = spec_of(attempt.record.key.task.job, attempt.record.key.task.group);
  if (!spec) {
    store_problem_ = spec.error();
    return false;
  }
  return (*spec)->framework_elastic && attempt.record.started_at && !attempt.stopping && node_place > 0 &&
         !attempt.record.has_left(node_place) && present_nodes(attempt).size() > (*spec)->nodes_min;
}

// A node is gone, or shall go: its gang goes on without it, or ends.
void Controller::lose_part(Attempt& attempt, std::uint32_t node_place, EndReason reason,
                           const std::string& why) {
  if (attempt.stopping || attempt.record.has_left(node_place)) return;
  if (can_lose(attempt, node_place))
    leave_gang(attempt, node_place, why);
  else
    stop_attempt(attempt, reason, why);
}

void Controller::leave_gang(Attempt& attempt, std::uint32_t node_place, const std::string& why) {
  AttemptRecord& record = attempt.record;
  record.left.resize(record.nodes.size());
  record.left[node_place] = true;
  for (Process& process : attempt.processes)
    if (process.node == node_place) process.decides = process.matters = process.waited_for = false;
  attempt.changed_at = now_;
  elastic_.insert(record.key);
  touch(attempt);
  const auto spec = spec_of(record.key.task.job, record.key.task.group);
  if (!spec) {
    store_problem_ = spec.error();
    return;
  }
  const Job& job = jobs_.at(record.key.task.job);
  const std::string task = name_of(job, record.key.task);
  event("attempt.node_left", &job, task, record.key.attempt,
        fmt::format("{} goes on without {}: {}", task, record.node_names[node_place], why),
        record.node_names[node_place]);
  if (const auto node = nodes_.find(record.nodes[node_place]); node != nodes_.end() && node->second.session)
    orders_to(node->second).stop.push_back(stop_order(attempt, **spec));
  tell_hosts(attempt, **spec);
}

// Whoever reads its host file again and again sees the gang as it is.
void Controller::tell_hosts(const Attempt& attempt, const TaskSpec& spec) {
  for (const NodeId id : present_nodes(attempt))
    if (const auto node = nodes_.find(id); node != nodes_.end() && node->second.session)
      tell_hosts(attempt, spec, node->second);
}

void Controller::tell_hosts(const Attempt& attempt, const TaskSpec& spec, Node& node) {
  const AttemptKey& key = attempt.record.key;
  const Job& job = jobs_.at(key.task.job);
  auto files = launch::files(spec, placement_of(attempt, spec));
  if (!files.empty())
    orders_to(node).files.push_back(
        {key, attempt_folder(job.record.workspace, key.task.job, name_of(job, key.task), key.attempt),
         std::move(files)});
}

}  // namespace slipway::control
