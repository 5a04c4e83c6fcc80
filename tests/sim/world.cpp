#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/people.h"

namespace slipway::sim {

World::World(std::uint64_t seed)
    : random_(seed), odds_(odds_of(seed, random_)), store_(store::make_memory_store()) {
  gpus_per_node_ = between(1, 2);
  create_pools();
  turn();
  faults_ = true;
  for (std::int64_t i = random_.between(odds_.far_nodes_min, odds_.far_nodes_max); i > 0; --i) {
    SimNode::Options far{fmt::format("far-{}", i), "joined", false, {}, {}};
    far.total = {between(1, 8) * 1000, 4ull << 30, between(0, 3)};
    for (std::uint32_t gpu = 0; gpu < far.total.gpus; ++gpu) far.gpus.push_back(2 * gpu + 1);
    Machine& machine = machines_[far.name];
    add_node(std::move(far), machine);
  }
  for (std::int64_t i = random_.between(1, odds_.jobs_first); i > 0; --i) submit();
}

// ── the service ──

control::Settings World::settings() const {
  control::Settings settings;
  settings.machine.total = {.cores = 64'000, .memory = 64ull << 30, .gpus = gpus_};
  // A service that starts counts the GPUs that are there.
  while (settings.machine.total.gpus > 0 && machine_.gpus_gone.contains(settings.machine.total.gpus - 1))
    --settings.machine.total.gpus;
  settings.reform_after = 200ms;
  return settings;
}

void World::load_controller() {
  controller_ = std::move(*control::Controller::load(*store_, settings(), random_.next(), now_));
  controller_->set_now(now_);
  is_stopping_ = false;
  quota_used_.clear();
}

void World::restart_service() {
  break_all_sessions();
  load_controller();
}

void World::turn() {
  if (is_read_only_) {
    if (!store_->probe()) return;
    is_read_only_ = false;
    restart_service();
  }
  controller_->set_now(now_);
  if (faults_ && chance(odds_.service_crashes)) {
    ++tally_["service.crashed_before_save"];
    return restart_service();
  }
  auto outputs = controller_->finish_turn();
  if (!outputs) {
    ++tally_["store.save_failed"];
    is_read_only_ = true;
    return restart_service();
  }
  check_turn(*outputs);
  if (faults_ && chance(odds_.service_crashes)) {
    ++tally_["service.crashed_after_save"];
    return restart_service();
  }
  for (auto& [session, message] : outputs->messages)
    schedule({now_, 0, session, false, std::nullopt, std::move(message)});
  for (const auto& [session, why] : outputs->closed) break_session(session);
  follow_local_nodes(outputs->local_nodes_changed);
  for (const auto& [workspace, name] : outputs->agents_stuck)  // as the provisioner does
    if (const auto node = nodes_.find(name); node != nodes_.end()) {
      ++tally_["agent.stuck"];
      node->second.kill_agent(now_);
      send_up(node->second);
    }
  if (is_stopping_ && controller_->is_stopped()) {
    ++tally_["service.stopped"];
    restart_service();
  }
}

// ── the local provisioner ──

void World::add_node(SimNode::Options options, Machine& machine) {
  const std::string name = options.name;
  nodes_.emplace(std::piecewise_construct, std::forward_as_tuple(name),
                 std::forward_as_tuple(std::move(options), machine, context(), now_));
}

// Agents for the nodes that should exist, none for the others; a service that stops starts none.
void World::follow_local_nodes(bool have_changed) {
  if (!have_changed && std::none_of(nodes_.begin(), nodes_.end(), [](const auto& one) {
        return one.second.is_local() && one.second.has_quit();
      }))
    return;
  std::set<std::string> wanted;
  for (const NodeRecord& record : controller_->local_nodes()) {
    wanted.insert(record.name);
    if (const auto node = nodes_.find(record.name); node != nodes_.end())
      node->second.assign_gpus(record.gpu_indices);
    else if (!is_stopping_)
      add_node({record.name, record.pool, true, record.total, record.gpu_indices}, machine_);
  }
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    if (node->second.is_local() && (!wanted.contains(node->first) || node->second.has_quit())) {
      std::erase_if(sessions_, [&](SessionId one) { return session_nodes_.at(one) == node->first; });
      node->second.remove();
      node = nodes_.erase(node);
    } else {
      ++node;
    }
  }
}

SimNode& World::any_node() {
  auto node = nodes_.begin();
  std::advance(node, random_.between(0, static_cast<std::int64_t>(nodes_.size()) - 1));
  return node->second;
}

// ── time ──

void World::step() {
  now_ += chance(faults_ ? 0.9 : 0.2) ? between(50us, 20ms) : between(10ms, 2s);
  if (service_paused_at_ && now_ < service_continues_at_) return run_nodes();
  continue_service();
  if (faults_) {
    maybe_fault();
    people_act();
  }
  dial();
  deliver();
  run_nodes();
  turn();
}

void World::continue_service() {
  const auto since = std::exchange(service_paused_at_, {});
  if (!since) return;
  controller_->set_now(now_);
  controller_->service_paused(now_ - *since);
}

void World::run_nodes() {
  for (auto& [name, node] : nodes_) {
    node.run(now_);
    send_up(node);
  }
}

void World::heal() {
  faults_ = false;
  continue_service();
  store_->fail_saves(false);
  machine_.gpus_gone.clear();
  for (auto& [name, machine] : machines_) machine.gpus_gone.clear();
  for (auto& [name, node] : nodes_) {
    node.up_cut_until = node.down_cut_until = now_;
    node.go_on(now_);
  }
  turn();
  restart_service();  // it finds the GPUs that are back
  controller_->set_now(now_);
  PoolRequest by_hand;
  by_hand.autoscale = Autoscale{};
  (void)controller_->resize_pool(ana, "lab", by_hand);
  (void)controller_->stop_resize(ana, "lab");
  for (const JobId id : acknowledged_) (void)controller_->update_job(ana, id, {.held = false});
  shrink_to_nothing();
  PolicyChange no_limits;
  no_limits.user_max_nodes = no_limits.user_max_running_tasks = 0;
  no_limits.job_max_nodes = no_limits.job_max_running_tasks = 0;
  const PoolRequest request{
      .dedicated = 12,  // enough for any gang that was accepted when the pool could grow
      .low_priority = 0,
      .evictions = EvictionRule{},
      .policy = std::move(no_limits)};
  if (auto resized = controller_->resize_pool(ana, "lab", request); !resized)
    history_.break_off("the healed pool could not be resized: " + resized.error().what);
  turn();
}

// GPUs are assigned when a node is added, and stay with it: those of nodes that lost some are scattered.
void World::shrink_to_nothing() {
  const PoolRequest request{.dedicated = 0, .low_priority = 0, .evictions = EvictionRule{}};
  if (auto resized = controller_->resize_pool(ana, "lab", request); !resized)
    history_.break_off("the healed pool could not be emptied: " + resized.error().what);
  const TimePoint end = now_ + 1h;
  do {
    step();
  } while (!controller_->local_nodes().empty() && now_ < end);
  if (now_ >= end) history_.break_off("the healed pool keeps nodes it should not have");
  controller_->set_now(now_);
}

// A node whose start task failed is reset, a drained one resumed.
void World::look_after_nodes() {
  controller_->set_now(now_);
  for (const NodeView& view : controller_->nodes(ana, "")) {
    if (view.node.state == NodeState::start_failed) (void)controller_->reset_node(ana, view.node.name);
    if (view.node.drained) (void)controller_->drain_node(ana, view.node.name, false);
  }
}

// Jobs of the joined pool may ask for more than ever joined; they wait, with a reason.
bool World::is_settled(JobId id) {
  const auto job = store_->job(id);
  return job && *job && (is_terminal((*job)->state) || (*job)->pool == "joined");
}

bool World::settles_within(Duration limit) {
  const TimePoint end = now_ + limit;
  while (now_ < end) {
    if (std::all_of(acknowledged_.begin(), acknowledged_.end(), [&](JobId id) { return is_settled(id); }))
      return true;
    if (!is_read_only_ && turns_ % 16 == 0) look_after_nodes();
    step();
  }
  return false;
}

control::Why World::why_of(JobId id) {
  const control::LiveView live = controller_->live({.job = id});
  return live.job ? control::explain(live) : control::explain_end(**store_->job(id));
}

std::string World::unsettled() {
  for (const JobId id : acknowledged_) {
    if (is_settled(id)) continue;
    std::string text = to_string(id) + ": " + why_of(id).answer;
    for (const NodeView& view : controller_->nodes(ana, "lab"))
      text += fmt::format("; {} {} {}", view.node.name, to_string(view.node.state), view.node.reason);
    return text;
  }
  return "";
}

}  // namespace slipway::sim
