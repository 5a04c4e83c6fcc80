#pragma once
// When a node without contact is given up, and what runs on it with it. See domain/lease.h.
//
// Time counts against a node only while the service ran and had read everything that nodes may have sent.
#include "control/turn.h"

namespace slipway::control {

// The lease a task gets when it is placed on nodes of other machines: the pool's, or a longer one where the
// task is to be kept, or where no other node could take it.
Duration lease_of(const Pool& pool, const TaskSpec& spec, const sched::Shape& need);

// 0 on nodes of this machine: whether their processes run is enough.
Duration lease_on(const Attempt& attempt, const Node& node);

// Whether processes of an attempt that the service must not start elsewhere may still run on the node.
bool is_leased(const Turn& turn, const Node& node);

Duration heartbeat_of(const Turn& turn, const Node& node);

// Nodes learn with their Welcome how often to report. Where a shorter lease wants it more often, they are
// made to dial again, which takes a tenth of a second; until then nothing is placed there.
void on_lease_changed(Turn& turn, const Pool& pool, Duration before);

void on_heard(Turn& turn, Node& node);
void watch_lease(Turn& turn, Node& node);  // after it joined or was loaded
void on_heartbeat_due(Turn& turn, Node& node);

// Everything that nodes sent before `until` has been applied.
void on_all_received(Turn& turn, TimePoint until);
// The service did not run for so long: no node is held to that.
void on_pause(Turn& turn, Duration pause);

}  // namespace slipway::control
