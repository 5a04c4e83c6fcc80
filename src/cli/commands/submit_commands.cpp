// Job files: submitted, checked, and planned without being submitted.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/suggest.h"
#include "cli/client/snapshot.h"
#include "cli/commands/commands.h"
#include "cli/commands/submit.h"
#include "wire/document.h"
#include "wire/job_file.h"

namespace slipway::cli {
namespace {

constexpr const char* submit_about = "Submit a job file and print the job's id";
constexpr std::size_t job_file_max = 16u << 20;  // as the service takes it

struct SubmitOptions {
  std::string file;
  bool wait = false;
  std::optional<Duration> timeout;
  std::vector<std::string> settings;
  std::string pool, name;
  std::optional<int> priority;
  std::vector<std::string> environment;
  std::vector<std::string> tags;
  bool dry_run = false;
};

Outcome<std::string> read_job_file(const std::string& file) {
  const Result<std::string> text = read_file(file == "-" ? "/dev/stdin" : file);
  if (!text) return give_up(text);
  if (text->size() > job_file_max)
    return refuse(fmt::format("{} has {}, the limit of a job file is {}", file, format_bytes(text->size()),
                              format_bytes(job_file_max)),
                  {}, "many tasks of one kind are one entry with count: N");
  return *text;
}

// A relative source folder is looked for beside the job file.
std::string source_beside(const std::string& file, const std::string& source) {
  if (source.empty() || file == "-") return source;
  return (std::filesystem::path(file).parent_path() / source).lexically_normal().string();
}

Error no_folder(const std::string& place, const std::string& source) {
  const std::filesystem::path path(source);
  std::vector<std::string> folders;
  std::error_code error;
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error))
    if (std::error_code ignored; entry->is_directory(ignored))
      folders.push_back(entry->path().filename().string());
  const std::string close = nearest(path.filename().string(), folders);
  return Error{ErrorCode::not_found, fmt::format("{}source {} is not a folder", place, source),
               fmt::format("{}a relative folder is looked for beside the job file",
                           close.empty() ? "" : fmt::format("did you mean '{}'? ", close))};
}

// Flags of the command line come before what the file says.
Outcome<void> apply_flags(const SubmitOptions& options, JobSpec& spec) {
  const Outcome<Environment> environment = parse_environment(options.environment);
  if (!environment) return give_up(environment);
  for (const std::string& tag : options.tags) {
    const Outcome<std::pair<std::string, std::string>> parsed = parse_assignment("--tag", tag);
    if (!parsed) return give_up(parsed);
    spec.tags[parsed->first] = parsed->second;
  }
  for (const auto& [name, value] : *environment) spec.environment[name] = value;
  if (!options.pool.empty()) spec.pool = options.pool;
  if (!options.name.empty()) spec.name = options.name;
  if (options.priority) spec.priority = *options.priority;
  if (const Result<void> valid = validate(spec); !valid) return give_up(valid);
  return {};
}

// A job file as it was read, with what it names beside itself.
struct ReadFile {
  JobSpec spec;
  std::string source;
  std::vector<std::pair<std::string, std::string>> files;
};

Outcome<ReadFile> read_file_of(const SubmitOptions& options) {
  const Outcome<std::string> text = read_job_file(options.file);
  if (!text) return give_up(text);
  Result<wire::JobFile> parsed =
      wire::parse_job_file(*text, options.file == "-" ? "standard input" : options.file, options.settings);
  if (!parsed) return give_up(parsed);
  const std::string source = source_beside(options.file, parsed->source_folder);
  if (std::error_code error; !source.empty() && !std::filesystem::is_directory(source, error)) {
    const std::string place = wire::place_in(options.file, parsed->source_line, parsed->source_column);
    return give_up(to_failure(wire::with_caret(no_folder(place, source), *text, options.file)));
  }
  if (const Outcome<void> applied = apply_flags(options, parsed->spec); !applied) return give_up(applied);
  for (auto& [name, from] : parsed->files) from = source_beside(options.file, from);
  return ReadFile{std::move(parsed->spec), source, std::move(parsed->files)};
}

// "n1; n2 n3" for a task on n1 and one on n2 and n3; of many the first few.
std::string describe_placements(const Value& task) {
  constexpr std::size_t shown_max = 6;
  std::string text;
  const std::vector<Value>& placements = task.items_at("placements");
  const std::size_t shown = std::min(placements.size(), shown_max);
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : "; ") + joined(placements[i].items, " ");
  if (const std::uint64_t placed = task.count_at("placed"); placed > shown)
    text += fmt::format("; and {} more", placed - shown);
  return text;
}

Outcome<int> plan_file(Context& context, const ReadFile& file) {
  const Outcome<Value> plan = context.service().send(
      "POST", with_query(resource({"jobs"}), {{"dry_run", "true"}}), wire::format_job_spec(file.spec));
  if (!plan) return give_up(plan);
  for (const Value& note : plan->items_at("notes")) context.say("note:  " + note.scalar());
  return print(context, *plan, plan->text_at("pool"), [&] {
    Table table({{"TASK"}, {"TASKS", true}, {"PLACED", true}, {"NODES"}, {"WAITS FOR"}},
                render_options(STDOUT_FILENO));
    for (const Value& task : plan->items_at("tasks"))
      table.add({task.text_at("name"), task.text_at("tasks"), task.text_at("placed"),
                 describe_placements(task), task.text_at("reason")});
    return table.format();
  });
}

Outcome<int> submit_file(Context& context, const SubmitOptions& options) {
  Outcome<ReadFile> file = read_file_of(options);
  if (!file) return give_up(file);
  if (options.dry_run) return plan_file(context, *file);
  const Outcome<Value> job = submit(context, std::move(file->spec), file->source, file->files);
  if (!job) return give_up(job);
  return print_started(context, *job, options.wait, options.timeout);
}

Outcome<int> validate_file(Context& context, const SubmitOptions& options) {
  const Outcome<ReadFile> file = read_file_of(options);
  if (!file) return give_up(file);
  if (!file->source.empty() || !file->files.empty())
    if (const Result<Code> code = gather_code(file->source, file->files); !code) return give_up(code);
  std::uint64_t tasks = 0;
  for (const TaskSpec& task : file->spec.tasks) tasks += task.tasks();
  const std::string name = file->spec.name.empty() ? file->spec.tasks.front().name : file->spec.name;
  return print(context, {{"name", name}, {"tasks", tasks}}, name,
               fmt::format("{} is valid: {} with {}\n", options.file, name, plural(tasks, "task")));
}

void fill_submit(Command command, Context& context) {
  auto options = std::make_shared<SubmitOptions>();
  command.argument("FILE", options->file, "a job file in YAML, or - for standard input")
      .flag("-w,--wait", options->wait, "wait for its end; exit 0 when it succeeded, else 1")
      .duration("--timeout TIME", options->timeout, "with --wait: give up after so long, exit 124")
      .texts("--set NAME=VALUE", options->settings,
             "change the file: priority=5, tasks.gang.nodes=4 (repeatable)")
      .text("--pool POOL", options->pool, "where to run (default: the file's, or the default pool)")
      .text("--name NAME", options->name, "the job's name (default: the file's)")
      .integer("--priority N", options->priority,
               "from -1000 to 1000, higher first (default: the file's, or 0)")
      .texts("-e,--env,--environment NAME=VALUE", options->environment,
             "a variable for every task, before the file's (repeatable)")
      .texts("--tag NAME=VALUE", options->tags, "a tag to find the job by (repeatable)")
      .flag("--dry-run", options->dry_run, "only say what would be placed where, now; nothing is kept")
      .runs([&context, options] { return submit_file(context, *options); });
}

}  // namespace

void add_submit(CommandTree& tree, Context& context) {
  fill_submit(tree.add("submit", submit_about, "slipway submit train.yaml --wait"), context);
}

void add_job_submit(Command& job, Context& context) {
  fill_submit(job.verb("submit", submit_about, "slipway job submit train.yaml --wait"), context);
  auto options = std::make_shared<SubmitOptions>();
  job.verb("validate", "Check a job file without a service", "slipway job validate train.yaml")
      .argument("FILE", options->file, "a job file in YAML, or - for standard input")
      .texts("--set NAME=VALUE", options->settings, "change the file first (repeatable)")
      .runs([&context, options] { return validate_file(context, *options); });
}

}  // namespace slipway::cli
