// Who decides how many nodes a pool has when nobody says it by hand: the work that waits, or a formula over
// what was lately seen of the pool.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/evict.h"
#include "control/pools.h"
#include "control/scale.h"
#include "control/wording.h"
#include "sched/demand.h"
#include "sched/scenario.h"

namespace slipway::control {
namespace {

using formula::Metric;

constexpr std::uint32_t run_max = 720;            // samples that one record stands for, an hour of them
constexpr std::uint32_t saved_every = 12;         // samples, once a minute
constexpr std::size_t waiting_jobs_max = 10'000;  // looked at for demand: as many surely fill any pool

std::string_view code_of(formula::FormulaErrorCode code) {
  switch (code) {
    case formula::FormulaErrorCode::too_long: return "AutoScaleFormulaTooLong";
    case formula::FormulaErrorCode::syntax: return "AutoScalingFormulaSyntaxError";
    case formula::FormulaErrorCode::evaluation: return "AutoScalingFormulaEvaluationError";
    case formula::FormulaErrorCode::insufficient_samples: return "InsufficientSampleData";
  }
  return "";
}

// The two have the same values in the same order.
Deallocation rule_of(formula::Deallocation option) { return static_cast<Deallocation>(option); }

}  // namespace

static std::vector<sched::Waiting> work_of(std::vector<sched::QueuePosition> positions);
static void drop_idle_nodes(Turn& turn, const std::string& key, Pool& pool, std::uint32_t needed);
static std::uint32_t slots_of(const PoolRecord& pool);
static void set_target(Turn& turn, const std::string& key, Pool& pool, NodeCounts wanted, Deallocation rule,
                       const std::string& why);
static void take_sample(Turn& turn, Pool& pool, TimePoint at);

Result<void> check_formula(const Autoscale& autoscale) {
  if (autoscale.by == ScaleBy::scenario) return validate(autoscale.scenario);
  if (autoscale.by != ScaleBy::formula) return {};
  if (autoscale.formula.empty())
    return fail(ErrorCode::invalid, "the formula is empty", "docs/guide/autoscale.md has examples");
  const auto parsed = formula::parse(autoscale.formula);
  if (parsed) return {};
  return fail(
      ErrorCode::invalid,
      fmt::format("{}: {}", code_of(parsed.error().code), formula::describe(parsed.error())),
      parsed.error().hint.empty() ? "slipway formula evaluate FILE tries it out" : parsed.error().hint);
}

// ── demand ──

// The work of a pool that could start if there were nodes, most urgent first: what a limit holds back could
// not.
static std::vector<sched::Waiting> startable_work(const Turn& turn, const Pool& pool) {
  auto positions = sched::order(pool.queue, pool.capacity.scale(), pool.sharing, turn.now);
  std::erase_if(positions, [](const sched::QueuePosition& one) { return one.block.has_value(); });
  return work_of(std::move(positions));
}

static std::vector<sched::Waiting> work_of(std::vector<sched::QueuePosition> positions) {
  if (positions.size() > waiting_jobs_max) positions.resize(waiting_jobs_max);
  std::vector<sched::Waiting> waiting;
  waiting.reserve(positions.size());
  for (const sched::QueuePosition& one : positions) waiting.push_back({one.shape, one.tasks});
  return waiting;
}

void scale_by_demand(Turn& turn, const std::string& key, Pool& pool) {
  const Autoscale& scale = pool.record.autoscale;
  if (scale.by != ScaleBy::demand || pool.record.deleting || turn.state.stopping) return;
  std::uint32_t busy = 0;
  for (const NodeId id : pool.members) {
    const Node& node = turn.state.nodes.at(id);
    busy += !node.record.leaving && (!node.attempts.empty() || !node.joining.empty());
  }
  const std::uint32_t nodes_max = scale.max - std::min(scale.max, busy);
  const sched::NodeSize size{pool.record.per_node, pool.record.slots_per_node};
  const std::uint32_t needed = std::clamp(
      busy + sched::nodes_needed(startable_work(turn, pool), size, nodes_max), scale.min, scale.max);
  NodeCounts& target = pool.record.target;
  if (needed > target.total()) {
    const std::uint32_t before = target.total();
    target.dedicated =
        std::max(target.dedicated, std::min(needed - target.low_priority, scale.dedicated_max));
    target.low_priority = std::max(target.low_priority, needed - target.dedicated);
    begin_resize(turn, key, pool, pool.record.deallocation, "",
                 fmt::format("{} needed, had {}", plural(needed, "node"), before));
    record_event_in(turn, pool.record.workspace, "pool.scaled",
                    fmt::format("pool {} grows from {} to {} for the work that waits", pool.record.name,
                                before, plural(target.total(), "node")),
                    {}, pool.record.name);
    turn.effects.unsettled.insert(key);
    return;
  }
  drop_idle_nodes(turn, key, pool, needed);
}

// Nodes go one by one, each when it has been idle for long enough: work that comes back soon finds them.
static void drop_idle_nodes(Turn& turn, const std::string& key, Pool& pool, std::uint32_t needed) {
  std::vector<NodeId> idle;
  std::optional<TimePoint> next;
  std::uint32_t there = pool.present.total();
  for (const NodeId id : pool.members) {
    const Node& node = turn.state.nodes.at(id);
    if (node.record.leaving || node.record.state != NodeState::idle || !node.joining.empty()) continue;
    const TimePoint due = node.record.changed_at + pool.record.idle_timeout;
    if (due <= turn.now)
      idle.push_back(id);
    else if (!next || due < *next)
      next = due;
  }
  std::uint32_t gone = 0;
  for (auto id = idle.rbegin(); id != idle.rend() && there > needed; ++id, --there, ++gone) {
    Node& node = turn.state.nodes.at(*id);
    --pool.record.target.of(node.record.low_priority);
    leave_pool(turn, node, Deallocation::task_completion,
               fmt::format("it was idle for {:g} s", seconds(pool.record.idle_timeout)));
  }
  if (gone > 0) {
    turn.effects.touch(pool);
    remember(pool,
             fmt::format("{} idle for {:g} s", plural(gone, "node"), seconds(pool.record.idle_timeout)));
    record_event_in(turn, pool.record.workspace, "pool.scaled",
                    fmt::format("pool {} shrinks to {}: the others had nothing to do", pool.record.name,
                                plural(pool.record.target.total(), "node")),
                    {}, pool.record.name);
  }
  if (there > needed && next) turn.effects.timers.push_back({*next, PlacingDue{key}});
}

// ── formulas ──

static std::vector<formula::Sample> samples_of(const LiveView& view, const LivePool& pool, Metric metric) {
  std::vector<formula::Sample> samples;
  for (const SampleRun& run : pool.samples)
    for (std::uint32_t i = 0; i < run.count; ++i)
      samples.push_back({run.first + view.sample_every * i, run.values[static_cast<std::size_t>(metric)]});
  return samples;
}

static Evaluation evaluate(const LiveView& view, const LivePool& pool, const std::string& text) {
  std::array<std::vector<formula::Sample>, formula::metric_count> samples;
  formula::Inputs inputs;
  inputs.now = view.now;
  inputs.targets = {static_cast<std::int32_t>(pool.record.target.dedicated),
                    static_cast<std::int32_t>(pool.record.target.low_priority)};
  inputs.current = {static_cast<std::int32_t>(pool.present.dedicated),
                    static_cast<std::int32_t>(pool.present.low_priority)};
  inputs.slots_per_node = slots_of(pool.record);
  inputs.period = view.sample_every;
  inputs.seed = static_cast<std::uint64_t>(view.now.time_since_epoch().count());
  for (std::size_t metric = 0; metric < formula::metric_count; ++metric) {
    samples[metric] = samples_of(view, pool, static_cast<Metric>(metric));
    inputs.samples[metric] = samples[metric];
  }
  const auto parsed = formula::parse(text);
  Evaluation evaluation;
  evaluation.outcome =
      parsed ? formula::evaluate(*parsed, inputs) : formula::unchanged(inputs, parsed.error());
  evaluation.run.time = view.now;
  evaluation.run.results = formula::format_results(evaluation.outcome);
  if (const auto& error = evaluation.outcome.error) {
    // A formula that was accepted and fails now fails as an evaluation, whatever the reason.
    evaluation.run.error_code = std::string(error->code == formula::FormulaErrorCode::syntax
                                                ? code_of(formula::FormulaErrorCode::evaluation)
                                                : code_of(error->code));
    evaluation.run.error = formula::describe(*error);
  }
  return evaluation;
}

// In the words of a formula's outcome, so that both are shown alike.
static Evaluation evaluate_scenario(const LiveView& view, const LivePool& pool) {
  const Scenario& scenario = pool.record.autoscale.scenario;
  const auto seen = [&](Metric metric) {
    std::vector<sched::ScenarioSample> samples;
    for (const formula::Sample& sample : samples_of(view, pool, metric))
      samples.push_back({sample.time, sample.value});
    return samples;
  };
  const auto tasks =
      seen(scenario.name == ScenarioName::pending_tasks ? Metric::pending_tasks : Metric::active_tasks);
  const auto preempted = seen(Metric::preempted_node_count);
  const auto targets = sched::evaluate(scenario, {view.now,
                                                  tasks,
                                                  preempted,
                                                  view.sample_every,
                                                  {pool.present.dedicated, pool.present.low_priority},
                                                  slots_of(pool.record)});
  Evaluation evaluation;
  formula::Outcome& outcome = evaluation.outcome;
  evaluation.run.time = view.now;
  if (!targets) {
    outcome.targets = {static_cast<std::int32_t>(pool.record.target.dedicated),
                       static_cast<std::int32_t>(pool.record.target.low_priority)};
    outcome.error = formula::FormulaError{
        formula::FormulaErrorCode::insufficient_samples, {}, targets.error().what, targets.error().hint};
    evaluation.run.error_code = code_of(formula::FormulaErrorCode::insufficient_samples);
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

static std::uint32_t slots_of(const PoolRecord& pool) {
  return pool.slots_per_node > 0 ? pool.slots_per_node : std::max(1u, pool.per_node.cores / 1000);
}

Result<Evaluation> evaluate_autoscale(const LiveView& view, const std::string& name,
                                      const std::optional<std::string>& text) {
  if (view.pools.empty()) return fail(no_pool(name));
  const LivePool& pool = view.pools.front();
  const Autoscale& scale = pool.record.autoscale;
  if (!text && scale.by == ScaleBy::scenario) return evaluate_scenario(view, pool);
  if (!text && scale.by != ScaleBy::formula)
    return fail(ErrorCode::conflict, fmt::format("pool {} has no formula and no scenario", name),
                "give a formula: --formula FILE");
  return evaluate(view, pool, text ? *text : scale.formula);
}

void run_autoscale(Turn& turn, const std::string& key, Pool& pool) {
  const Autoscale& scale = pool.record.autoscale;
  if ((scale.by != ScaleBy::formula && scale.by != ScaleBy::scenario) || pool.record.deleting ||
      pool.evaluate_at > turn.now)
    return;
  pool.evaluate_at = turn.now + scale.interval;
  turn.effects.timers.push_back({pool.evaluate_at, AutoscaleDue{key}});
  const PoolRecord& record = pool.record;
  const LiveView view =
      copy_live(turn, {.workspace = record.workspace, .pool = record.name, .only_samples = true});
  const Evaluation evaluation = evaluate_autoscale(view, record.name, {}).value();  // it has one of the two
  const std::string_view by = to_string(scale.by);
  const bool failed = !evaluation.run.error_code.empty();
  if (failed && evaluation.run.error != pool.record.last_run.error)
    record_event_in(
        turn, pool.record.workspace, "pool.autoscale_failed",
        fmt::format("the {} of pool {} changed nothing: {}", by, pool.record.name, evaluation.run.error), {},
        pool.record.name);
  pool.record.last_run = evaluation.run;
  turn.effects.touch(pool);
  if (failed) return;
  const formula::NodeCounts& wanted = evaluation.outcome.targets;
  set_target(turn, key, pool,
             {static_cast<std::uint32_t>(wanted.dedicated), static_cast<std::uint32_t>(wanted.low_priority)},
             rule_of(evaluation.outcome.deallocation),
             fmt::format("the {} says {}{}{}", by, evaluation.run.results, evaluation.why.empty() ? "" : ": ",
                         evaluation.why));
}

// As many as a formula or a scenario asks for, as far as the machine has the capacity.
static void set_target(Turn& turn, const std::string& key, Pool& pool, NodeCounts wanted, Deallocation rule,
                       const std::string& why) {
  if (!pool.record.overcommit) {
    const Resources& machine = turn.settings.machine.total;
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
  record_event_in(turn, pool.record.workspace, "pool.scaled",
                  fmt::format("pool {} goes from {} to {} nodes: {}", pool.record.name,
                              pool.record.target.total(), wanted.total(), why),
                  {}, pool.record.name);
  pool.record.target = wanted;
  begin_resize(turn, key, pool, rule, "", why);
  turn.effects.unsettled.insert(key);
}

// ── samples ──

void begin_watching(Turn& turn, const std::string& key, Pool& pool) {
  begin_evictions(turn, key, pool);
  const ScaleBy by = pool.record.autoscale.by;
  if ((by == ScaleBy::formula || by == ScaleBy::scenario) && pool.evaluate_at <= turn.now) {
    pool.evaluate_at = turn.now;
    turn.effects.timers.push_back({turn.now, AutoscaleDue{key}});
  }
  if (turn.settings.sample_every.count() == 0 || turn.state.is_sampling) return;
  turn.state.is_sampling = true;
  turn.effects.timers.push_back({turn.now, SampleDue{}});
}

void take_samples(Turn& turn, TimePoint at) {
  bool is_first = false;
  for (auto& [key, pool] : turn.state.pools) {
    is_first |= pool.samples.empty();
    take_sample(turn, pool, at);
  }
  // Saved a minute's worth at a time, as each write wakes the disk; a pool's first at once.
  if (turn.state.samples_taken++ % saved_every == 0 || is_first) flush_samples(turn);
  // After a long sleep the ones in between are missing, as they should be.
  TimePoint next = at + turn.settings.sample_every;
  if (next <= turn.now) next = turn.now + turn.settings.sample_every;
  if (turn.state.pools.empty())
    turn.state.is_sampling = false;
  else
    turn.effects.timers.push_back({next, SampleDue{}});
}

static void take_sample(Turn& turn, Pool& pool, TimePoint at) {
  std::array<double, formula::metric_count> values{};
  const auto set = [&](Metric metric, double value) { values[static_cast<std::size_t>(metric)] = value; };
  double active = 0, running = 0;
  for (const sched::Waiting& waiting :
       work_of(sched::order(pool.queue, pool.capacity.scale(), pool.sharing, at)))
    active += static_cast<double>(waiting.tasks) * waiting.shape.nodes;
  std::uint32_t usable = 0, seen = 0, evicted = 0;
  std::map<std::string_view, const MachineUse*> hosts;
  for (const NodeId id : pool.members) {
    const Node& node = turn.state.nodes.at(id);
    running += static_cast<double>(node.attempts.size());  // a gang counts on each of its nodes
    const NodeState state = node.record.state;
    usable += state == NodeState::idle || state == NodeState::busy;
    evicted += state == NodeState::evicted;
    seen += node.session.has_value();
    // Nodes of one machine all report the same machine.
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
  set(Metric::wall_clock_seconds, running * seconds(turn.settings.sample_every));
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
      last->first + turn.settings.sample_every * last->count == at) {
    ++last->count;
    last->is_saved = false;
  } else {
    pool.samples.push_back({at, 1, values, false});
  }
  while (pool.samples.front().first + turn.settings.sample_every * pool.samples.front().count <
         at - Kept::samples)
    pool.samples.pop_front();
}

static void save_samples(Turn& turn, const Pool& pool, const SampleRun& run) {
  PoolSample sample;
  sample.time = run.first;
  sample.every = turn.settings.sample_every;
  sample.count = run.count;
  sample.workspace = pool.record.workspace;
  sample.pool = pool.record.name;
  for (std::size_t metric = 0; metric < formula::metric_count; ++metric)
    if (run.values[metric] != 0)
      sample.values[std::string(formula::to_string(static_cast<Metric>(metric)))] = run.values[metric];
  turn.effects.changes.samples.push_back(std::move(sample));
}

void flush_samples(Turn& turn) {
  for (auto& [key, pool] : turn.state.pools)
    for (auto run = pool.samples.rbegin(); run != pool.samples.rend() && !run->is_saved; ++run) {
      save_samples(turn, pool, *run);
      run->is_saved = true;
    }
}

void restore_samples(Turn& turn, const std::vector<PoolSample>& samples) {
  for (const PoolSample& sample : samples) {
    const auto pool = turn.state.pools.find(sample.workspace + "/" + sample.pool);
    // Of a clock that went ahead, or at another pace, nothing is known.
    if (pool == turn.state.pools.end() || sample.every != turn.settings.sample_every ||
        sample.time > turn.now)
      continue;
    SampleRun run{sample.time, sample.count, {}, true};
    for (const auto& [name, value] : sample.values)
      if (const auto metric = formula::parse_metric(name))
        run.values[static_cast<std::size_t>(*metric)] = value;
    pool->second.samples.push_back(run);
  }
}

}  // namespace slipway::control
