#pragma once
// The lifecycle of an attempt: what nodes report of it, how it is stopped, and what its end means for the
// task.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"

namespace slipway::control {

// Where the node is in the lists of the attempt, the record's and the members; past their end where it is
// not.
std::uint32_t node_index_of(const Attempt& attempt, NodeId node);
Member& member_of(Attempt& attempt, NodeId node);
void hold_capacity(Turn& turn, Node& node, Attempt& attempt);
void put_prefetched(Turn& turn, Node& node, Attempt& attempt);
// The agent does the same by itself as soon as capacity is free: oldest first, never overtaking.
void start_prefetched(Turn& turn, Node& node);
void on_process_started(Turn& turn, const ProcessStarted& started);
void on_process_ended(Turn& turn, NodeId node_id, const ProcessEnded& ended);
// May end the attempt, and with it the object: nothing of it is used afterwards.
void process_is_gone(Turn& turn, Attempt& attempt, std::uint32_t rank, TimePoint time);
// A node that came back says that it runs, and for how long.
void note_age(Turn& turn, const ProcessStarted& started);
void on_wall_time_over(Turn& turn, Attempt& attempt);
// Its processes are ordered to stop. It must not be stopping already.
void stop_attempt(Turn& turn, Attempt& attempt, AttemptEnd end);
// The processes of a node that is gone: they count as ended here; should the node come back, it must end them
// first.
void end_lost_processes(Turn& turn, NodeId node_id, const std::string& why);
void end_lost_processes(Turn& turn, NodeId node_id, const AttemptKey& key, const std::string& why);
void finish_attempt(Turn& turn, Job& job, Task& task);
// What its end means for its task. (task_ends.cpp) `was_terminated`: a node of it leaves by a rule that lets
// its tasks fail.
void settle_task(Turn& turn, Job& job, Task& task, const Attempt& attempt, bool was_terminated);
void end_task(Turn& turn, Job& job, Task& task, TaskState state, std::string reason);
std::vector<PrepareOrder> preparing_orders_of(Turn& turn, const Attempt& attempt);
void on_prepared(Turn& turn, Node& node, const Prepared& prepared);
// All that decide have ended well. Who works with them may still finish; servers are stopped when nobody is
// left to serve.
void begin_ending(Turn& turn, Attempt& attempt);
// One node may well have nothing to say while another computes; when none has, they are stuck.
void on_stall(Turn& turn, NodeId node_id, const AttemptKey& key, bool is_stalled);
void on_start_timeout(Turn& turn, Attempt& attempt);
// What was stopped before it was launched has no process that could say that it ended; nor has what was
// loaded with all its nodes gone.
void settle_unstarted(Turn& turn);

}  // namespace slipway::control
