// Faults of the store, the service, nodes and GPUs. Those of messages are in network.cpp, those of processes
// in sim_node.cpp.
#include "sim/world.h"

namespace slipway::sim {

void World::maybe_fault() {
  if (chance(odds_.store_fails)) {
    store_->fail_saves(true);
    store_works_at_ = now_ + between(1ms, 5s);
  }
  if (store_works_at_ <= now_) store_->fail_saves(false);
  if (!is_read_only_ && !is_stopping_ && chance(odds_.service_stops)) {
    controller_->set_now(now_);
    controller_->begin_stop();
    is_stopping_ = true;
  }
  if (!service_paused_at_ && chance(odds_.service_pauses)) {
    ++tally_["service.paused"];
    service_paused_at_ = now_;
    service_continues_at_ = now_ + between(500ms, 12s);
  }
  if (!nodes_.empty() && chance(odds_.node_fault)) node_fault(any_node());
}

void World::node_fault(SimNode& node) {
  double drawn = random_.unit() * (odds_.cut + odds_.agent_dies + odds_.keeper_dies + odds_.reinstall +
                                   odds_.connection_drops + odds_.stop + odds_.gpu_change);
  const auto is = [&](double weight) { return (drawn -= weight) < 0; };
  if (is(odds_.cut)) {
    cut(node);
  } else if (is(odds_.agent_dies)) {
    ++tally_["agent.killed"];
    node.kill_agent_soon();
  } else if (is(odds_.keeper_dies)) {
    ++tally_["keeper.killed"];
    node.kill_keeper(now_);
  } else if (is(odds_.reinstall)) {
    ++tally_["node.reinstalled"];
    node.reinstall(now_);
  } else if (is(odds_.connection_drops)) {
    if (!node.session) return;
    ++tally_["connection.dropped"];
    break_session(*node.session);
  } else if (is(odds_.stop)) {
    stop(node);
  } else {
    change_gpus(node);
  }
  send_up(node);
}

// Nothing can cut what a node of the service's own machine says to it.
void World::cut(SimNode& node) {
  if (node.is_local()) return stop(node);
  const std::uint32_t kind = between(0, 2);
  ++tally_[kind == 0 ? "node.cut_off" : kind == 1 ? "node.cut_up" : "node.cut_down"];
  const TimePoint until = now_ + between(100ms, odds_.cut_max);
  if (kind != 2) node.up_cut_until = until;
  if (kind != 1) node.down_cut_until = until;
}

// SIGSTOP, to an agent, a keeper or both. Guards are not stopped: nothing would end a lease then.
void World::stop(SimNode& node) {
  const std::uint32_t kind = between(0, 2);
  ++tally_[kind == 0 ? "agent.paused" : kind == 1 ? "keeper.paused" : "agent_and_keeper.paused"];
  const TimePoint until = now_ + between(100ms, odds_.stop_max);
  if (kind != 1) node.stop_agent_until(until);
  if (kind != 0) node.stop_keeper_until(until);
}

// A GPU of the node's machine falls off the bus, or is back; the agent looks when it connects again.
void World::change_gpus(SimNode& node) {
  if (node.options().gpus.empty()) return;
  std::set<std::uint32_t>& gone = node.machine().gpus_gone;
  const std::vector<std::uint32_t>& gpus = node.options().gpus;
  const std::uint32_t gpu = gpus[between(0, static_cast<std::int64_t>(gpus.size()) - 1)];
  if (!gone.empty() && chance(0.6)) {
    ++tally_["gpu.returned"];
    gone.erase(gone.begin());
  } else if (gone.insert(gpu).second) {
    ++tally_["gpu.lost"];
  }
  if (node.session) break_session(*node.session);
}

}  // namespace slipway::sim
