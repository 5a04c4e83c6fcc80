#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "wire/recording.h"
#include "wire/simulation.h"

namespace slipway::cli {
namespace {

struct SimOptions {
  std::vector<std::string> files;
  std::string file;
  std::string policy;
  std::optional<std::uint32_t> seed;
};

Outcome<Simulation> read_simulation(const std::string& file, const std::optional<std::uint32_t>& seed) {
  const bool standard_input = file == "-";
  const Result<std::string> text = read_file(standard_input ? "/dev/stdin" : file);
  if (!text) return give_up(to_failure(text.error()));
  auto simulation = wire::parse_simulation(*text, standard_input ? "standard input" : file);
  if (!simulation) return give_up(to_failure(simulation.error()));
  if (seed) simulation->seed = *seed;
  if (simulation->name.empty()) simulation->name = file;
  return std::move(*simulation);
}

Outcome<SimulationFigures> simulate(const Context& context, const Simulation& simulation) {
  auto figures = context.programs().simulate(simulation);
  if (!figures) return give_up(to_failure(figures.error()));
  return std::move(*figures);
}

std::string time(double seconds) {
  if (seconds < 1e-6) return "0 s";
  return format_duration(Duration(static_cast<std::int64_t>(seconds * 1e6)));
}
std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

// One line of the overview: what it is called, and how to read it off some figures.
struct Line {
  const char* name;
  std::string (*text)(const SimulationFigures&);
  double (*number)(const SimulationFigures&);  // for the ratio of two runs; none: there is no sense in one
};
std::string count(std::uint64_t number) { return std::to_string(number); }

const Line lines[] = {
    {"makespan", [](const auto& f) { return time(f.makespan); }, [](const auto& f) { return f.makespan; }},
    {"mean wait", [](const auto& f) { return time(f.all.work.waits.mean); },
     [](const auto& f) { return f.all.work.waits.mean; }},
    {"median wait", [](const auto& f) { return time(f.all.work.waits.p50); },
     [](const auto& f) { return f.all.work.waits.p50; }},
    {"95 % wait at most", [](const auto& f) { return time(f.all.work.waits.p95); },
     [](const auto& f) { return f.all.work.waits.p95; }},
    {"longest wait", [](const auto& f) { return time(f.all.work.waits.max); },
     [](const auto& f) { return f.all.work.waits.max; }},
    {"utilisation", [](const auto& f) { return percent(f.all.utilisation); },
     [](const auto& f) { return f.all.utilisation; }},
    {"goodput", [](const auto& f) { return percent(f.all.goodput); },
     [](const auto& f) { return f.all.goodput; }},
    {"cost", [](const auto& f) { return fmt::format("{:.2f}", f.all.cost); },
     [](const auto& f) { return f.all.cost; }},
    {"node hours",
     [](const auto& f) {
       return fmt::format("{:.1f}", f.all.node_hours_dedicated + f.all.node_hours_low_priority);
     },
     [](const auto& f) { return f.all.node_hours_dedicated + f.all.node_hours_low_priority; }},
    {"most nodes", [](const auto& f) { return count(f.all.nodes_peak); }, nullptr},
    {"nodes evicted", [](const auto& f) { return count(f.all.node_evictions); }, nullptr},
    {"nodes failed", [](const auto& f) { return count(f.all.node_failures); }, nullptr},
    {"tasks succeeded", [](const auto& f) { return count(f.all.work.tasks.succeeded); }, nullptr},
    {"tasks failed", [](const auto& f) { return count(f.all.work.tasks.failed); }, nullptr},
    {"tasks skipped", [](const auto& f) { return count(f.all.work.tasks.skipped); }, nullptr},
    {"attempts", [](const auto& f) { return count(f.all.work.attempts); }, nullptr},
    {"attempts evicted", [](const auto& f) { return count(f.all.work.evicted); }, nullptr},
    {"attempts lost", [](const auto& f) { return count(f.all.work.lost); }, nullptr},
    {"retries", [](const auto& f) { return count(f.all.work.retries); }, nullptr},
    {"work lost", [](const auto& f) { return fmt::format("{:.1f} core hours", f.all.work.core_hours_lost); },
     [](const auto& f) { return f.all.work.core_hours_lost; }},
    {"jobs refused", [](const auto& f) { return count(f.jobs_refused); }, nullptr},
    {"jobs unfinished", [](const auto& f) { return count(f.all.work.jobs_unfinished); }, nullptr},
};

// What did not happen in any of the runs is not worth a line.
bool is_shown(const Line& line, const std::vector<SimulationFigures>& runs) {
  const std::string_view name = line.name;
  if (name == "makespan" || name == "mean wait" || name == "utilisation" || name == "tasks succeeded")
    return true;
  for (const SimulationFigures& run : runs) {
    const std::string text = line.text(run);
    if (text.find_first_of("123456789") != std::string::npos) return true;
  }
  return false;
}

std::vector<std::string> work_cells(const std::string& name, const WorkFigures& work) {
  return {name,
          count(work.tasks.succeeded),
          count(work.tasks.failed),
          time(work.waits.mean),
          time(work.waits.p95),
          count(work.evicted + work.lost),
          count(work.retries),
          fmt::format("{:.1f}", work.core_hours)};
}

std::string for_people(const SimulationFigures& figures) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const Line& line : lines)
    if (is_shown(line, {figures})) fields.emplace_back(line.name, line.text(figures));
  std::string text = format_fields(fields);
  Table pools({{"POOL"},
               {"SUCCEEDED", true},
               {"FAILED", true},
               {"MEAN WAIT", true},
               {"P95 WAIT", true},
               {"CUT SHORT", true},
               {"RETRIES", true},
               {"CORE HOURS", true},
               {"BUSY", true},
               {"GOOD", true},
               {"COST", true}},
              render_options(STDOUT_FILENO));
  for (const auto& [name, pool] : figures.pools) {
    std::vector<std::string> cells = work_cells(name, pool.work);
    cells.push_back(percent(pool.utilisation));
    cells.push_back(percent(pool.goodput));
    cells.push_back(fmt::format("{:.2f}", pool.cost));
    pools.add(std::move(cells));
  }
  Table users({{"USER"},
               {"SUCCEEDED", true},
               {"FAILED", true},
               {"MEAN WAIT", true},
               {"P95 WAIT", true},
               {"CUT SHORT", true},
               {"RETRIES", true},
               {"CORE HOURS", true}},
              render_options(STDOUT_FILENO));
  for (const auto& [name, work] : figures.users) users.add(work_cells(name, work));
  return text + "\n" + pools.format() + "\n" + users.format();
}

std::string ratio(const Line& line, const SimulationFigures& first, const SimulationFigures& second) {
  if (!line.number || line.number(first) <= 0) return {};
  return fmt::format("{:.2f}", line.number(second) / line.number(first));
}

std::string side_by_side(const std::vector<std::string>& titles, const std::vector<SimulationFigures>& runs) {
  std::vector<Column> columns{{""}};
  for (const std::string& title : titles) columns.push_back({title, true});
  for (std::size_t i = 1; i < runs.size(); ++i) columns.push_back({"RATIO", true});
  Table table(columns, render_options(STDOUT_FILENO));
  for (const Line& line : lines) {
    if (!is_shown(line, runs)) continue;
    std::vector<std::string> cells{line.name};
    for (const SimulationFigures& run : runs) cells.push_back(line.text(run));
    for (std::size_t i = 1; i < runs.size(); ++i) cells.push_back(ratio(line, runs.front(), runs[i]));
    table.add(std::move(cells));
  }
  return table.format();
}

void say_notes(const Context& context, const SimulationFigures& figures) {
  for (const std::string& note : figures.notes) context.say("note:  " + note);
}

Outcome<int> run(const Context& context, const SimOptions& options) {
  const Outcome<Simulation> simulation = read_simulation(options.file, options.seed);
  if (!simulation) return give_up(simulation);
  const Outcome<SimulationFigures> figures = simulate(context, *simulation);
  if (!figures) return give_up(figures);
  say_notes(context, *figures);
  return print(context, *wire::parse_answer(wire::format(*figures)), fmt::format("{}", figures->makespan),
               [&] { return for_people(*figures); });
}

Outcome<int> compare(const Context& context, const SimOptions& options) {
  if (options.files.size() != 2)
    return misuse("two scenarios are compared, not " + std::to_string(options.files.size()),
                  "slipway sim compare a.yaml b.yaml");
  std::vector<SimulationFigures> runs;
  std::vector<std::string> documents;
  for (const std::string& file : options.files) {
    const Outcome<Simulation> simulation = read_simulation(file, options.seed);
    if (!simulation) return give_up(simulation);
    Outcome<SimulationFigures> figures = simulate(context, *simulation);
    if (!figures) return give_up(figures);
    say_notes(context, *figures);
    documents.push_back(wire::format(*figures));
    runs.push_back(std::move(*figures));
  }
  const std::string json = fmt::format(R"({{"first": {}, "second": {}}})", documents[0], documents[1]);
  return print(context, *wire::parse_answer(json), fmt::format("{} {}", runs[0].makespan, runs[1].makespan),
               [&] {
                 return side_by_side({runs[0].name, runs[1].name}, runs);
               });
}

// What was, what the simulation makes of it unchanged, and what it makes of it with another policy.
Outcome<int> replay(const Context& context, const SimOptions& options) {
  if (options.file.empty())
    return misuse("there is nothing to replay",
                  "slipway events --export events.jsonl, then --from events.jsonl");
  const Result<std::string> text = read_file(options.file == "-" ? "/dev/stdin" : options.file);
  if (!text) return give_up(to_failure(text.error()));
  const auto recording = wire::parse_recording(*text, options.file == "-" ? "standard input" : options.file);
  if (!recording) return give_up(to_failure(recording.error()));
  auto replay = context.programs().replay_of(*recording);
  if (!replay) return give_up(to_failure(replay.error()));
  if (options.seed) replay->simulation.seed = *options.seed;
  const Outcome<SimulationFigures> predicted = simulate(context, replay->simulation);
  if (!predicted) return give_up(predicted);
  say_notes(context, replay->recorded);
  say_notes(context, *predicted);
  std::vector<std::string> titles{"RECORDED", "PREDICTED"};
  std::vector<SimulationFigures> runs{replay->recorded, *predicted};
  std::string json = fmt::format(R"("recorded": {}, "predicted": {})", wire::format(replay->recorded),
                                 wire::format(*predicted));
  if (!options.policy.empty()) {
    const Result<std::string> policy = read_file(options.policy);
    if (!policy) return give_up(to_failure(policy.error()));
    if (auto applied = wire::apply_policy(*policy, options.policy, replay->simulation); !applied)
      return give_up(to_failure(applied.error()));
    replay->simulation.name = "changed";
    const Outcome<SimulationFigures> changed = simulate(context, replay->simulation);
    if (!changed) return give_up(changed);
    say_notes(context, *changed);
    titles.push_back("CHANGED");
    runs.push_back(*changed);
    json += fmt::format(R"(, "changed": {})", wire::format(*changed));
  }
  return print(context, *wire::parse_answer("{" + json + "}"), fmt::format("{}", runs.back().makespan),
               [&] { return side_by_side(titles, runs); });
}

}  // namespace

void add_sim(CommandTree& tree, Context& context) {
  Command sim = tree.add("sim", "Simulate pools and scheduling policies", "slipway sim run scenario.yaml");
  auto running = std::make_shared<SimOptions>();
  sim.verb("run", "Report makespan, waits, utilisation and cost of a scenario",
           "slipway sim run scenario.yaml --seed 7")
      .argument("FILE", running->file, "the scenario; - for standard input")
      .number("--seed N", running->seed, "of everything random (default: the scenario's, or 1)")
      .runs([&context, running] { return run(context, *running); });
  auto replaying = std::make_shared<SimOptions>();
  sim.verb("replay", "Replay a recording, optionally with other pools",
           "slipway sim replay --from events.jsonl --with policy.yaml")
      .text("--from FILE", replaying->file, "a recording of slipway events --export; - for standard input")
      .text("--with FILE", replaying->policy, "the pools to replay with")
      .number("--seed N", replaying->seed, "of everything random (default: 1)")
      .runs([&context, replaying] { return replay(context, *replaying); });
  auto comparing = std::make_shared<SimOptions>();
  sim.verb("compare", "Compare two scenarios", "slipway sim compare a.yaml b.yaml")
      .arguments("FILE", comparing->files, "the two scenarios")
      .number("--seed N", comparing->seed, "of everything random in both")
      .runs([&context, comparing] { return compare(context, *comparing); });
}

}  // namespace slipway::cli
