#pragma once
// Start tasks: what a node runs once per boot before it takes work.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/turn.h"

namespace slipway::control {

// Whether the node may take work as far as its start task is concerned.
bool is_prepared(const State& state, const Node& node);
// Once per boot of the node: called when it says hello, with what it says it has of it.
void settle_start_task(Turn& turn, Node& node, const Hello& hello);
void begin_start_task(Turn& turn, Node& node);
void on_start_task_timeout(Turn& turn, Node& node, const StartTaskRun& run);
void on_start_task_ended(Turn& turn, Node& node, const ProcessEnded& ended);
void start_task_again(Turn& turn, Node& node, const StartTaskRun& run);
// Autoscaling replaces a node whose start task failed: nobody may be there to reset it.
void replace_node(Turn& turn, Node& node, const StartTaskRun& run);
void restore_start_task(Turn& turn, Node& node);
void stop_start_task(Turn& turn, Node& node);
void stop_start_tasks(Turn& turn);

}  // namespace slipway::control
