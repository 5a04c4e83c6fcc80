#pragma once
// Accounting: what each user is charged for, and where the time of the nodes goes.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"
#include "domain/usage.h"

namespace slipway::control {

// A job becomes one that the pool's scheduler knows.
void admit(Turn& turn, Job& job);
void set_policy(Turn& turn, Pool& pool);
Result<void> change_policy(Turn& turn, const Caller& caller, PoolRecord& pool, const PolicyChange& change);
void restore_shares(Turn& turn, std::vector<ShareRecord> shares);
void charge(Turn& turn, Pool& pool, Attempt& attempt, std::uint32_t node_index, TimePoint since);
void discharge(Turn& turn, Pool& pool, Attempt& attempt, std::uint32_t node_index);
// What changed this turn, with the rest of it: use only changes its course when a task starts or ends.
void note_shares(Turn& turn);
// When the attempt gives its capacity on a node back at the latest, where it has a time limit.
std::optional<sched::KnownEnd> known_end(const Turn& turn, const Attempt& attempt, std::uint32_t node_index);
// What the part on that node is doing, or nullopt where it holds no capacity.
std::optional<Spent> doing(const Attempt& attempt, std::uint32_t node_index);
// Updates the meters to what the part is doing now.
void meter(Turn& turn, Attempt& attempt, std::uint32_t node_index);
void meter_all(Turn& turn, Attempt& attempt);
void count_node(Turn& turn, Node& node);
// Of an attempt that did not end well, what was computed since the last mark it left was in vain.
void lose_work(Turn& turn, Job& job, const Attempt& attempt);
void restore_usage(Turn& turn, Attempt& attempt);
void note_usage(Turn& turn);

}  // namespace slipway::control
