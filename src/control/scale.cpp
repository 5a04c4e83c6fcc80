// Who decides how many nodes a pool has when nobody says it by hand: the work that waits, or a formula over
// what was lately seen of the pool.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/controller.h"
#include "control/wording.h"
#include "sched/demand.h"
#include "sched/scenario.h"

namespace slipway::control {
namespace {

using formula::Metric;

constexpr std::uint32_t run_max = 720;            // samples that one record stands for, an hour of them
constexpr std::uint32_t saved_every = 12;         // samples, once a minute
constexpr std::size_t waiting_jobs_max = 10'000;  // looked at for demand: as many surely fill any pool

std::string_view code_of(formula::FaultCode code) {
  switch (code) {
    case formula::FaultCode::too_long: return "AutoScaleFormulaTooLong";
    case formula::FaultCode::syntax: return "AutoScalingFormulaSyntaxError";
    case formula::FaultCode::evaluation: return "AutoScalingFormulaEvaluationError";
    case formula::FaultCode::insufficient_samples: return "InsufficientSampleData";
  }
  return "";
}

// The two have the same values in the same order.
Deallocation rule_of(formula::Deallocation option) { return static_cast<Deallocation>(option); }

}  // namespace

Result<void> Controller::check_formula(const Autoscale& autoscale) {
  if (autoscale.by == ScaleBy::scenario) return validate(autoscale.scenario);
  if (autoscale.by != ScaleBy::formula) return {};
  if (autoscale.formula.empty())
    return fail(ErrorCode::invalid, "the formula is empty", "docs/guide/autoscale.md has examples");
  const auto parsed = formula::parse(autoscale.formula);
  if (parsed) return {};
  return fail(ErrorCode::invalid,
              fmt::format("{}: {}", code_of(parsed.error().code), formula::describe(parsed.error())),
              parsed.error().hint.empty() ? "slipway formula eval FILE tries it out" : parsed.error().hint);
}

// ── demand ──

// The work of a pool that could start if there were nodes, most urgent first: what a limit holds back could
// not.
std::vector<sched::Waiting> Controller::startable_work(const Pool& pool) const {
  std::vector<sched::Line> lines = sched::order(pool, now_);
  std::erase_if(lines, [](const sched::Line& line) { return line.block.has_value(); });
  return work_of(std::move(lines));
}

std::vector<sched::Waiting> Controller::work_of(std::vector<sched::Line> lines) const {
  if (lines.size() > waiting_jobs_max) lines.resize(waiting_jobs_max);
  std::vector<sched::Waiting> waiting;
  waiting.reserve(lines.size());
  for (const sched::Line& line : lines) {
    const Job& job = jobs_.at(line.turn.job);
    for (const Shape& shape : job.shapes) {
      if (shape.need != line.shape) continue;
      waiting.push_back({line.shape, tasks_ready(job, shape)});
    }
  }
  return waiting;
}

void Controller::scale_by_demand(const std::string& key, Pool& pool) {
  const Autoscale& scale = pool.record.autoscale;
  if (scale.by != ScaleBy::demand || pool.record.deleting || stopping_) return;
  std::uint32_t busy = 0;
  for (const NodeId id : pool.members) {
    const Node& node = nodes_.at(id);
    busy += !node.record.leaving && (!node.attempts.empty() || !node.joining.empty());
  }
  const std::uint32_t room = scale.max - std::min(scale.max, busy);
  const sched::NodeSize size{pool.record.per_node, pool.record.slots_per_node};
  const std::uint32_t needed =
      std::clamp(busy + sched::nodes_needed(startable_work(pool), size, room), scale.min, scale.max);
  NodeCounts& target = pool.record.target;
  if (needed > target.total()) {
    const std::uint32_t before = target.total();
    target.dedicated =
        std::max(target.dedicated, std::min(needed - target.low_priority, scale.dedicated_max));
    target.low_priority = std::max(target.low_priority, needed - target.dedicated);
    begin_resize(key, pool, pool.record.deallocation, "",
                 fmt::format("{} nodes are needed for the work that waits, {} were there", needed, before));
    event_in(pool.record.workspace, "pool.scaled",
             fmt::format("pool {} grows from {} to {} nodes for the work that waits", pool.record.name,
                         before, target.total()),
             {}, pool.record.name);
    unsettled_.insert(key);
    return;
  }
  drop_idle_nodes(key, pool, needed);
}

// Nodes go one by one, each when it has been idle for long enough: work that comes back soon finds them.
void Controller::drop_idle_nodes(const std::string& key, Pool& pool, std::uint32_t needed) {
  std::vector<NodeId> idle;
  std::optional<TimePoint> next;
  std::uint32_t there = pool.present.total();
  for (const NodeId id : pool.members) {
    const Node& node = nodes_.at(id);
    if (node.record.leaving || node.record.state != NodeState::idle || !node.joining.empty()) continue;
    const TimePoint due = node.record.changed_at + pool.record.idle_timeout;
    if (due <= now_)
      idle.push_back(id);
    else if (!next || due < *next)
      next = due;
  }
  std::uint32_t gone = 0;
  for (auto id = idle.rbegin(); id != idle.rend() && there > needed; ++id, --there, ++gone) {
    Node& node = nodes_.at(*id);
    --pool.record.target.of(node.record.low_priority);
    leave_pool(node, Deallocation::task_completion,
               fmt::format("it was idle for {:g} s", seconds(pool.record.idle_timeout)));
  }
  if (gone > 0) {
    touch(pool);
    remember(pool, fmt::format("{} nodes were idle for {:g} s", gone, seconds(pool.record.idle_timeout)));
    event_in(pool.record.workspace, "pool.scaled",
             fmt::format("pool {} shrinks to {} nodes: the others had nothing to do", pool.record.name,
                         pool.record.target.total()),
             {}, pool.record.name);
  }
  if (there > needed && next) timers_.insert({*next, TimerKind::look_again, {}, {}, key});
}

// ── formulas ──

std::vector<formula::Sample> Controller::samples_of(const Pool& pool, Metric metric) const {
  std::vector<formula::Sample> samples;
  for (const SampleRun& run : pool.samples)
    for (std::uint32_t i = 0; i < run.count; ++i)
      samples.push_back(
          {run.first + settings_.sample_every * i, run.values[static_cast<std::size_t>(metric)]});
  return samples;
}

Controller::Evaluation Controller::evaluate(const Pool& pool, const std::string& text) const {
  std::array<std::vector<formula::Sample>, formula::metric_count> samples;
  formula::Inputs inputs;
  inputs.now = now_;
  inputs.targets = {static_cast<std::int32_t>(pool.record.target.dedicated),
                    static_cast<std::int32_t>(pool.record.target.low_priority)};
  inputs.current = {static_cast<std::int32_t>(pool.present.dedicated),
                    static_cast<std::int32_t>(pool.present.low_priority)};
  inputs.slots_per_node = slots_of(pool);
  inputs.period = settings_.sample_every;
  inputs.seed = static_cast<std::uint64_t>(now_.time_since_epoch().count());
  for (std::size_t metric = 0; metric < formula::metric_count; ++metric) {
    samples[metric] = samples_of(pool, static_cast<Metric>(metric));
    inputs.samples[metric] = samples[metric];
  }
  const auto parsed = formula::parse(text);
  Evaluation evaluation;
  evaluation.outcome =
      parsed ? formula::evaluate(*parsed, inputs) : formula::unchanged(inputs, parsed.error());
  evaluation.run.time = now_;
  evaluation.run.results = formula::format_results(evaluation.outcome);
  if (const auto& fault = evaluation.outcome.fault) {
    // A formula that was accepted and fails now fails as an evaluation, whatever the reason.
    evaluation.run.error_code =
        std::string(fault->code == formula::FaultCode::syntax ? code_of(formula::FaultCode::evaluation)
                                                              : code_of(fault->code));
    evaluation.run.error = formula::describe(*fault);
  }
  return evaluation;
}

// In the words of a formula's outcome, so that both are shown alike.
Controller::Evaluation Controller::evaluate_scenario(const Pool& pool) const {
  const Scenario& scenario = pool.record.autoscale.scenario;
  const auto seen = [&](Metric metric) {
    std::vector<sched::ScenarioSample> samples;
    for (const formula::Sample& sample : samples_of(pool, metric))
      samples.push_back({sample.time, sample.value});
    return samples;
  };
  const auto tasks =
      seen(scenario.name == ScenarioName::pending_tasks ? Metric::pending_tasks : Metric::active_tasks);
  const auto preempted = seen(Metric::preempted_node_count);
  const auto targets = sched::evaluate(scenario, {now_,
                                                  tasks,
                                                  preempted,
                                                  settings_.sample_every,
                                                  {pool.present.dedicated, pool.present.low_priority},
                                                  slots_of(pool)});
  Evaluation evaluation;
  formula::Outcome& outcome = evaluation.outcome;
  evaluation.run.time = now_;
  if (!targets) {
    outcome.targets = {static_cast<std::int32_t>(pool.record.target.dedicated),
                       static_cast<std::int32_t>(pool.record.target.low_priority)};
    outcome.fault = formula::Fault{
        formula::FaultCode::insufficient_samples, {}, targets.error().what, targets.error().hint};
    evaluation.run.error_code = code_of(formula::FaultCode::insufficient_samples);
    evaluation.run.error = targets.error().what;
  } else {
    outcome.targets = {static_cast<std::int32_t>(targets->nodes.dedicated),
                       static_cast<std::int32_t>(targets->nodes.low_priority)};
    outcome.deallocation = static_cast<formula::Deallocation>(targets->deallocation);
    evaluation.why = targets->why;
  }
  evaluation.run.results = formula::format_results(outcome);
  return evaluation;
}

std::uint32_t Controller::slots_of(const Pool& pool) const {
  return pool.record.slots_per_node > 0 ? pool.record.slots_per_node
                                        : std::max(1u, pool.record.per_node.cores / 1000);
}

Result<Controller::Evaluation> Controller::evaluate_autoscale(const Caller& caller, const std::string& name,
                                                              const std::optional<std::string>& text) const {
  const auto found = pools_.find(caller.workspace + "/" + name);
  if (found == pools_.end()) return fail(no_pool(name));
  const Pool& pool = found->second;
  if (!text && pool.record.autoscale.by == ScaleBy::scenario) return evaluate_scenario(pool);
  if (!text && pool.record.autoscale.by != ScaleBy::formula)
    return fail(ErrorCode::conflict, fmt::format("pool {} has no formula and no scenario", name),
                "give a formula: --formula FILE");
  return evaluate(pool, text ? *text : pool.record.autoscale.formula);
}

void Controller::run_autoscale(const std::string& key, Pool& pool) {
  const Autoscale& scale = pool.record.autoscale;
  const bool is_scenario = scale.by == ScaleBy::scenario;
  if ((scale.by != ScaleBy::formula && !is_scenario) || pool.record.deleting || pool.evaluate_at > now_)
    return;
  pool.evaluate_at = now_ + scale.interval;
  timers_.insert({pool.evaluate_at, TimerKind::evaluate, {}, {}, key});
  const Evaluation evaluation = is_scenario ? evaluate_scenario(pool) : evaluate(pool, scale.formula);
  const std::string_view by = to_string(scale.by);
  const bool failed = !evaluation.run.error_code.empty();
  if (failed && evaluation.run.error != pool.record.last_run.error)
    event_in(pool.record.workspace, "pool.autoscale_failed",
             fmt::format("the {} of pool {} changed nothing: {}", by, pool.record.name, evaluation.run.error),
             {}, pool.record.name);
  pool.record.last_run = evaluation.run;
  touch(pool);
  if (failed) return;
  const formula::NodeCounts& wanted = evaluation.outcome.targets;
  set_target(key, pool,
             {static_cast<std::uint32_t>(wanted.dedicated), static_cast<std::uint32_t>(wanted.low_priority)},
             rule_of(evaluation.outcome.deallocation),
             fmt::format("the {} says {}{}{}", by, evaluation.run.results, evaluation.why.empty() ? "" : ": ",
                         evaluation.why));
}

// As many as a formula or a scenario asks for, as far as the machine has room for them.
void Controller::set_target(const std::string& key, Pool& pool, NodeCounts wanted, Deallocation rule,
                            const std::string& why) {
  if (!pool.record.overcommit) {
    const Resources& machine = settings_.machine.total;
    std::uint64_t most = UINT32_MAX;
    if (pool.record.per_node.cores > 0)
      most = std::min<std::uint64_t>(most, machine.cores / pool.record.per_node.cores);
    if (pool.record.per_node.memory > 0)
      most = std::min<std::uint64_t>(most, machine.memory / pool.record.per_node.memory);
    wanted.dedicated = static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted.dedicated, most));
    wanted.low_priority =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted.low_priority, most - wanted.dedicated));
  }
  if (wanted == pool.record.target) return;
  event_in(pool.record.workspace, "pool.scaled",
           fmt::format("pool {} goes from {} to {} nodes: {}", pool.record.name, pool.record.target.total(),
                       wanted.total(), why),
           {}, pool.record.name);
  pool.record.target = wanted;
  begin_resize(key, pool, rule, "", why);
  unsettled_.insert(key);
}

// ── samples ──

void Controller::begin_watching(const std::string& key, Pool& pool) {
  begin_evictions(key, pool);
  const ScaleBy by = pool.record.autoscale.by;
  if ((by == ScaleBy::formula || by == ScaleBy::scenario) && pool.evaluate_at <= now_) {
    pool.evaluate_at = now_;
    timers_.insert({now_, TimerKind::evaluate, {}, {}, key});
  }
  if (settings_.sample_every.count() == 0 || is_sampling_) return;
  is_sampling_ = true;
  timers_.insert({now_, TimerKind::sample, {}, {}, {}});
}

void Controller::take_samples(TimePoint at) {
  bool is_first = false;
  for (auto& [key, pool] : pools_) {
    is_first |= pool.samples.empty();
    take_sample(pool, at);
  }
  // Written down a minute's worth at a time, as each write wakes the disk; a pool's first at once.
  if (samples_taken_++ % saved_every == 0 || is_first) flush_samples();
  // After a long sleep the ones in between are missing, as they should be.
  TimePoint next = at + settings_.sample_every;
  if (next <= now_) next = now_ + settings_.sample_every;
  if (pools_.empty())
    is_sampling_ = false;
  else
    timers_.insert({next, TimerKind::sample, {}, {}, {}});
}

void Controller::take_sample(Pool& pool, TimePoint at) {
  std::array<double, formula::metric_count> values{};
  const auto set = [&](Metric metric, double value) { values[static_cast<std::size_t>(metric)] = value; };
  double active = 0, running = 0;
  for (const sched::Waiting& waiting : work_of(sched::order(pool, at)))
    active += static_cast<double>(waiting.tasks) * waiting.shape.nodes;
  std::uint32_t usable = 0, seen = 0, evicted = 0;
  std::map<std::string_view, const MachineUse*> hosts;
  for (const NodeId id : pool.members) {
    const Node& node = nodes_.at(id);
    running += static_cast<double>(node.attempts.size());  // a gang counts on each of its nodes
    const NodeState state = node.record.state;
    usable += state == NodeState::idle || state == NodeState::busy;
    evicted += state == NodeState::evicted;
    seen += node.session.has_value();
    // Nodes of one machine all speak of the same thing.
    if (node.session) hosts[node.record.host] = &node.use;
  }
  set(Metric::active_tasks, active);
  set(Metric::running_tasks, running);
  set(Metric::pending_tasks, active + running);
  set(Metric::succeeded_tasks, static_cast<double>(std::exchange(pool.succeeded, 0)));
  set(Metric::failed_tasks, static_cast<double>(std::exchange(pool.failed, 0)));
  set(Metric::current_dedicated_nodes, pool.present.dedicated);
  set(Metric::current_low_priority_nodes, pool.present.low_priority);
  set(Metric::preempted_node_count, evicted);
  set(Metric::usable_node_count, usable);
  set(Metric::sample_node_count, seen);
  set(Metric::wall_clock_seconds, running * seconds(settings_.sample_every));
  MachineUse sum;
  for (const auto& [host, use] : hosts) {
    sum.cpu += use->cpu / static_cast<double>(hosts.size());
    sum.memory += use->memory / static_cast<double>(hosts.size());
    sum.disk += use->disk / static_cast<double>(hosts.size());
    sum.disk_read += use->disk_read;
    sum.disk_written += use->disk_written;
    sum.disk_reads += use->disk_reads;
    sum.disk_writes += use->disk_writes;
    sum.network_in += use->network_in;
    sum.network_out += use->network_out;
  }
  const auto rounded = [](double value, double unit) { return std::round(value / unit); };
  set(Metric::cpu_percent, rounded(sum.cpu, 0.01) / 100);  // finer than that it is noise, and never the same
  set(Metric::memory_bytes, rounded(sum.memory, 1e6));
  set(Metric::disk_bytes, rounded(sum.disk, 1e9));
  set(Metric::disk_read_bytes, sum.disk_read);
  set(Metric::disk_write_bytes, sum.disk_written);
  set(Metric::disk_read_ops, sum.disk_reads);
  set(Metric::disk_write_ops, sum.disk_writes);
  set(Metric::network_in_bytes, sum.network_in);
  set(Metric::network_out_bytes, sum.network_out);

  SampleRun* last = pool.samples.empty() ? nullptr : &pool.samples.back();
  if (last && last->values == values && last->count < run_max &&
      last->first + settings_.sample_every * last->count == at) {
    ++last->count;
    last->is_saved = false;
  } else {
    pool.samples.push_back({at, 1, values, false});
  }
  while (pool.samples.front().first + settings_.sample_every * pool.samples.front().count <
         at - Kept::samples)
    pool.samples.pop_front();
}

void Controller::save_samples(const Pool& pool, const SampleRun& run) {
  PoolSample sample;
  sample.time = run.first;
  sample.every = settings_.sample_every;
  sample.count = run.count;
  sample.workspace = pool.record.workspace;
  sample.pool = pool.record.name;
  for (std::size_t metric = 0; metric < formula::metric_count; ++metric)
    if (run.values[metric] != 0)
      sample.values[std::string(formula::to_string(static_cast<Metric>(metric)))] = run.values[metric];
  changes_.samples.push_back(std::move(sample));
}

void Controller::flush_samples() {
  for (auto& [key, pool] : pools_)
    for (auto run = pool.samples.rbegin(); run != pool.samples.rend() && !run->is_saved; ++run) {
      save_samples(pool, *run);
      run->is_saved = true;
    }
}

void Controller::restore_samples(const std::vector<PoolSample>& samples) {
  for (const PoolSample& sample : samples) {
    const auto pool = pools_.find(sample.workspace + "/" + sample.pool);
    // Of a clock that went ahead, or at another pace, nothing can be said.
    if (pool == pools_.end() || sample.every != settings_.sample_every || sample.time > now_) continue;
    SampleRun run{sample.time, sample.count, {}, true};
    for (const auto& [name, value] : sample.values)
      if (const auto metric = formula::parse_metric(name))
        run.values[static_cast<std::size_t>(*metric)] = value;
    pool->second.samples.push_back(run);
  }
}

}  // namespace slipway::control
