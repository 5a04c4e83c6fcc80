#include "keeper/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/search_path.h"
#include "keeper/empty_folders.h"
#include "keeper/spawn_child.h"

namespace slipway::keeper {

// A child that has not executed yet. It owns what the plain pointers of its setup lead to.
struct NewChild {
  ProcessSpec process;
  SpawnOptions options;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<ChildPath> folders;
  std::shared_ptr<const std::vector<std::string>> files;
  std::vector<const char*> file_names;
  ChildSetup setup;
};

namespace {

constexpr std::string_view killed_too_early = "it was killed before its program ran";
constexpr std::size_t in_progress_max = 4;
constexpr int looks_max = 10;
constexpr std::size_t made_max = 4;  // an attempt's own, its outputs, its checkpoints, the job's shared one
constexpr Duration found_for = 100ms;

std::vector<char*> pointers(const std::vector<std::string>& texts, const std::string* last = nullptr) {
  std::vector<char*> result;
  result.reserve(texts.size() + 2);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  if (last != nullptr) result.push_back(const_cast<char*>(last->c_str()));
  result.push_back(nullptr);
  return result;
}

// The path from the first folder, where the child stands once it is made: walking down to it every time costs
// as much as one more folder.
ChildPath child_path(const ProcessSpec& process, const std::string& path) {
  ChildPath result{.full = path.c_str(), .to_use = path.c_str()};
  if (process.folders.empty()) return result;
  const std::string& first = process.folders.front();
  result.is_inside = path.size() > first.size() + 1 && path.starts_with(first) && path[first.size()] == '/';
  if (result.is_inside) result.to_use += first.size() + 1;
  return result;
}

std::string_view path_of(const ProcessSpec& process) {
  std::string_view path = default_search_path;
  for (const std::string& variable : process.environment)
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  return path;
}

bool is_absolute(const std::vector<std::string>& files, std::size_t last) {
  return std::all_of(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                     [](const std::string& file) { return file.starts_with('/'); });
}

void prepare(NewChild& child) {
  const ProcessSpec& process = child.process;
  child.argv = pointers(process.argv);
  child.environment = pointers(process.environment, &child.options.marker);
  child.file_names.clear();
  for (const std::string& file : *child.files) child.file_names.push_back(file.c_str());
  ChildSetup& setup = child.setup;
  setup.argv = child.argv.data();
  setup.environment = child.environment.data();
  setup.folders = child.folders.data();
  setup.folder_count = child.folders.size();
  setup.stdout_file = child_path(process, process.stdout_file);
  setup.stderr_file = child_path(process, process.stderr_file);
  setup.working_folder = child_path(process, process.working_folder);
  setup.files = child.file_names.data();
  setup.file_count = child.file_names.size();
  setup.group = child.options.group;
  setup.memory_tasks = child.options.memory_tasks;
  setup.pids_tasks = child.options.pids_tasks;
  setup.user_pids = child.options.user_pids;
  setup.allows_core = child.options.allows_core;
  setup.tag = child.options.tag;
  setup.has_cores = !child.options.cores.empty();
  CPU_ZERO(&setup.cores);
  for (const int core : child.options.cores) CPU_SET(static_cast<std::size_t>(core), &setup.cores);
  setup.keeper = ::getpid();
  setup.failed = SpawnStep::none;
  setup.executes = false;
}

// ── what went wrong ──

bool is_shortage(int error) {
  return error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE || error == ENOMEM ||
         error == EAGAIN || error == EIO || error == EROFS || error == ESTALE;
}

// Why a program that is there cannot be run for ENOENT: the interpreter it names is missing.
bool is_there(const ProcessSpec& process, const std::string& program) {
  const Fd folder(::open(process.working_folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return ::faccessat(folder.get(), program.c_str(), F_OK, 0) == 0;
}

std::string describe_execute(const NewChild& child) {
  const ProcessSpec& process = child.process;
  std::string what = fmt::format("cannot start {}: {} (in folder {})", process.argv[0],
                                 std::strerror(child.setup.error), process.working_folder);
  const bool searched = process.argv[0].find('/') == std::string::npos;
  if (child.setup.error == ENOENT && searched) what += "; it is in no folder of PATH";
  if (child.setup.error == ENOENT && !searched && is_there(process, process.argv[0]))
    what += "; the file is there, but the interpreter its first line or its ELF header names is not";
  if (child.setup.error == ENOEXEC) what += "; a script needs a first line such as #!/bin/sh";
  if (child.setup.error == EACCES) what += "; try: chmod +x";
  return what;
}

// Of one that has ended and was not reaped. Where that is not known, it counts as having done so.
bool has_executed(pid_t pid) {
  constexpr unsigned long forked_only = 0x40;  // PF_FORKNOEXEC, of the kernel's task flags
  const Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  unsigned long flags = 0;
  if (name_end == std::string::npos ||
      std::sscanf(stat->c_str() + name_end + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) != 1)
    return true;
  return (flags & forked_only) == 0;
}

SpawnFailure describe(const NewChild& child) {
  const char* why = std::strerror(child.setup.error);
  switch (child.setup.failed) {
    case SpawnStep::execute: return {describe_execute(child), !is_shortage(child.setup.error)};
    case SpawnStep::working_folder:
      return {fmt::format("cannot enter folder {}: {}", child.setup.failed_path, why),
              !child.process.own_working_folder && !is_shortage(child.setup.error)};
    case SpawnStep::folder: return {fmt::format("cannot make folder {}: {}", child.setup.failed_path, why)};
    case SpawnStep::file: return {fmt::format("cannot create {}: {}", child.setup.failed_path, why)};
    case SpawnStep::memory_group: return {fmt::format("cannot set the memory limit: {}", why)};
    case SpawnStep::pids_group: return {fmt::format("cannot limit its processes: {}", why)};
    case SpawnStep::session:
    case SpawnStep::none: break;
  }
  return {fmt::format("cannot set up a new process: {}", why)};
}

}  // namespace

Spawner::Spawner() = default;
Spawner::~Spawner() {
  for (auto& [pid, child] : in_progress_)
    while (child->setup.shares_memory != 0) wait_until_executed(child->setup);
}

// One that hangs (a mount that does not answer) holds up the others for a moment only.
void Spawner::wait_for_others() {
  constexpr timespec moment{0, 1'000'000};
  for (int looks = 0; looks < looks_max && in_progress_.size() >= in_progress_max; ++looks) {
    std::vector<pid_t> executed;
    for (const auto& [pid, child] : in_progress_)
      if (child->setup.shares_memory == 0) executed.push_back(pid);
    for (const pid_t pid : executed) settle(pid);
    if (executed.empty()) wait_until_executed(in_progress_.rbegin()->second->setup, &moment);
  }
}

// Where it was found a moment ago is tried first; the rest of PATH is known then, too.
void Spawner::look_for(NewChild& child) {
  const std::string& command = child.process.argv[0];
  const std::string_view path = path_of(child.process);
  const bool is_known = command == found_.command && path == found_.path;
  if (!is_known)
    found_ = {command,
              std::string(path),
              std::make_shared<const std::vector<std::string>>(files_to_try(command, path)),
              0,
              {}};
  child.files = found_.files;
  child.setup.file_first = clock_.now() < found_.until ? found_.first : child.files->size();
}

tl::expected<pid_t, SpawnFailure> Spawner::spawn(ProcessSpec process, const SpawnOptions& options) {
  if (process.argv.empty()) return tl::unexpected(SpawnFailure{"cannot start an empty command", true});
  wait_for_others();
  if (free_.empty()) free_.push_back(std::make_unique<NewChild>());
  std::unique_ptr<NewChild> child = std::move(free_.back());
  free_.pop_back();
  child->process = std::move(process);
  child->options = options;
  child->folders.clear();
  for (const std::string& folder : child->process.folders) {
    const bool is_first = child->folders.empty();
    ChildPath& path = child->folders.emplace_back(child_path(child->process, folder));
    path.is_made = (options.has_folder && (is_first || path.is_inside)) ||
                   (options.has_working_folder && folder == child->process.working_folder) ||
                   std::find(made_.begin(), made_.end(), folder) != made_.end();
  }
  look_for(*child);
  prepare(*child);
  const pid_t pid = clone_child(child->setup);
  if (pid < 0)
    return tl::unexpected(SpawnFailure{fmt::format("cannot create a process: {}", std::strerror(errno))});
  in_progress_.emplace(pid, std::move(child));
  return pid;
}

void Spawner::settle(pid_t pid) {
  std::unique_ptr<NewChild> child = std::move(in_progress_.extract(pid).mapped());
  std::optional<SpawnFailure>& failure = settled_[pid];
  if (child->setup.failed != SpawnStep::none)
    failure = describe(*child);
  else if (!child->setup.executes)
    failure = SpawnFailure{std::string(killed_too_early)};
  else
    remember(*child);
  free_.push_back(std::move(child));
}

void Spawner::remember(NewChild& child) {
  // What nobody else uses may be handed on to another attempt, checkpoints of this one's task included.
  const bool may_be_handed_on = own_folder(child.process).has_value();
  for (std::size_t i = 0; i < child.process.folders.size(); ++i) {
    std::string& folder = child.process.folders[i];
    if (folder == child.process.working_folder) continue;
    if (may_be_handed_on && (i == 0 || child.folders[i].is_inside)) continue;
    std::erase(made_, folder);
    made_.push_back(std::move(folder));
  }
  if (made_.size() > made_max)
    made_.erase(made_.begin(), made_.end() - static_cast<std::ptrdiff_t>(made_max));
  if (child.files == found_.files && is_absolute(*found_.files, child.setup.file_tried)) {
    found_.first = child.setup.file_tried;
    found_.until = clock_.now() + found_for;
  }
}

Spawner::State Spawner::state(pid_t pid) {
  if (const auto child = in_progress_.find(pid); child != in_progress_.end()) {
    if (child->second->setup.shares_memory != 0) return State::in_progress;
    settle(pid);
  }
  const auto settled = settled_.find(pid);
  SLIPWAY_CHECK(settled != settled_.end());
  if (settled->second) return State::failed;
  settled_.erase(settled);
  return State::executed;
}

void Spawner::look_before_reaping(pid_t pid) {
  const auto child = in_progress_.find(pid);
  if (child == in_progress_.end() || has_executed(pid)) return;
  child->second->setup.executes = false;
}

SpawnFailure Spawner::take_failure(pid_t pid) { return std::move(*settled_.extract(pid).mapped()); }

Result<void> try_group(int group) {
  ChildSetup child;
  child.group = group;
  child.only_exits = true;
  const pid_t pid = clone_child(child);
  if (pid < 0) return fail(system_error("no process can be started in a cgroup", errno));
  while (child.shares_memory != 0) wait_until_executed(child);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0)
    return fail(ErrorCode::unavailable, "the kernel kills what is started in a cgroup from outside it");
  return {};
}

}  // namespace slipway::keeper
