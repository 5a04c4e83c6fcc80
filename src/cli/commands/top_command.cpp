// What the nodes do, live, in the terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/quantity.h"
#include "cli/client/retry.h"
#include "cli/commands/commands.h"
#include "cli/output/screen.h"

namespace slipway::cli {
namespace {

struct TopOptions {
  std::string pool;
  bool once = false;
};

struct Seen {
  std::vector<Value> nodes, jobs;  // those that run first
};

Outcome<void> read_all(Service& service, const std::string& target, std::vector<Value>& items) {
  return service.pages(target, [&](const std::vector<Value>& page) {
    items.insert(items.end(), page.begin(), page.end());
    return true;
  });
}

constexpr std::size_t jobs_max = 200;  // asked for of each state

Outcome<Seen> look(Service& service, const std::string& pool) {
  Seen seen;
  if (auto read = read_all(service, with_query(resource({"nodes"}), {{"pool", pool}}), seen.nodes); !read)
    return give_up(read);
  std::erase_if(seen.nodes, [](const Value& node) { return node.text_at("state") == "gone"; });
  for (const char* state : {"running", "stopping", "queued"}) {
    const auto read = service.pages(
        with_query(resource({"jobs"}), {{"state", state}, {"pool", pool}}),
        [&](const std::vector<Value>& page) {
          seen.jobs.insert(seen.jobs.end(), page.begin(), page.end());
          return false;
        },
        jobs_max);
    if (!read) return give_up(read);
  }
  // The busiest first, and those that are in some other state than usual before idle ones.
  const auto rank = [](const Value& node) {
    const std::string state = node.text_at("state");
    return std::pair(state == "busy"   ? 0
                     : state == "idle" ? 2
                                       : 1,
                     -node.at("used").number_at("cores").value_or(0));
  };
  std::stable_sort(seen.nodes.begin(), seen.nodes.end(),
                   [&](const Value& a, const Value& b) { return rank(a) < rank(b); });
  return seen;
}

std::string amount(double used, double total) { return fmt::format("{:g}/{:g}", used, total); }

// Filled as far as it is used, of ten parts.
std::string bar(double used, double total) {
  const auto parts = total > 0 ? static_cast<std::size_t>(std::clamp(used / total, 0.0, 1.0) * 10 + 0.5) : 0;
  return std::string(parts, '#') + std::string(10 - parts, '.');
}

std::string summary(const Seen& seen) {
  double cores = 0, cores_used = 0, gpus = 0, gpus_used = 0;
  Bytes memory = 0, memory_used = 0;
  std::size_t running = 0, queued = 0;
  for (const Value& node : seen.nodes) {
    cores += node.number_at("cores").value_or(0);
    gpus += node.number_at("gpus").value_or(0);
    memory += node.count_at("memory");
    cores_used += node.at("used").number_at("cores").value_or(0);
    gpus_used += node.at("used").number_at("gpus").value_or(0);
    memory_used += node.at("used").count_at("memory");
  }
  for (const Value& job : seen.jobs) ++(job.text_at("state") == "queued" ? queued : running);
  std::string text = fmt::format("{}, {} running, {} queued\n", plural(seen.nodes.size(), "node"),
                                 plural(running, "job"), queued);
  text += fmt::format("cores   {}  {}\n", bar(cores_used, cores), amount(cores_used, cores));
  text += fmt::format("memory  {}  {} of {}\n",
                      bar(static_cast<double>(memory_used), static_cast<double>(memory)),
                      format_bytes(memory_used), format_bytes(memory));
  if (gpus > 0) text += fmt::format("GPUs    {}  {}\n", bar(gpus_used, gpus), amount(gpus_used, gpus));
  return text;
}

std::string nodes_table(const Seen& seen, const RenderOptions& options, std::size_t rows_max) {
  Table table({{"NODE"},
               {.title = "POOL", .drop = 2},
               {.title = "STATE", .colour = true},
               {"CORES", true},
               {.title = "MEMORY", .right = true, .drop = 3},
               {.title = "GPUS", .right = true, .drop = 1},
               {"RUNNING"}},
              options);
  for (std::size_t i = 0; i < std::min(rows_max, seen.nodes.size()); ++i) {
    const Value& node = seen.nodes[i];
    const Value& used = node.at("used");
    std::string running = joined(node.items_at("running"), " ");
    if (running.empty() && node.text_at("state") != "idle") running = node.text_at("reason");
    table.add(
        {node.text_at("name"), node.text_at("pool"), node.text_at("state"),
         amount(used.number_at("cores").value_or(0), node.number_at("cores").value_or(0)),
         fmt::format("{}/{}", format_bytes(used.count_at("memory")), format_bytes(node.count_at("memory"))),
         node.count_at("gpus") == 0
             ? ""
             : amount(used.number_at("gpus").value_or(0), node.number_at("gpus").value_or(0)),
         running});
  }
  std::string text = table.format();
  if (seen.nodes.size() > rows_max) text += fmt::format("and {} more\n", seen.nodes.size() - rows_max);
  return text;
}

std::string jobs_table(const Context& context, const Seen& seen, const RenderOptions& options,
                       std::size_t rows_max) {
  if (seen.jobs.empty()) return {};
  Table table({{"JOB"},
               {.title = "NAME", .drop = 3},
               {.title = "USER", .drop = 1},
               {.title = "STATE", .colour = true},
               {"DONE", true},
               {"RUNNING", true},
               {.title = "RAN", .right = true, .drop = 2}},
              options);
  for (std::size_t i = 0; i < std::min(rows_max, seen.jobs.size()); ++i) {
    const Value& job = seen.jobs[i];
    const Value& tasks = job.at("tasks");
    table.add({job.text_at("id"), job.text_at("name"), job.text_at("submitted_by"), job.text_at("state"),
               fmt::format("{}/{}", tasks.count_at("succeeded"), tasks.count_at("total")),
               tasks.text_at("active"), span(context, job.time_at("started_at"), job.time_at("ended_at"))});
  }
  std::string text = "\n" + table.format();
  if (seen.jobs.size() > rows_max) text += fmt::format("and {} more\n", seen.jobs.size() - rows_max);
  return text;
}

std::string describe(const Context& context, const Seen& seen, const RenderOptions& options) {
  constexpr std::size_t other_lines = 10;  // of the summary, two headers and what is left out
  const std::size_t rows = options.height > other_lines + 4 ? options.height - other_lines : 4;
  const std::size_t all = options.height == 0 ? SIZE_MAX : rows;
  const std::size_t jobs =
      std::min(seen.jobs.size(), std::max(all / 2, all - std::min(all, seen.nodes.size())));
  return summary(seen) + "\n" + nodes_table(seen, options, all - std::min(all, jobs)) +
         jobs_table(context, seen, options, std::max<std::size_t>(jobs, 1));
}

Outcome<int> top(Context& context, const TopOptions& options) {
  const bool is_screen = is_terminal(STDOUT_FILENO) && !options.once;
  if (is_screen && !context.is_json()) write_out(clear_screen);
  for (;; std::this_thread::sleep_for(1s)) {
    const Outcome<Seen> seen = with_retry([&] { return look(context.service(), options.pool); });
    if (!seen) return give_up(seen);
    if (context.is_json()) {
      write_out(
          format_answer(context, {{"nodes", Value::list(seen->nodes)}, {"jobs", Value::list(seen->jobs)}}));
      return ExitCode::done;
    }
    const RenderOptions render = render_options(STDOUT_FILENO);
    const std::string text = describe(context, *seen, render);
    write_out(is_screen ? screen_of(text, render.height) : text);
    if (const Outcome<void> written = finish_output(); !written) return give_up(written);
    if (!is_screen) return ExitCode::done;
  }
}

}  // namespace

void add_top(CommandTree& tree, Context& context) {
  auto options = std::make_shared<TopOptions>();
  tree.add("top", "What nodes and jobs do, live, until Ctrl-C; into a file or program once",
           "slipway top --pool lab")
      .text("--pool POOL", options->pool, "only this pool")
      .flag("--once", options->once, "print it once also on a terminal")
      .runs([&context, options] { return top(context, *options); });
}

}  // namespace slipway::cli
