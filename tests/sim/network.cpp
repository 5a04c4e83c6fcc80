// The network of a world: sessions between agents and the service, and messages under way.
#include <algorithm>

#include "sim/people.h"
#include "sim/world.h"

namespace slipway::sim {

void World::schedule(Flight flight) {
  if (faults_ && chance(odds_.is_lost)) {
    ++tally_["message.lost"];
    return;
  }
  flight.order = ++flight_last_;
  // In order, but for those that are late.
  TimePoint& last = arrives_last_[{flight.session, flight.to_service}];
  flight.at = last = std::max(last, now_ + between(50us, 2ms));
  if (faults_ && chance(odds_.is_late)) flight.at += between(1ms, 3s);
  if (faults_ && chance(odds_.is_repeated)) {
    ++tally_["message.repeated"];
    Flight again = flight;
    again.at += between(0ms, 500ms);
    flights_.push_back(std::move(again));
  }
  flights_.push_back(std::move(flight));
}

void World::send_up(SimNode& node) {
  node.carry_out(now_);
  for (SimNode::Outgoing& out : std::exchange(node.outgoing, {})) {
    if (!out.message) {
      break_session(out.session);
    } else if (node.partitioned_until <= now_) {
      schedule({now_, 0, out.session, true, std::move(out.message), std::nullopt});
    }
  }
}

void World::deliver() {
  const auto later = std::partition(flights_.begin(), flights_.end(),
                                    [&](const Flight& flight) { return flight.at <= now_; });
  std::vector<Flight> arrived(std::make_move_iterator(flights_.begin()), std::make_move_iterator(later));
  flights_.erase(flights_.begin(), later);
  std::sort(arrived.begin(), arrived.end(), [](const Flight& a, const Flight& b) {
    return std::pair(a.at, a.order) < std::pair(b.at, b.order);
  });
  for (Flight& flight : arrived) {
    std::uint64_t& last = delivered_[{flight.session, flight.to_service}];
    tally_["message.reordered"] += flight.order < last;
    last = std::max(last, flight.order);
    flight.to_service ? deliver_up(flight) : deliver_down(flight);
  }
}

// Messages of sessions long gone are delivered too: the controller must not be misled by them.
void World::deliver_up(Flight& flight) {
  if (is_read_only_) return;
  if (auto* hello = std::get_if<Hello>(&*flight.up)) {
    if (sessions_.contains(flight.session)) controller_->hello(flight.session, ana, *hello);
  } else {
    controller_->report(flight.session, std::get<Report>(*flight.up));
  }
}

void World::deliver_down(Flight& flight) {
  const auto found = sessions_.find(flight.session);
  if (found == sessions_.end()) return;
  SimNode& node = nodes_.at(found->second);
  if (node.partitioned_until > now_) return;
  node.agent().received(flight.session, std::move(*flight.down), now_);
  send_up(node);
}

void World::dial() {
  if (is_read_only_) return;
  for (auto& [name, node] : nodes_) {
    if (node.session || node.has_quit() || node.dial_at > now_ || node.partitioned_until > now_) continue;
    const SessionId session{++session_last_};
    sessions_[session] = name;
    node.connect(session, now_);
    send_up(node);
  }
}

void World::break_session(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  SimNode& node = nodes_.at(found->second);
  sessions_.erase(found);
  if (node.session == session) {
    node.session.reset();
    node.agent().disconnected(session);
    node.dial_at = now_ + between(10ms, 1500ms);
  }
  if (!is_read_only_) controller_->disconnected(session);
}

void World::lose_session(SimNode& node) {
  if (!node.session) return;
  const SessionId session = *node.session;
  sessions_.erase(session);
  if (!is_read_only_) controller_->disconnected(session);
}

void World::break_all_sessions() {
  for (const auto& [session, name] : std::exchange(sessions_, {})) {
    SimNode& node = nodes_.at(name);
    node.session.reset();
    node.agent().disconnected(session);
    node.dial_at = now_ + between(10ms, 1500ms);
  }
}

}  // namespace slipway::sim
