// What was tracked: experiments and their runs, over the MLflow API of the service.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/commands/commands.h"
#include "net/http.h"

namespace slipway::cli {
namespace {

constexpr const char* tracking_api = "/api/2.0/mlflow";
constexpr std::uint32_t runs_page = 1'000;

std::string tracking(const std::string& path,
                     const std::vector<std::pair<std::string, std::string>>& query = {}) {
  return with_query(tracking_api + path, query);
}

Outcome<Value> send_tracking(Context& context, const std::string& path, const Value& body) {
  return context.service().send("POST", tracking(path), wire::format_json(body));
}

std::optional<TimePoint> time_of(const Value& info, std::string_view key) {
  const auto number = info.number_at(key);
  if (!number) return std::nullopt;
  return TimePoint(std::chrono::milliseconds(static_cast<std::int64_t>(*number)));
}

// Keys and values of a list of {key, value}.
std::map<std::string, std::string> pairs_of(const Value& data, std::string_view list) {
  std::map<std::string, std::string> pairs;
  for (const Value& one : data.items_at(list)) pairs[one.text_at("key")] = one.text_at("value");
  return pairs;
}

std::string joined_pairs(const std::map<std::string, std::string>& pairs, std::size_t most) {
  std::string text;
  std::size_t count = 0;
  for (const auto& [key, value] : pairs) {
    if (count++ == most) return text + " …";
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  }
  return text;
}

Outcome<Value> get_run(Context& context, const std::string& id) {
  const Outcome<Value> answer = context.service().get(tracking("/runs/get", {{"run_id", id}}));
  if (!answer) return give_up(answer);
  return answer->at("run");
}

Outcome<Value> all_experiments(Context& context, const std::string& filter) {
  Value all = Value::list();
  std::string token;
  do {
    Value body{{"max_results", runs_page}, {"filter", filter}, {"page_token", token}};
    const Outcome<Value> page = send_tracking(context, "/experiments/search", body);
    if (!page) return give_up(page);
    for (const Value& one : page->items_at("experiments")) all.items.push_back(one);
    token = page->text_at("next_page_token");
  } while (!token.empty());
  return all;
}

Outcome<int> list_experiments(Context& context) {
  return print_list(
      context,
      {.columns = {column("ID", "experiment_id"),
                   column("NAME", "name"),
                   {{"MADE"},
                    [&context](const Value& one) { return ago(context, time_of(one, "creation_time")); }}},
       .id = "experiment_id",
       .empty = "there are no experiments",
       .pages = [&context](const EachPage& each) -> Outcome<void> {
         const Outcome<Value> all = all_experiments(context, "");
         if (!all) return give_up(all);
         each(all->items);
         return {};
       }});
}

struct RunsOptions {
  std::string run, experiment, filter, order, metric;
  std::vector<std::string> runs;
  std::optional<std::uint32_t> limit;
  std::string form = "csv";
  bool yes = false;
};

// By name or id; none: all of them.
Outcome<Value> experiments_of(Context& context, const std::string& wanted) {
  const Outcome<Value> all = all_experiments(context, "");
  if (!all) return give_up(all);
  Value ids = Value::list();
  for (const Value& one : all->items)
    if (wanted.empty() || one.text_at("name") == wanted || one.text_at("experiment_id") == wanted)
      ids.items.emplace_back(one.text_at("experiment_id"));
  if (ids.items.empty())
    return refuse(fmt::format("there is no experiment '{}'", wanted), {}, "slipway experiment list");
  return ids;
}

Outcome<void> each_page_of_runs(Context& context, const RunsOptions& options, const EachPage& each) {
  const Outcome<Value> experiments = experiments_of(context, options.experiment);
  if (!experiments) return give_up(experiments);
  std::string token;
  do {
    Value body{{"experiment_ids", *experiments},
               {"filter", options.filter},
               {"max_results", std::min(options.limit.value_or(runs_page), runs_page)},
               {"page_token", token}};
    if (!options.order.empty()) body["order_by"] = Value::list({Value(options.order)});
    const Outcome<Value> page = send_tracking(context, "/runs/search", body);
    if (!page) return give_up(page);
    std::vector<Value> runs = page->items_at("runs");
    if (context.is_quiet())  // what is printed of an item stands in it
      for (Value& run : runs) run["run_id"] = run.at("info").text_at("run_id");
    if (!each(runs)) return {};
    token = page->text_at("next_page_token");
  } while (!token.empty());
  return {};
}

ListColumn info_column(std::string title, std::string key) {
  return {{std::move(title)}, [key](const Value& run) { return run.at("info").text_at(key); }};
}

Outcome<int> list_runs(Context& context, const RunsOptions& options) {
  return print_list(
      context,
      {.columns = {info_column("RUN", "run_id"),
                   info_column("NAME", "run_name"),
                   info_column("STATUS", "status"),
                   drop(2, info_column("USER", "user_id")),
                   drop(1, {{"BEGAN"},
                            [&context](const Value& run) {
                              return ago(context, time_of(run.at("info"), "start_time"));
                            }}),
                   {{"METRICS"},
                    [](const Value& run) { return joined_pairs(pairs_of(run.at("data"), "metrics"), 4); }},
                   wide({{"PARAMS"},
                         [](const Value& run) {
                           return joined_pairs(pairs_of(run.at("data"), "params"), 8);
                         }})},
       .id = "run_id",
       .empty = "there are no runs; docs/guide/mlflow.md says how to log one",
       .limit = options.limit,
       .pages = [&context, options](const EachPage& each) {
         return each_page_of_runs(context, options, each);
       }});
}

std::string describe_run(Context& context, const Value& run) {
  const Value& info = run.at("info");
  const Value& data = run.at("data");
  std::string text = format_fields({{"run", info.text_at("run_id")},
                                    {"name", printable(info.text_at("run_name"))},
                                    {"experiment", info.text_at("experiment_id")},
                                    {"status", info.text_at("status")},
                                    {"user", printable(info.text_at("user_id"))},
                                    {"began", ago(context, time_of(info, "start_time"))},
                                    {"ended", ago(context, time_of(info, "end_time"))},
                                    {"artifacts", info.text_at("artifact_uri")}});
  for (const char* list : {"params", "metrics", "tags"}) {
    const auto pairs = pairs_of(data, list);
    if (pairs.empty()) continue;
    text += fmt::format("{}:\n", list);
    for (const auto& [key, value] : pairs)
      text += fmt::format("  {} = {}\n", printable(key), printable(value));
  }
  return text;
}

Outcome<int> show_run(Context& context, const RunsOptions& options) {
  const Outcome<Value> run = get_run(context, options.run);
  if (!run) return give_up(run);
  return print(context, *run, options.run, [&] { return describe_run(context, *run); });
}

// Of parameters and metrics only what is not the same in all of them.
Outcome<int> compare_runs(Context& context, const RunsOptions& options) {
  if (options.runs.size() < 2) return misuse("one run cannot be compared", "name two or more");
  std::vector<std::map<std::string, std::string>> all;
  Value runs = Value::list();
  for (const std::string& id : options.runs) {
    const Outcome<Value> run = get_run(context, id);
    if (!run) return give_up(run);
    std::map<std::string, std::string> cells{{"name", run->at("info").text_at("run_name")},
                                             {"status", run->at("info").text_at("status")}};
    for (const char* list : {"params", "metrics"})
      for (const auto& [key, value] : pairs_of(run->at("data"), list))
        cells[fmt::format("{}.{}", list, key)] = value;
    all.push_back(std::move(cells));
    runs.items.push_back(*run);
  }
  std::map<std::string, std::vector<std::string>> rows;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const auto& [key, value] : all[i]) {
      auto& row = rows[key];
      row.resize(all.size(), "-");
      row[i] = value;
    }
  if (context.is_json()) return print(context, runs, "", "");
  std::vector<Column> columns{{""}};
  for (const std::string& id : options.runs) columns.push_back({id.substr(0, 8)});
  Table table(columns, render_options(1));
  bool differs = false;
  for (auto& [key, row] : rows) {
    if (std::all_of(row.begin(), row.end(), [&](const std::string& one) { return one == row[0]; })) continue;
    differs = true;
    std::vector<std::string> cells{printable(key)};
    for (const std::string& one : row) cells.push_back(printable(one));
    table.add(std::move(cells));
  }
  if (!differs) context.say("they have the same parameters and metrics");
  if (differs) write_out(table.format());
  return ExitCode::done;
}

Outcome<std::vector<Value>> history_of(Context& context, const std::string& run, const std::string& key) {
  std::vector<Value> points;
  std::string token;
  do {
    const Outcome<Value> page = context.service().get(
        tracking("/metrics/get-history", {{"run_id", run}, {"metric_key", key}, {"page_token", token}}));
    if (!page) return give_up(page);
    for (const Value& point : page->items_at("metrics")) points.push_back(point);
    token = page->text_at("next_page_token");
  } while (!token.empty());
  return points;
}

// As CSV has it: in quotes where it must be.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

Outcome<int> export_run(Context& context, const RunsOptions& options) {
  const Outcome<Value> run = get_run(context, options.run);
  if (!run) return give_up(run);
  Value history = Value::map();
  if (options.form == "csv") write_out("metric,step,timestamp,value\n");
  for (const auto& [key, latest] : pairs_of(run->at("data"), "metrics")) {
    if (!options.metric.empty() && key != options.metric) continue;
    Outcome<std::vector<Value>> points = history_of(context, options.run, key);
    if (!points) return give_up(points);
    if (options.form == "csv")
      for (const Value& point : *points)
        write_out(fmt::format("{},{},{},{}\n", csv_cell(key), point.text_at("step"),
                              point.text_at("timestamp"), point.text_at("value")));
    else
      history[key] = Value::list(std::move(*points));
  }
  if (options.form == "json") {
    Value whole = *run;
    whole["history"] = std::move(history);
    write_out(wire::format_json_indented(whole) + "\n");
  }
  return ExitCode::done;
}

Outcome<int> delete_runs(Context& context, const RunsOptions& options) {
  const std::string which =
      options.runs.size() == 1 ? "run " + options.runs[0] : fmt::format("{} runs", options.runs.size());
  const Outcome<void> agreed = confirm(fmt::format("Delete {}?", which), options.yes);
  if (!agreed) return give_up(agreed);
  for (const std::string& id : options.runs) {
    const Outcome<Value> deleted = send_tracking(context, "/runs/delete", Value{{"run_id", id}});
    if (!deleted) return give_up(deleted);
    context.say(fmt::format("run {} is deleted", id));
  }
  return ExitCode::done;
}

}  // namespace

void add_experiment(CommandTree& tree, Context& context) {
  Command experiment = tree.add("experiment", "Experiments: folders of runs", "slipway experiment list");
  experiment.verb("list", "List the experiments", "slipway experiment list").lists().runs([&context] {
    return list_experiments(context);
  });
}

void add_runs(CommandTree& tree, Context& context) {
  Command runs = tree.add("runs", "Runs: what was tracked of trainings",
                          "slipway runs list --filter 'metrics.loss < 0.1'");
  auto options = std::make_shared<RunsOptions>();
  runs.verb("list", "List runs, the newest first",
            "slipway runs list --filter 'metrics.loss < 0.1' --order 'metrics.loss ASC'")
      .text("--experiment NAME", options->experiment, "only those of this experiment, by name or id")
      .text("--filter FILTER", options->filter, "only those that match, as in docs/guide/tracking.md")
      .text("--order ORDER", options->order,
            "metrics.NAME, params.NAME, tags.NAME or an attribute, ASC or DESC")
      .number("--limit N", options->limit, "at most so many")
      .lists()
      .runs([&context, options] { return list_runs(context, *options); });
  runs.verb("show", "Show a run: its parameters, tags and latest metrics", "slipway runs show RUN")
      .argument("RUN", options->run, "its id")
      .runs([&context, options] { return show_run(context, *options); });
  runs.verb("compare", "Show in what runs differ", "slipway runs compare RUN RUN")
      .arguments("RUN", options->runs, "their ids")
      .runs([&context, options] { return compare_runs(context, *options); });
  runs.verb("export", "Write the history of a run's metrics to stdout",
            "slipway runs export RUN --format csv")
      .argument("RUN", options->run, "its id")
      .word("--format FORM", options->form, {"csv", "json"},
            "csv: a line a point (default); json: the run with all its points")
      .text("--metric KEY", options->metric, "only this metric")
      .runs([&context, options] { return export_run(context, *options); });
  runs.verb("delete", "Delete runs; their owners can have them restored", "slipway runs delete RUN --yes")
      .arguments("RUN", options->runs, "their ids")
      .flag("-y,--yes", options->yes, "do not ask")
      .runs([&context, options] { return delete_runs(context, *options); });
}

}  // namespace slipway::cli
