#include "control/turn.h"

#include <algorithm>

namespace slipway::control {

Result<std::shared_ptr<const TaskSpec>> spec_of(const Turn& turn, JobId job, std::uint32_t group) {
  if (auto known = turn.specs.find(job, group)) return known;
  for (const NewJob& fresh : turn.effects.changes.jobs_new)  // not in the store yet
    if (fresh.job.id == job)
      return turn.specs.add(job, group, std::make_shared<const TaskSpec>(fresh.spec.tasks[group]));
  return turn.specs.read(job, group);
}

TimePoint recording_time(Turn& turn) {
  return turn.state.recorded_until = std::max(turn.state.recorded_until, turn.now);
}

void record_event(Turn& turn, std::string kind, const Job* job, std::string_view task,
                  std::optional<std::uint32_t> attempt, std::string text, std::string node,
                  std::string pool) {
  EventRecord record;
  record.id = ++turn.state.event_last;
  record.time = recording_time(turn);
  record.kind = std::move(kind);
  if (job) {
    record.workspace = job->record.workspace;
    record.job = job->record.id;
    if (pool.empty()) pool = job->record.pool;
  }
  record.task = task;
  record.attempt = attempt;
  record.node = std::move(node);
  record.pool = std::move(pool);
  record.text = std::move(text);
  turn.effects.changes.events.push_back(std::move(record));
}

void record_event_in(Turn& turn, const std::string& workspace, std::string kind, std::string text,
                     std::string node, std::string pool) {
  record_event(turn, std::move(kind), nullptr, {}, std::nullopt, std::move(text), std::move(node),
               std::move(pool));
  turn.effects.changes.events.back().workspace = workspace;
}

}  // namespace slipway::control
