#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "cli/client/task_files.h"
#include "cli/client/task_path.h"
#include "cli/commands/commands.h"
#include "cli/output/progress.h"

namespace slipway::cli {
namespace {

struct FileOptions {
  std::string task;
  std::string path;
  std::string to;
  std::optional<std::uint32_t> attempt;
  bool recursive = false;
};

std::string size_text(const Value& file) {
  return file.text_at("kind") == "file" ? format_bytes(file.count_at("size")) : std::string();
}

std::string path_text(const Value& file) {
  return file.text_at("path") + (file.text_at("kind") == "folder" ? "/" : "");
}

Outcome<int> list(Context& context, const FileOptions& options) {
  const Outcome<TaskPath> path = parse_one_task(options.task, "slipway files list job_1/train");
  if (!path) return give_up(path);
  const Outcome<std::vector<std::string>> tasks = tasks_of(context.service(), path->job, path->task);
  if (!tasks) return give_up(tasks);
  const auto target_of = [&](const std::string& task) {
    return TaskFiles(context.service(), path->job, task, options.attempt).list_target(options.path);
  };
  ListView view{.target = target_of(path->task),
                .columns = {column("KIND", "kind"),
                            {{"SIZE", true}, size_text},
                            drop(1, age_column(context, "MODIFIED", "modified_at")),
                            {{"PATH"}, path_text}},
                .id = "path",
                .empty = "there are no files"};
  if (tasks->size() <= 1) return print_list(context, view);
  view.columns.insert(view.columns.begin(), column("TASK", "task"));
  view.pages = [&](const EachPage& each) -> Outcome<void> {  // of an array, task by task
    for (const std::string& task : *tasks) {
      bool is_enough = false;
      const Outcome<void> listed =
          context.service().pages(target_of(task), [&](const std::vector<Value>& files) {
            std::vector<Value> named = files;
            for (Value& file : named) file["task"] = task;
            is_enough = !each(named);
            return !is_enough;
          });
      // Of several tasks some may not have run, or have no such folder.
      if (!listed && listed.error().status != 404) return listed;
      if (is_enough) break;
    }
    return {};
  };
  return print_list(context, view);
}

// Written beside and renamed: at `to` there is the whole file or what was there before.
Outcome<void> copy_to_file(TaskFiles& files, const std::string& path, const std::string& to) {
  const std::string beside = fmt::format("{}.{}.part", to, ::getpid());
  Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return give_up(to_failure(system_error("cannot create " + beside, errno)));
  Outcome<void> copied = files.copy(path, file.get(), beside);
  file.reset();
  if (copied && ::rename(beside.c_str(), to.c_str()) != 0)
    copied = give_up(to_failure(system_error("cannot put the file at " + to, errno)));
  if (!copied) ::unlink(beside.c_str());
  return copied;
}

struct TaskFetch {
  TaskFiles files;
  std::string folder;  // where they go
  std::vector<TaskFile> found;
};

// What a pattern means in each of the tasks; of several tasks each has a folder of its own below `to`.
Outcome<std::vector<TaskFetch>> find_files(Context& context, const TaskPath& path,
                                           const FileOptions& options) {
  const Outcome<std::vector<std::string>> tasks = tasks_of(context.service(), path.job, path.task);
  if (!tasks) return give_up(tasks);
  std::vector<TaskFetch> fetches;
  for (const std::string& task : *tasks) {
    TaskFetch fetch{{context.service(), path.job, task, options.attempt}, options.to, {}};
    if (tasks->size() > 1) fetch.folder += "/" + label_of(task);
    Outcome<std::vector<TaskFile>> found = fetch.files.find(options.path, options.recursive);
    // Of several tasks some may not have run, or have no such folder.
    if (!found && tasks->size() > 1 && found.error().status == 404) continue;
    if (!found) return give_up(found);
    fetch.found = std::move(*found);
    fetches.push_back(std::move(fetch));
  }
  return fetches;
}

Outcome<int> fetch_all(Context& context, std::vector<TaskFetch> fetches, const std::string& to) {
  std::size_t count = 0;
  Bytes bytes = 0;
  for (const TaskFetch& fetch : fetches)
    for (const TaskFile& file : fetch.found) ++count, bytes += file.size;
  {
    Progress progress(!context.is_quiet(), "fetching", count, bytes);
    for (TaskFetch& fetch : fetches)
      for (const TaskFile& file : fetch.found) {
        const Outcome<void> fetched = fetch.files.fetch(
            file, fetch.folder + "/" + file.path, [&progress](std::uint64_t more) { progress.add(more); });
        if (!fetched) return give_up(fetched);
        progress.file_done();
      }
  }
  context.say(fmt::format("{}, {}, in {}", plural(count, "file"), format_bytes(bytes), to));
  return ExitCode::done;
}

Outcome<int> get_several(Context& context, const FileOptions& options) {
  const Outcome<TaskPath> path = parse_task_path(options.task);
  if (!path) return give_up(path);
  if (options.to.empty())
    return misuse("several files need a folder to go to",
                  "slipway files get job_1/train outputs -r --to results");
  Outcome<std::vector<TaskFetch>> fetches = find_files(context, *path, options);
  if (!fetches) return give_up(fetches);
  if (std::all_of(fetches->begin(), fetches->end(), [](const auto& fetch) { return fetch.found.empty(); }))
    return refuse(fmt::format("no file of {} is {}", options.task, options.path),
                  options.recursive ? "" : "folders are left out without -r",
                  fmt::format("slipway files list {}", options.task));
  return fetch_all(context, std::move(*fetches), options.to);
}

Outcome<int> get(Context& context, const FileOptions& options) {
  if (options.recursive || is_file_pattern(options.path)) return get_several(context, options);
  const Outcome<TaskPath> path =
      parse_one_task(options.task, "slipway files get job_1/train outputs/model.bin");
  if (!path) return give_up(path);
  TaskFiles files(context.service(), path->job, path->task, options.attempt);
  const Outcome<void> copied = options.to.empty() ? files.copy(options.path, STDOUT_FILENO, "standard output")
                                                  : copy_to_file(files, options.path, options.to);
  if (!copied) return give_up(copied);
  return ExitCode::done;
}

// All that the tasks of a job have put into their folders outputs.
Outcome<int> outputs(Context& context, FileOptions options) {
  options.path = "outputs";
  options.recursive = true;
  const Outcome<TaskPath> path = parse_task_path(options.task);
  if (!path) return give_up(path);
  Outcome<std::vector<TaskFetch>> fetches = find_files(context, *path, options);
  if (!fetches) return give_up(fetches);
  if (!options.to.empty()) return fetch_all(context, std::move(*fetches), options.to);
  const auto pages = [&fetches](const EachPage& each) -> Outcome<void> {
    for (const TaskFetch& fetch : *fetches) {
      std::vector<Value> items;
      for (const TaskFile& file : fetch.found)
        items.push_back({{"task", fetch.files.task()},
                         {"path", file.path},
                         {"size", file.size},
                         {"modified_at", format_time(file.modified_at)}});
      if (!each(items)) break;
    }
    return {};
  };
  return print_list(
      context,
      {.target = {},
       .columns = {column("TASK", "task"),
                   {{"SIZE", true}, [](const Value& file) { return format_bytes(file.count_at("size")); }},
                   drop(1, age_column(context, "MODIFIED", "modified_at")),
                   column("PATH", "path")},
       .id = "path",
       .empty = "there are no outputs: tasks put them into the folder $SLIPWAY_OUTPUTS",
       .pages = pages});
}

}  // namespace

void add_files(CommandTree& tree, Context& context) {
  Command files =
      tree.add("files", "Files of a task: its folder, its outputs", "slipway files list job_1/train");
  auto listed = std::make_shared<FileOptions>();
  files.verb("list", "List the files of a task", "slipway files list job_1/train outputs")
      .lists()
      .argument("JOB/TASK", listed->task, "the task; JOB/ARRAY for all of an array")
      .argument("PATH", listed->path, "a folder below the task's own", Need::optional)
      .number("--attempt N", listed->attempt, "of this attempt (default: the last)")
      .runs([&context, listed] { return list(context, *listed); });
  auto got = std::make_shared<FileOptions>();
  files
      .verb("get", "Print a file of a task, or keep files and folders",
            "slipway files get job_1/train outputs -r --to results")
      .argument("JOB/TASK", got->task, "the task; of a pattern or with -r also a job, for all its tasks")
      .argument("PATH", got->path, "as files list shows it, or a pattern: 'outputs/*.bin'")
      .flag("-r,--recursive", got->recursive, "a folder with all that is below it")
      .text("--to PLACE", got->to, "the file, or with -r or a pattern the folder, to keep it in")
      .number("--attempt N", got->attempt, "of this attempt (default: the last)")
      .runs([&context, got] { return get(context, *got); });
}

void add_outputs(CommandTree& tree, Context& context) {
  auto options = std::make_shared<FileOptions>();
  tree.add("outputs", "List or fetch all outputs of a job", "slipway outputs job_1 --to results")
      .lists()
      .argument("JOB", options->task, "the job, or JOB/TASK for one task or array of it")
      .text("--to FOLDER", options->to, "fetch them; what is there already is not fetched again")
      .runs([&context, options] { return outputs(context, *options); });
}

}  // namespace slipway::cli
