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
  for (SimNode::Outgoing& out : std::exchange(node.outgoing, {})) {
    if (out.message)
      schedule({now_, 0, out.session, true, std::move(out.message), std::nullopt});
    else
      close_session(out.session, true);
  }
}

// As TCP has it: what is sent while a direction is cut arrives when it no longer is.
bool World::is_cut(const Flight& flight) const {
  const auto session = session_nodes_.find(flight.session);
  if (session == session_nodes_.end()) return false;
  const auto node = nodes_.find(session->second);
  if (node == nodes_.end()) return false;
  return (flight.to_service ? node->second.up_cut_until : node->second.down_cut_until) > now_;
}

void World::deliver() {
  const auto later = std::partition(flights_.begin(), flights_.end(), [&](const Flight& flight) {
    return flight.at <= now_ && !is_cut(flight);
  });
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
  if (!flight.up) {
    if (sessions_.erase(flight.session) > 0) controller_->disconnected(flight.session);
  } else if (auto* hello = std::get_if<Hello>(&*flight.up)) {
    if (sessions_.contains(flight.session)) controller_->hello(flight.session, ana, *hello);
  } else {
    controller_->report(flight.session, std::get<Report>(*flight.up));
  }
}

void World::deliver_down(Flight& flight) {
  const auto session = session_nodes_.find(flight.session);
  const auto node = session == session_nodes_.end() ? nodes_.end() : nodes_.find(session->second);
  if (node != nodes_.end()) node->second.receive(flight.session, std::move(flight.down));
}

void World::dial() {
  if (is_read_only_) return;
  for (auto& [name, node] : nodes_) {
    if (!node.may_dial(now_)) continue;
    const SessionId session{++session_last_};
    sessions_.insert(session);
    session_nodes_[session] = name;
    node.connect(session, now_);
  }
}

// One side has closed it; the other hears of that when it hears everything that was sent before, or at once
// where the path is free.
void World::close_session(SessionId session, bool by_agent) {
  Flight closed{now_, 0, session, by_agent, std::nullopt, std::nullopt};
  if (!by_agent) sessions_.erase(session);
  if (is_cut(closed)) {
    closed.order = ++flight_last_;
    flights_.push_back(std::move(closed));
  } else if (by_agent) {
    deliver_up(closed);
  } else {
    deliver_down(closed);
  }
}

void World::break_session(SessionId session) {
  if (!sessions_.contains(session)) return;
  if (!is_read_only_) controller_->disconnected(session);
  close_session(session, false);
}

void World::break_all_sessions() {
  for (const SessionId session : std::exchange(sessions_, {})) close_session(session, false);
}

}  // namespace slipway::sim
