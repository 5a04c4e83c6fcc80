#include "wire/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "wire/document.h"
#include "wire/json.h"
#include "wire/pool.h"

namespace slipway::wire {
namespace {

constexpr std::int64_t simulation_nodes_max = 1'000'000;
constexpr Duration until_usual{365ll * 86'400 * 1'000'000};
constexpr Duration time_max{10 * until_usual};
constexpr const char* distribution_hint =
    "write 10m, {uniform: [5m, 15m]}, {normal: [10m, 2m]} (mean, deviation), {lognormal: [10m, 0.5]} "
    "(median, "
    "sigma) or {exponential: 10m} (mean)";

bool is_scalar(const Value& value) {
  return value.kind == Value::Kind::number || value.kind == Value::Kind::string;
}

std::optional<double> as_seconds(const Value& value) {
  if (!is_scalar(value)) return std::nullopt;
  const auto duration = parse_duration(value.text);
  if (!duration || *duration > time_max) return std::nullopt;
  return seconds(*duration);
}

std::optional<double> as_number(const Value& value) {
  if (value.kind != Value::Kind::number) return std::nullopt;
  return std::strtod(value.text.c_str(), nullptr);
}

// Of the one key of the map: its kind, and the one or two numbers it takes.
std::optional<Distribution> as_distribution(const Value& value) {
  using Kind = Distribution::Kind;
  if (const auto fixed = as_seconds(value)) return Distribution{Kind::fixed, *fixed, 0};
  if (value.kind != Value::Kind::map || value.fields.size() != 1) return std::nullopt;
  const auto& [kind, numbers] = value.fields.front();
  if (kind == "fixed" || kind == "exponential") {
    const auto first = as_seconds(numbers);
    if (!first) return std::nullopt;
    return Distribution{kind == "fixed" ? Kind::fixed : Kind::exponential, *first, 0};
  }
  if (numbers.kind != Value::Kind::list || numbers.items.size() != 2) return std::nullopt;
  const auto first = as_seconds(numbers.items[0]);
  const auto second = kind == "lognormal" ? as_number(numbers.items[1]) : as_seconds(numbers.items[1]);
  if (!first || !second) return std::nullopt;
  if (kind == "uniform" && *first <= *second) return Distribution{Kind::uniform, *first, *second};
  if (kind == "normal") return Distribution{Kind::normal, *first, *second};
  if (kind == "lognormal" && *second >= 0 && *second <= 5)
    return Distribution{Kind::lognormal, *first, *second};
  return std::nullopt;
}

Distribution read_distribution(FieldReader& reader, std::string_view key, const Distribution& otherwise) {
  const Value* value = reader.value(key);
  if (!value) return otherwise;
  if (const auto distribution = as_distribution(*value)) return *distribution;
  reader.problem(*value, fmt::format("{} is not a distribution of durations", reader.path_of(key)),
                 distribution_hint);
  return otherwise;
}

Duration read_time(FieldReader& reader, std::string_view key, Duration otherwise) {
  const Duration time = reader.duration(key, otherwise);
  if (time <= time_max) return time;
  reader.problem(*reader.value(key), fmt::format("{} is more than ten years", reader.path_of(key)),
                 "write a shorter time, like 30d");
  return otherwise;
}

Resources read_resources(FieldReader& reader, const Resources& otherwise) {
  Resources resources;
  resources.cores = static_cast<Millicores>(
      std::lround(reader.number("cores", 0.001, 100'000, otherwise.cores / 1000.0) * 1000));
  resources.memory = reader.bytes("memory", otherwise.memory);
  resources.gpus = static_cast<std::uint32_t>(reader.integer("gpus", 0, 1024, otherwise.gpus));
  return resources;
}

Result<void> read_happenings(FieldReader& reader, SimulatedPool& pool) {
  if (const Value* map = reader.value("price")) {
    FieldReader price(*map, reader.document(), reader.path_of("price"));
    pool.price_dedicated = price.number("dedicated", 0, 1e9, 0);
    pool.price_low_priority = price.number("low_priority", 0, 1e9, 0);
    if (auto finished = price.finish(); !finished) return finished;
  }
  if (const Value* map = reader.value("evictions")) {
    FieldReader evictions(*map, reader.document(), reader.path_of("evictions"));
    pool.evictions_every = read_time(evictions, "every", Duration(0));
    pool.notice = read_time(evictions, "notice", 30s);
    if (pool.evictions_every < 1s)
      evictions.problem(*map, fmt::format("{} says not how often", evictions.path()),
                        "say how long a low-priority node lasts on average: every: 6h");
    if (auto finished = evictions.finish(); !finished) return finished;
  }
  if (const Value* map = reader.value("failures")) {
    FieldReader failures(*map, reader.document(), reader.path_of("failures"));
    pool.failures_every = read_time(failures, "every", Duration(0));
    pool.repair = read_distribution(failures, "repair", pool.repair);
    if (pool.failures_every < 1s)
      failures.problem(*map, fmt::format("{} says not how often", failures.path()),
                       "say how long a node works on average: every: 30d");
    if (auto finished = failures.finish(); !finished) return finished;
  }
  return {};
}

// Between min and max by the work that waits; and how tasks are spread over what is there.
void read_scaling(FieldReader& reader, PoolRequest& request) {
  const auto count = [&](std::string_view key) {
    return static_cast<std::uint32_t>(reader.integer(key, 0, simulation_nodes_max, 0));
  };
  if (reader.has("min")) request.min = count("min");
  if (reader.has("max")) request.max = count("max");
  if (request.min.value_or(0) > request.max.value_or(0))
    reader.problem(*reader.value("min"), fmt::format("{} is over max", reader.path_of("min")),
                   "say both: min: 0 and max: 8");
  if (reader.has("idle_timeout")) request.idle_timeout = read_time(reader, "idle_timeout", Duration(0));
  if (reader.has("slots_per_node")) request.slots_per_node = count("slots_per_node");
  if (const Value* fill = reader.value("fill")) {
    request.fill = parse_fill(fill->text);
    if (!request.fill)
      reader.problem(*fill,
                     fmt::format("{} cannot be '{}'", reader.path_of("fill"), fill->text.substr(0, 100)),
                     "it is pack or spread");
  }
}

// Over what `pool` has already; whoever names no number of nodes keeps those it has.
Result<SimulatedPool> read_pool_over(const Value& value, const std::string& document, const std::string& path,
                                     SimulatedPool pool) {
  FieldReader reader(value, document, path);
  pool.request.name = reader.text("name", pool.request.name);
  const bool has_types = reader.has("dedicated") || reader.has("low_priority");
  if (reader.has("nodes") && has_types)
    reader.problem(value, fmt::format("{} has both nodes and dedicated or low_priority", path),
                   "nodes: 4 means dedicated: 4; keep one");
  const auto count = [&](std::string_view key) {
    return static_cast<std::uint32_t>(reader.integer(key, 0, simulation_nodes_max, 0));
  };
  if (reader.has("nodes") || has_types) {
    pool.recorded.clear();
    pool.request.dedicated = count(reader.has("nodes") ? "nodes" : "dedicated");
    pool.request.low_priority = count("low_priority");
  }
  if (reader.has("autoscale")) pool.request.autoscale = read_autoscale(reader);
  // Who decides later how many there are begins with none.
  const bool scales = reader.has("max") || reader.has("autoscale");
  if (scales && !reader.has("nodes") && !has_types && pool.recorded.empty()) pool.request.dedicated = 0;
  read_scaling(reader, pool.request);
  const Resources had{pool.request.cores_per_node.value_or(1000),
                      pool.request.memory_per_node.value_or(4ull << 30),
                      pool.request.gpus_per_node.value_or(0)};
  const Resources per_node = read_resources(reader, had);
  pool.request.cores_per_node = per_node.cores;
  pool.request.memory_per_node = per_node.memory;
  pool.request.gpus_per_node = per_node.gpus;
  if (per_node != had)
    for (RecordedNode& node : pool.recorded) node.total = per_node;
  pool.start_up = read_distribution(reader, "start_up", pool.start_up);
  if (auto read = read_happenings(reader, pool); !read) return fail(read.error());
  if (pool.request.name.empty())
    reader.problem(value, fmt::format("{} has no name", path), "give it one: name: lab");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  if (auto named = validate_name("pool", pool.request.name); !named) return fail(named.error());
  return pool;
}

Result<SimulatedPool> read_pool(const Value& value, const std::string& document, const std::string& path) {
  SimulatedPool pool;
  pool.request.dedicated = 1;
  return read_pool_over(value, document, path, std::move(pool));
}

Result<void> read_task(const Value& value, const std::string& document, const std::string& path,
                       SimulatedJob& job) {
  FieldReader reader(value, document, path);
  TaskSpec spec;
  SimulatedTask task;
  spec.name = reader.text("name", "task");
  spec.command = std::vector<std::string>{"simulated"};
  if (reader.has("count"))
    spec.count = static_cast<std::uint32_t>(reader.integer("count", 1, JobLimits::tasks_max, 1));
  spec.nodes = static_cast<std::uint32_t>(reader.integer("nodes", 1, JobLimits::nodes_max, 1));
  spec.processes_per_node = static_cast<std::uint32_t>(reader.integer("processes_per_node", 1, 4096, 1));
  spec.resources = read_resources(reader, {.cores = 1000, .memory = 0, .gpus = 0});
  spec.depends_on = reader.texts("depends_on");
  spec.after = reader.texts("after");
  spec.after_failure = reader.texts("after_failure");
  if (reader.has("max_failures"))
    spec.max_failures =
        static_cast<std::uint32_t>(reader.integer("max_failures", 0, JobLimits::tasks_max, 0));
  spec.retries = static_cast<std::uint32_t>(reader.integer("retries", 0, JobLimits::retries_max, 0));
  spec.max_wall_time = read_time(reader, "max_wall_time", Duration(0));
  if (!reader.has("duration") && value.kind == Value::Kind::map)
    reader.problem(value, fmt::format("{} has no duration", path), distribution_hint);
  task.duration = read_distribution(reader, "duration", {});
  task.failure = reader.number("fails", 0, 1, 0);
  task.checkpoint_every = read_time(reader, "checkpoint_every", Duration(0));
  if (auto finished = reader.finish(); !finished) return finished;
  job.spec.tasks.push_back(std::move(spec));
  job.tasks.push_back(std::move(task));
  return {};
}

// at: 10m, at: [0s, 10m], or every: 5m / per_hour: 12 with count: or until:.
void read_arrivals(FieldReader& reader, const Value& value, SimulatedJob& job) {
  for (const std::string& text : reader.texts("at")) {
    const auto at = parse_duration(text);
    if (!at || *at > time_max)
      return reader.problem(*reader.value("at"),
                            fmt::format("{} '{}' is not a time", reader.path_of("at"), text),
                            "write times since the beginning, like at: [0s, 10m]");
    job.at.push_back(*at);
  }
  std::sort(job.at.begin(), job.at.end());
  if (reader.has("every")) job.gap = read_distribution(reader, "every", {});
  const double per_hour = reader.number("per_hour", 1e-6, 1e9, 0);
  if (reader.has("every") && reader.has("per_hour"))
    reader.problem(value, fmt::format("{} has both every and per_hour", reader.path()),
                   "every: 5m comes on the clock, per_hour: 12 at random; keep one");
  if (per_hour > 0) job.gap = Distribution{Distribution::Kind::exponential, 3600 / per_hour, 0};
  job.from = read_time(reader, "from", Duration(0));
  job.count = static_cast<std::uint32_t>(reader.integer("count", 1, Simulation::jobs_max, 0));
  if (reader.has("until")) job.until = read_time(reader, "until", Duration(0));
  if (!job.gap && (job.count > 0 || job.until || reader.has("from")))
    reader.problem(value,
                   fmt::format("{} says how many jobs there are, but not how often they come", reader.path()),
                   "say every: 5m or per_hour: 12");
  if (job.gap && job.count == 0 && !job.until)
    reader.problem(value, fmt::format("the jobs of {} never end", reader.path()),
                   "say how many: count: 100, or for how long: until: 8h");
  // Whoever means a stream of nothing between two jobs must say how many there are.
  const bool is_uniform = job.gap && job.gap->kind == Distribution::Kind::uniform;
  const double mean = !job.gap ? 0 : is_uniform ? (job.gap->first + job.gap->second) / 2 : job.gap->first;
  const double lasts = job.until ? seconds(*job.until - job.from) : 0;
  if (job.gap && job.count == 0 && lasts > mean * static_cast<double>(Simulation::jobs_max))
    reader.problem(value, fmt::format("{} would be more than {} jobs", reader.path(), Simulation::jobs_max),
                   "make them rarer, or give their tasks a count");
  if (job.at.empty() && !job.gap) job.at = {Duration(0)};
}

Result<SimulatedJob> read_job(const Value& value, const std::string& document, const std::string& path) {
  FieldReader reader(value, document, path);
  SimulatedJob job;
  job.spec.name = reader.text("name", "job");
  job.spec.pool = reader.text("pool");
  job.spec.priority = static_cast<int>(reader.integer("priority", -1000, 1000, 0));
  job.user = reader.text("user", "user");
  if (value.kind == Value::Kind::map) read_arrivals(reader, value, job);
  const Value* tasks = reader.value("tasks");
  if (tasks && tasks->kind != Value::Kind::list)
    reader.problem(*tasks,
                   fmt::format("{} should be a list, not {}", reader.path_of("tasks"), describe(tasks->kind)),
                   "begin each task with '- name: …'");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  if (tasks)
    for (std::size_t i = 0; i < tasks->items.size(); ++i)
      if (auto read = read_task(tasks->items[i], document, fmt::format("{}.tasks[{}]", path, i), job); !read)
        return fail(read.error());
  if (auto valid = validate(job.spec); !valid)
    return fail(valid.error().code, fmt::format("{}: {}: {}", document, path, valid.error().what),
                valid.error().hint);
  return job;
}

template <class Item, class Read>
Result<void> read_list(FieldReader& reader, std::string_view key, Read read, std::vector<Item>& into) {
  const Value* list = reader.value(key);
  if (!list || list->kind != Value::Kind::list || list->items.empty())
    return fail(ErrorCode::invalid, fmt::format("{} has no list of {}", reader.document(), key),
                fmt::format("say {}: and begin each with '- name: …'", key));
  into.reserve(list->items.size());
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    auto item = read(list->items[i], reader.document(), fmt::format("{}[{}]", key, i));
    if (!item) return fail(item.error());
    into.push_back(std::move(*item));
  }
  return {};
}

// Names that two pools share, and jobs whose pool is not there.
Result<void> check_pools(const Simulation& simulation, const std::string& document) {
  std::vector<std::string> names;
  for (const SimulatedPool& pool : simulation.pools) {
    if (std::find(names.begin(), names.end(), pool.request.name) != names.end())
      return fail(ErrorCode::invalid, fmt::format("{} has two pools called {}", document, pool.request.name),
                  "give one of them another name");
    names.push_back(pool.request.name);
  }
  for (const SimulatedJob& job : simulation.jobs) {
    if (job.spec.pool.empty() && names.size() > 1)
      return fail(ErrorCode::invalid,
                  fmt::format("{}: job {} names no pool, and there are several", document, job.spec.name),
                  fmt::format("say pool: NAME; the pools are {}", fmt::join(names, ", ")));
    if (!job.spec.pool.empty() && std::find(names.begin(), names.end(), job.spec.pool) == names.end())
      return fail(ErrorCode::invalid, fmt::format("{}: there is no pool {}", document, job.spec.pool),
                  fmt::format("the pools are {}", fmt::join(names, ", ")));
  }
  return {};
}

}  // namespace

Result<Simulation> parse_simulation(std::string_view yaml, std::string_view name) {
  const auto root = parse_yaml(yaml, name);
  if (!root) return fail(root.error());
  FieldReader reader(*root, std::string(name), "");
  Simulation simulation;
  simulation.name = reader.text("name");
  simulation.seed =
      static_cast<std::uint64_t>(reader.integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  const std::string start = reader.text("start", "2026-01-05T00:00:00Z");
  if (const auto time = parse_time(start))
    simulation.start = *time;
  else
    reader.problem(*reader.value("start"), fmt::format("start '{}' is not a time", start.substr(0, 100)),
                   "write it like 2026-03-02T08:00:00Z");
  simulation.until = read_time(reader, "until", until_usual);
  simulation.start_delay = read_time(reader, "start_delay", Duration(0));
  reader.has("pools");
  reader.has("jobs");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  if (auto read = read_list(reader, "pools", read_pool, simulation.pools); !read) return fail(read.error());
  if (auto read = read_list(reader, "jobs", read_job, simulation.jobs); !read) return fail(read.error());
  if (auto checked = check_pools(simulation, reader.document()); !checked) return fail(checked.error());
  return simulation;
}

Result<void> apply_policy(std::string_view yaml, std::string_view name, Simulation& simulation) {
  const auto root = parse_yaml(yaml, name);
  if (!root) return fail(root.error());
  FieldReader reader(*root, std::string(name), "");
  const Value* pools = reader.value("pools");
  if (auto finished = reader.finish(); !finished) return finished;
  if (!pools || pools->kind != Value::Kind::list)
    return fail(ErrorCode::invalid, fmt::format("{} has no list of pools", name),
                "say which pools are to be changed, and how: pools: [{name: lab, nodes: 8}]");
  for (std::size_t i = 0; i < pools->items.size(); ++i) {
    const Value* called = pools->items[i].find("name");
    const auto same =
        std::find_if(simulation.pools.begin(), simulation.pools.end(),
                     [&](const SimulatedPool& pool) { return called && pool.request.name == called->text; });
    if (same == simulation.pools.end()) {
      std::vector<std::string> names;
      for (const SimulatedPool& pool : simulation.pools) names.push_back(pool.request.name);
      return fail(ErrorCode::invalid,
                  fmt::format("{} line {}: there is no pool {} in the recording", name, pools->items[i].line,
                              called ? called->text.substr(0, 100) : "without a name"),
                  fmt::format("the pools are {}", fmt::join(names, ", ")));
    }
    auto changed = read_pool_over(pools->items[i], reader.document(), fmt::format("pools[{}]", i), *same);
    if (!changed) return fail(changed.error());
    *same = std::move(*changed);
  }
  return {};
}

}  // namespace slipway::wire
