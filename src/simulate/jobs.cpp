// Jobs of a simulation: when they come, and how long each try at each of their tasks takes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulate/cluster_simulation.h"
#include "simulate/distribution.h"

namespace slipway::simulate {
namespace {

constexpr std::size_t notes_max = 10;
enum : std::uint64_t { for_arrivals = 1, for_duration = 2, for_failure = 3 };

}  // namespace

void ClusterSimulation::prepare_streams() {
  streams_.resize(simulation_.jobs.size());
  for (std::uint32_t j = 0; j < simulation_.jobs.size(); ++j) {
    const SimulatedJob& job = simulation_.jobs[j];
    Stream& stream = streams_[j];
    stream.last = now_ + job.from;
    stream.random = Random(mixed({simulation_.seed, for_arrivals, j}));
    const std::vector<TaskSpec>& tasks = job.spec.tasks;
    if (std::any_of(tasks.begin(), tasks.end(),
                    [](const TaskSpec& task) { return task.has_dependencies(); })) {
      std::unordered_map<std::string, std::uint32_t> group_by_name;
      for (std::uint32_t g = 0; g < tasks.size(); ++g) group_by_name[tasks[g].name] = g;
      stream.dependents.resize(tasks.size());
      stream.dependencies.resize(tasks.size());
      for (std::uint32_t g = 0; g < tasks.size(); ++g)
        for (const Dependencies& each : dependencies_of(tasks[g]))
          for (const std::string& name : each.names) {
            stream.dependents[group_by_name.at(name)].push_back(g);
            ++stream.dependencies[g];
          }
    }
    plan_next(j);
  }
}

void ClusterSimulation::plan_next(std::uint32_t j) {
  const SimulatedJob& job = simulation_.jobs[j];
  Stream& stream = streams_[j];
  if (stream.next < job.at.size()) {
    ++arrivals_planned_;
    return plan(simulation_.start + job.at[stream.next++], Kind::arrive, j);
  }
  if (!job.gap || (job.count > 0 && stream.submitted >= job.count)) return;
  // The first of a steady stream comes at its beginning; of a random one, after a first wait.
  const bool at_once = stream.submitted == 0 && job.gap->kind == Distribution::Kind::fixed;
  const double wait = at_once ? 0 : draw(*job.gap, stream.random);
  stream.last += Duration(std::llround(wait * 1e6));
  if (job.until && stream.last > simulation_.start + *job.until) return;
  ++arrivals_planned_;
  plan(stream.last, Kind::arrive, j);
}

void ClusterSimulation::arrive(std::uint32_t j) {
  const SimulatedJob& job = simulation_.jobs[j];
  Stream& stream = streams_[j];
  --arrivals_planned_;
  const std::uint32_t number = stream.submitted++;
  if (!first_submitted_) first_submitted_ = now_;
  const auto submitted = controller_->submit({job.user, "default"}, job.spec, "");
  if (submitted) {
    Arrived& arrived = arrived_[submitted->job.id];
    arrived = {j, number, now_, stream.dependencies, {}};
    arrived.ready.assign(stream.dependencies.size(), now_);
    stream.id = submitted->job.id;
    if (job.cancelled) plan(std::max(now_, simulation_.start + *job.cancelled), Kind::cancel, j);
  } else {
    ++refused_;
    if (notes_.size() < notes_max)
      notes_.push_back(fmt::format("{} was refused: {}", job.spec.name, submitted.error().what));
  }
  plan_next(j);
}

void ClusterSimulation::group_done(JobId id, std::uint32_t group) {
  const auto found = arrived_.find(id);
  if (found == arrived_.end() || found->second.waits_for.empty()) return;
  Arrived& arrived = found->second;
  for (const std::uint32_t dependent : streams_[arrived.job].dependents[group])
    if (--arrived.waits_for[dependent] == 0) arrived.ready[dependent] = now_;
}

const SimulatedTask& ClusterSimulation::task_of(const TaskRef& ref) const {
  return simulation_.jobs[arrived_.at(ref.job).job].tasks[ref.group];
}

ClusterSimulation::Trial ClusterSimulation::trial_of(const AttemptKey& key) {
  const Arrived& arrived = arrived_.at(key.task.job);
  const SimulatedTask& task = simulation_.jobs[arrived.job].tasks[key.task.group];
  Trial trial;
  std::uint32_t own_ends = 0;
  if (const auto found = progress_.find(key.task); found != progress_.end()) {
    trial.work_before = found->second.kept;
    own_ends = found->second.own_ends;
  }
  if (const auto recorded = task.recorded.find(key.task.index); recorded != task.recorded.end()) {
    const RecordedRun& run = recorded->second[std::min<std::size_t>(own_ends, recorded->second.size() - 1)];
    trial.seconds = run.seconds;
    trial.exit_code = run.exit_code;
    return trial;
  }
  const std::uint64_t which = static_cast<std::uint64_t>(key.task.group) << 32 | key.task.index;
  Random duration(mixed({simulation_.seed, for_duration, arrived.job, arrived.number, which}));
  trial.seconds = std::max(0.0, draw(task.duration, duration) - trial.work_before);
  if (task.failure > 0) {
    Random failure(mixed({simulation_.seed, for_failure, arrived.job, arrived.number, which, own_ends}));
    if (failure.chance(task.failure)) {
      trial.seconds *= failure.unit();
      trial.exit_code = 1;
    }
  }
  return trial;
}

void ClusterSimulation::note_start(const AttemptKey& key) {
  if (key.attempt != 1) return;
  const Arrived& arrived = arrived_.at(key.task.job);
  const SimulatedJob& job = simulation_.jobs[arrived.job];
  const TimePoint ready = arrived.ready.empty() ? arrived.at : arrived.ready[key.task.group];
  const JobRecord* record = ledger_.live_job(key.task.job);
  ledger_.account(record ? record->pool : job.spec.pool, job.user)
      .waits.push_back(static_cast<float>(seconds(now_ - ready)));
}

void ClusterSimulation::note_own_end(const AttemptKey& key, int exit_code) {
  if (exit_code == 0)
    progress_.erase(key.task);
  else
    ++progress_[key.task].own_ends;
}

}  // namespace slipway::simulate
