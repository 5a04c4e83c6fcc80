#include "control/dependencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "control/jobs.h"
#include "control/task_state.h"

namespace slipway::control {

bool is_over(const Counts& counts) { return counts.waiting + counts.queued + counts.active == 0; }

Met is_met(Needs needs, const Counts& counts) {
  const bool over = is_over(counts);
  switch (needs) {
    case Needs::success:
      if (counts.failed + counts.cancelled + counts.skipped > 0) return Met::never;
      return over ? Met::yes : Met::not_yet;
    case Needs::end: return over ? Met::yes : Met::not_yet;
    case Needs::failure:
      if (!over) return Met::not_yet;
      return counts.failed > 0 ? Met::yes : Met::never;
  }
  return Met::never;
}

void end_rest(Turn& turn, Job& job, std::uint32_t g, TaskState state, const std::string& reason) {
  Group& group = job.groups[g];
  if (is_terminal(group.rest)) return;
  const std::uint32_t left = group.tasks - group.next;
  if (left > 0) {
    recount(turn, job, group, group.rest, state, left);
    group.rest_reason = reason;
  }
  advance(group.rest, ending(state));
  turn.effects.touch(job, g);
}

// Whether something waits for the group although what it needs of it has come or never will.
static void settle(Turn& turn, Job& job, std::uint32_t from, const std::string& cause,
                   std::vector<std::pair<std::uint32_t, std::string>>& open) {
  Group& group = job.groups[from];
  // What has come is counted once, when the last of its tasks ends.
  const bool is_settled = std::exchange(group.is_settled, is_over(group.counts));
  for (auto edge = std::lower_bound(job.edges.begin(), job.edges.end(), Edge{from, 0, Needs::success});
       edge != job.edges.end() && edge->from == from; ++edge) {
    Group& dependent = job.groups[edge->to];
    const Met met = is_met(edge->needs, group.counts);
    if (dependent.rest != TaskState::waiting || met == Met::not_yet) continue;
    if (met == Met::yes) {
      if (!is_settled && --dependent.waits_for == 0) make_ready(turn, job, edge->to);
      continue;
    }
    const std::string why =
        edge->needs == Needs::failure ? fmt::format("no task of {} failed", group.name) : cause;
    record_event(turn, "task.skipped", &job, dependent.name, std::nullopt,
                 fmt::format("{} was skipped: {}", dependent.name, why));
    end_rest(turn, job, edge->to, TaskState::skipped, why);
    open.emplace_back(edge->to, why);
  }
}

void settle_dependents(Turn& turn, Job& job, std::uint32_t g, const std::string& cause) {
  std::vector<std::pair<std::uint32_t, std::string>> open{{g, cause}};
  while (!open.empty()) {
    const auto [from, why] = std::move(open.back());
    open.pop_back();
    settle(turn, job, from, why, open);
  }
}

}  // namespace slipway::control
