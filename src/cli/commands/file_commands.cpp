#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "cli/client/task_path.h"
#include "cli/commands/commands.h"

namespace slipway::cli {
namespace {

struct FileOptions {
  std::string task;
  std::string path;
  std::string to;
  std::optional<std::uint32_t> attempt;
};

Outcome<std::string> target_of(const FileOptions& options, const char* example, bool content) {
  const Outcome<TaskPath> path = parse_one_task(options.task, example);
  if (!path) return give_up(path);
  std::vector<std::string> parts{"jobs", path->job, "tasks", path->task, "files"};
  if (content) parts.push_back("content");
  return with_query(resource(parts),
                    {{"path", options.path},
                     {"attempt", options.attempt ? std::to_string(*options.attempt) : std::string()}});
}

Outcome<int> list(Context& context, const FileOptions& options) {
  const Outcome<std::string> target = target_of(options, "slipway files list job_1/train", false);
  if (!target) return give_up(target);
  const auto size = [](const Value& file) {
    return file.text_at("kind") == "file" ? format_bytes(file.count_at("size")) : std::string();
  };
  const auto path = [](const Value& file) {
    return file.text_at("path") + (file.text_at("kind") == "folder" ? "/" : "");
  };
  return print_list(context, {.target = *target,
                              .columns = {column("KIND", "kind"),
                                          {{"SIZE", true}, size},
                                          drop(1, age_column(context, "MODIFIED", "modified_at")),
                                          {{"PATH"}, path}},
                              .id = "path",
                              .empty = "there are no files"});
}

Outcome<void> copy_to(Service& service, const std::string& target, int fd, const std::string& name) {
  Result<void> written;
  net::Client::Options options;
  options.on_piece = [&](std::string_view piece) {
    return (written = write_all(fd, piece, name)).has_value();
  };
  const Outcome<net::Response> answer = service.request("GET", target, options);
  if (!written) return give_up(written);
  if (!answer) return give_up(answer);
  return {};
}

// Written beside and renamed: at `to` there is the whole file or what was there before.
Outcome<void> copy_to_file(Service& service, const std::string& target, const std::string& to) {
  const std::string beside = fmt::format("{}.{}.part", to, ::getpid());
  Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return give_up(to_failure(system_error("cannot create " + beside, errno)));
  Outcome<void> copied = copy_to(service, target, file.get(), beside);
  file.reset();
  if (copied && ::rename(beside.c_str(), to.c_str()) != 0)
    copied = give_up(to_failure(system_error("cannot put the file at " + to, errno)));
  if (!copied) ::unlink(beside.c_str());
  return copied;
}

Outcome<int> get(Context& context, const FileOptions& options) {
  const Outcome<std::string> target =
      target_of(options, "slipway files get job_1/train outputs/model.bin", true);
  if (!target) return give_up(target);
  const Outcome<void> copied = options.to.empty()
                                   ? copy_to(context.service(), *target, STDOUT_FILENO, "standard output")
                                   : copy_to_file(context.service(), *target, options.to);
  if (!copied) return give_up(copied);
  return ExitCode::done;
}

}  // namespace

void add_files(CommandTree& tree, Context& context) {
  Command files =
      tree.add("files", "Files of a task: its folder, its outputs", "slipway files list job_1/train");
  auto listed = std::make_shared<FileOptions>();
  files.verb("list", "List the files of a task", "slipway files list job_1/train outputs")
      .lists()
      .argument("JOB/TASK", listed->task, "the task")
      .argument("PATH", listed->path, "a folder below the task's own", Need::optional)
      .number("--attempt N", listed->attempt, "of this attempt (default: the last)")
      .runs([&context, listed] { return list(context, *listed); });
  auto got = std::make_shared<FileOptions>();
  files
      .verb("get", "Print a file of a task, or keep it",
            "slipway files get job_1/train outputs/model.bin --to model.bin")
      .argument("JOB/TASK", got->task, "the task")
      .argument("PATH", got->path, "the file, as files list shows it")
      .text("--to FILE", got->to, "where to keep it (default: standard output)")
      .number("--attempt N", got->attempt, "of this attempt (default: the last)")
      .runs([&context, got] { return get(context, *got); });
}

}  // namespace slipway::cli
