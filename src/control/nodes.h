#pragma once
// Nodes and their sessions: how they join, what they report, how they are lost and come back.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/node_state.h"
#include "control/turn.h"
#include "domain/access.h"

namespace slipway::control {

bool is_usable(const State& state, const Node& node);
void update_capacity(Turn& turn, Node& node);
void refresh_node(Turn& turn, Node& node, const std::string& reason = {});  // NodeChanged
// Moves it to the state after the event; one that cannot happen in its state is a bug of the caller.
void advance(Turn& turn, Node& node, const NodeEvent& event, const std::string& reason);
NodeState fitness_of(const State& state, const Node& node);
// What is sent to the node when the turn is saved.
Orders& orders_to(Turn& turn, const Node& node);
void send_orders(Turn& turn, Node& node);
void send_all_orders(Turn& turn);
void on_hello(Turn& turn, SessionId session, const Caller& caller, const Hello& hello,
              const Credential& credential = {});
void on_report(Turn& turn, SessionId session, const Report& report);
void on_disconnect(Turn& turn, SessionId session);
void close_session(Turn& turn, Node& node, const std::string& why);  // its agent dials again
void lose_node(Turn& turn, Node& node, const std::string& why);
void on_node_lost(Turn& turn, const Caller& caller, const std::string& name, const std::string& why);
// To change it: the caller may.
Result<Node*> find_node_for(Turn& turn, const Caller& caller, const Access& access, const std::string& name);
Result<NodeView> drain_node(Turn& turn, const Caller& caller, const std::string& name, bool drained);
Result<NodeView> show_node(const State& state, const Caller& caller, const std::string& name);
std::vector<NodeView> list_nodes(const State& state, const Caller& caller, const std::string& pool);
// Why granted cores are not enforced on the node; empty: they are.
std::string cores_off_reason(const PoolRecord& pool, const NodeRecord& node);
NodeView node_view(const State& state, const Node& node);
// Once nothing runs any more, the agents of this machine are ordered to quit. One that is just dialling is
// waited for: it may still have processes to end.
void quit_if_stopped(Turn& turn);

}  // namespace slipway::control
