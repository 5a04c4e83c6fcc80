// A recording as a simulation: the same jobs, nodes and durations, under the scheduler as it is now.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/quantity.h"
#include "domain/gang.h"
#include "simulate/figures.h"
#include "simulate/simulate.h"

namespace slipway::simulate {
namespace {

double took(const RecordedAttempt& attempt) {
  if (!attempt.started_at || !attempt.ended_at) return 0;
  return std::max(0.0, seconds(*attempt.ended_at - *attempt.started_at));
}

// Ended by the task's own doing. What ended with its node will be as long as its node lets it.
bool is_own_end(const RecordedAttempt& attempt) {
  return attempt.ended_at && attempt.started_at &&
         (attempt.end == EndReason::exited || attempt.end == EndReason::signalled ||
          attempt.end == EndReason::timed_out || attempt.end == EndReason::cancelled);
}

SimulatedJob simulated(const RecordedJob& recorded, TimePoint start) {
  SimulatedJob job;
  job.spec = recorded.spec;
  job.user = recorded.user;
  job.at = {recorded.submitted_at - start};
  if (recorded.state == JobState::cancelled && recorded.ended_at) job.cancelled = *recorded.ended_at - start;
  job.spec.source.clear();
  job.tasks.resize(job.spec.tasks.size());
  for (TaskSpec& task : job.spec.tasks) task.container = {};  // nothing is run, so nothing is needed for it
  for (const RecordedAttempt& attempt : recorded.attempts) {
    if (!is_own_end(attempt)) continue;
    // One that was stopped would have run longer: its time limit or its cancelling ends it again.
    const bool was_stopped = attempt.end == EndReason::timed_out || attempt.end == EndReason::cancelled;
    SimulatedTask& task = job.tasks[attempt.group];
    task.recorded[attempt.index].push_back({took(attempt) * (was_stopped ? 2 : 1) + (was_stopped ? 60 : 0),
                                            attempt.end == EndReason::exited ? attempt.exit_code : 1});
  }
  // Tasks that never ended by themselves: as long as those beside them.
  for (SimulatedTask& task : job.tasks) {
    double sum = 0, count = 0;
    for (const auto& [index, runs] : task.recorded)
      for (const RecordedRun& run : runs) sum += run.seconds, ++count;
    if (count > 0) task.duration.first = sum / count;
  }
  return job;
}

Duration usual_start_delay(const Recording& recording) {
  std::vector<Duration> delays;
  for (const RecordedJob& job : recording.jobs)
    for (const RecordedAttempt& attempt : job.attempts)
      if (attempt.started_at)
        delays.push_back(std::max<Duration>(0s, *attempt.started_at - attempt.placed_at));
  if (delays.empty()) return 0s;
  const auto middle = delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / 2);
  std::nth_element(delays.begin(), middle, delays.end());
  return *middle;
}

std::vector<SimulatedPool> simulated_pools(const Recording& recording, TimePoint start, TimePoint end) {
  std::vector<SimulatedPool> pools;
  for (const RecordedPool& recorded : recording.pools) {
    SimulatedPool& pool = pools.emplace_back();
    pool.request.name = recorded.name;
    pool.request.cores_per_node = recorded.per_node.cores;
    pool.request.memory_per_node = recorded.per_node.memory;
    pool.request.gpus_per_node = recorded.per_node.gpus;
    pool.request.fill = recorded.fill;
    if (recorded.slots_per_node > 0) pool.request.slots_per_node = recorded.slots_per_node;
    for (const NodeStay& stay : recording.stays) {
      if (stay.pool != recorded.name || stay.from > end || (stay.to && *stay.to <= start)) continue;
      RecordedNode& node = pool.recorded.emplace_back();
      node.name = stay.node;
      node.total = stay.total;
      node.low_priority = stay.low_priority;
      node.from = std::max<Duration>(0s, stay.from - start);
      if (stay.to) node.to = *stay.to - start;
    }
  }
  return pools;
}

// From ready to running, of every task's first try.
void add_waits(const RecordedJob& job, std::vector<float>& waits) {
  std::vector<TimePoint> done(job.spec.tasks.size(), job.submitted_at);  // by entry of its list
  for (const RecordedAttempt& attempt : job.attempts)
    if (attempt.ended_at) done[attempt.group] = std::max(done[attempt.group], *attempt.ended_at);
  std::map<std::string, std::size_t> group_by_name;
  for (std::size_t g = 0; g < job.spec.tasks.size(); ++g) group_by_name[job.spec.tasks[g].name] = g;
  for (const RecordedAttempt& attempt : job.attempts) {
    if (attempt.number != 1 || !attempt.started_at) continue;
    TimePoint ready = job.submitted_at;
    for (const Dependencies& each : dependencies_of(job.spec.tasks[attempt.group]))
      for (const std::string& name : each.names)
        if (const auto group = group_by_name.find(name); group != group_by_name.end())
          ready = std::max(ready, done[group->second]);
    waits.push_back(static_cast<float>(std::max(0.0, seconds(*attempt.started_at - ready))));
  }
}

WorkFigures work_of(const RecordedJob& job) {
  WorkFigures work;
  ++work.jobs[job.state];
  work.tasks = job.counts;
  std::set<std::pair<std::uint32_t, std::uint32_t>> failed;  // tasks whose last try failed so far
  for (const RecordedAttempt& attempt : job.attempts) {
    const std::pair task{attempt.group, attempt.index};
    work.retries += failed.erase(task);
    ++work.attempts;
    work.evicted += attempt.end == EndReason::evicted;
    work.lost += attempt.end == EndReason::node_lost;
    double cores = 0;
    for (const Member& member : gang_of(job.spec.tasks[attempt.group], attempt.nodes))
      cores += member.resources.cores / 1000.0;
    const double core_hours = took(attempt) * cores / 3600;
    work.core_hours += core_hours;
    if (attempt.end == EndReason::exited && attempt.exit_code == 0) continue;
    work.core_hours_lost += core_hours;
    if (attempt.end != EndReason::evicted && attempt.end != EndReason::node_lost) failed.insert(task);
  }
  return work;
}

std::uint32_t most_at_once(const std::vector<NodeStay>& stays, const std::string& pool, TimePoint start,
                           TimePoint end) {
  std::map<TimePoint, int> changes;
  for (const NodeStay& stay : stays) {
    if (stay.pool != pool || stay.from > end || (stay.to && *stay.to <= start)) continue;
    ++changes[std::max(stay.from, start)];
    if (stay.to) --changes[*stay.to];
  }
  int here = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, here += change);
  return static_cast<std::uint32_t>(most);
}

SimulationFigures recorded_figures(const Recording& recording, TimePoint start, TimePoint end) {
  SimulationFigures figures;
  figures.name = "recorded";
  figures.makespan = seconds(end - start);
  Accounts accounts;
  for (const RecordedJob& job : recording.jobs) {
    Account& account = accounts[{job.spec.pool, job.user}];
    add(account.work, work_of(job));
    add_waits(job, account.waits);
  }
  for (const NodeStay& stay : recording.stays) {
    const double up = seconds(std::min(stay.to.value_or(end), end) - std::max(stay.from, start));
    if (up <= 0) continue;
    PoolFigures& pool = figures.pools[stay.pool];
    (stay.low_priority ? pool.node_hours_low_priority : pool.node_hours_dedicated) += up / 3600;
    pool.core_hours += up / 3600 * stay.total.cores / 1000.0;
  }
  for (auto& [name, pool] : figures.pools) pool.nodes_peak = most_at_once(recording.stays, name, start, end);
  sum_up(accounts, figures);
  return figures;
}

}  // namespace

Result<Replay> replay_of(const Recording& all) {
  Recording recording = all;
  const auto running = std::erase_if(
      recording.jobs, [](const RecordedJob& job) { return !job.ended_at || job.attempts.empty(); });
  const auto without_pool = std::erase_if(recording.jobs, [&](const RecordedJob& job) {
    return std::none_of(recording.pools.begin(), recording.pools.end(),
                        [&](const RecordedPool& pool) { return pool.name == job.spec.pool; });
  });
  if (recording.jobs.empty() && without_pool > 0)
    return fail(ErrorCode::invalid,
                fmt::format("the recording does not have the pool of its {}", plural(without_pool, "job")),
                "make it anew with slipway events --export: it has the pools that were deleted as well");
  if (recording.jobs.empty())
    return fail(ErrorCode::invalid, "no job of the recording has run and ended",
                "record a time in which some have: slipway events --export");
  const TimePoint start = recording.jobs.front().submitted_at;
  TimePoint end = start;
  for (const RecordedJob& job : recording.jobs) end = std::max(end, *job.ended_at);

  Replay replay;
  Simulation& simulation = replay.simulation;
  simulation.name = "predicted";
  simulation.start = start;
  simulation.until = 365 * 24h;
  simulation.start_delay = usual_start_delay(recording);
  simulation.pools = simulated_pools(recording, start, end);
  for (const RecordedJob& job : recording.jobs) simulation.jobs.push_back(simulated(job, start));
  replay.recorded = recorded_figures(recording, start, end);
  if (running > 0)
    replay.recorded.notes.push_back(
        fmt::format("{} that had not run or not ended left out", plural(running, "job")));
  if (without_pool > 0)
    replay.recorded.notes.push_back(
        fmt::format("{} of pools that the recording does not have left out", plural(without_pool, "job")));
  return replay;
}

}  // namespace slipway::simulate
