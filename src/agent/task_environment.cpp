#include "agent/task_environment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/beneath.h"
#include "base/file.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "container/give_folder.h"
#include "domain/layout.h"

namespace slipway::agent {
namespace {

constexpr Duration mount_max = 2min;
constexpr Duration sync_max = 24h;
constexpr std::size_t helper_output_max = 2'000;

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Outer ones first.
std::vector<std::string> mount_points() {
  std::ifstream table("/proc/self/mountinfo");
  std::vector<std::string> points;
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string skipped, point;
    fields >> skipped >> skipped >> skipped >> skipped >> point;
    points.push_back(std::move(point));
  }
  return points;
}

bool is_mount_point(const std::string& path) {
  const std::vector<std::string> points = mount_points();
  return std::find(points.begin(), points.end(), path) != points.end();
}

// For everybody who may come here: the job's own user, and who looks at it later.
Result<void> make_open_folders(const std::string& path) {
  if (is_folder(path)) return {};
  if (auto made = make_folders(path); !made) return made;
  if (::chmod(path.c_str(), 0777) == 0) return {};
  return fail(system_error("cannot open " + path + " to everybody", errno));
}

Result<void> make_link(const std::string& to, const std::string& at) {
  if (auto made = make_folders(at.substr(0, at.rfind('/'))); !made) return made;
  struct stat status {};
  if (::lstat(at.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) ::unlink(at.c_str());
  if (::lstat(at.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) ::rmdir(at.c_str());  // if it is empty
  if (::symlink(to.c_str(), at.c_str()) == 0) return {};
  return fail(system_error(fmt::format("cannot make the link {}", at), errno));
}

// With the environment of the agent and `variables`; the output is the end of both streams.
Result<RunResult> run_helper(std::vector<std::string> argv, const Environment& variables, Duration timeout) {
  Environment environment = read_environment();
  for (const auto& [name, value] : variables) environment[name] = value;
  auto ran = run_to_exit({.argv = std::move(argv),
                          .environment = std::move(environment),
                          .output = Stdio::pipe,
                          .error_output = Stdio::output},
                         {.timeout = timeout, .output_max = helper_output_max});
  if (ran) ran->output.erase(ran->output.find_last_not_of("\n ") + 1);
  return ran;
}

bool is_chosen_by_service(const View::Mount& mount) { return !mount.source.starts_with('/'); }

// Of a folder that the service chose, the part that only agents and the service write to: below a datastore
// may be links of users.
std::string own_part(const View::Mount& mount) {
  std::size_t parts = mount.kind == MountKind::shared ? 5 : 4;  // see domain/layout.h
  std::size_t end = 0;
  while (end != mount.source.npos && parts-- > 0) end = mount.source.find('/', end + (end > 0));
  return mount.source.substr(0, end);
}

std::string by_descriptor(const Fd& folder, const std::string& name) {
  return fmt::format("/proc/self/fd/{}/{}", folder.get(), name);
}

// Appended to; never through a link, and not to what would make us wait.
Result<Fd> open_log(const Fd& folder, const std::string& name) {
  Fd file(::openat(folder.get(), name.c_str(),
                   O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return fail(system_error("cannot make " + name, errno));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid, name + " is not a plain file");
  return file;
}

}  // namespace

TaskEnvironment::TaskEnvironment(const View& view, const NodeContext& context, bool has_namespaces,
                                 const std::optional<RunAs>& user)
    : view_(view), context_(context), has_namespaces_(has_namespaces), tree_(context.data + "/" + view.tree) {
  if (user) user_ = {user->uid, user->gid, context.data};
}

std::optional<container::UserAccess> TaskEnvironment::as_user() const {
  std::optional<container::UserAccess> access;
  if (user_) access.emplace(user_->uid, user_->gid);
  return access;
}

std::string mounts_folder(const View& view, const NodeContext& context) {
  std::string name = view.tree;
  std::replace(name.begin(), name.end(), '/', '+');
  return fmt::format("{}/mounts/{}", context.data, name);
}

std::string TaskEnvironment::source_of(const View::Mount& mount) const {
  if (mount.kind == MountKind::scratch) return tree_ + "/" + mount.at;
  if (mount.kind == MountKind::command) return mounts_folder(view_, context_) + "/" + mount.at;
  return mount.source.starts_with('/') ? mount.source : context_.data + "/" + mount.source;
}

const View::Mount* TaskEnvironment::innermost(std::string_view inside) const {
  const View::Mount* found = nullptr;
  for (const View::Mount& mount : view_.mounts) {
    const bool holds = inside == mount.at || (inside.starts_with(mount.at) && inside[mount.at.size()] == '/');
    if (holds && (!found || mount.at.size() > found->at.size())) found = &mount;
  }
  return found;
}

std::string TaskEnvironment::real(std::string_view path) const {
  const std::string_view inside = path.substr(std::min(path.size(), view_.root.size() + 1));
  const View::Mount* mount = innermost(inside);
  if (!mount) return inside.empty() ? tree_ : fmt::format("{}/{}", tree_, inside);
  return source_of(*mount) + std::string(inside.substr(mount->at.size()));
}

std::string TaskEnvironment::source_for_user(const View::Mount& mount) const {
  const std::string source = source_of(mount);
  return is_chosen_by_service(mount) ? source.substr(context_.data.size() + 1) : source;
}

std::string TaskEnvironment::plan() const {
  if (view_.root.empty() || !has_namespaces_) return {};
  container::ViewPlan plan{view_.root, tree_, {}};
  for (const View::Mount& mount : view_.mounts) {
    if (mount.kind == MountKind::scratch) continue;  // that is in the tree
    plan.mounts.push_back({mount.at, user_ ? source_for_user(mount) : source_of(mount), mount.read_only});
  }
  return format(plan);
}

std::string TaskEnvironment::translate(std::string text) const {
  if (view_.root.empty() || has_namespaces_) return text;
  for (std::size_t at = text.find(view_.root); at != std::string::npos; at = text.find(view_.root, at)) {
    text.replace(at, view_.root.size(), tree_);
    at += tree_.size();
  }
  return text;
}

Result<void> TaskEnvironment::lay_out() const {
  if (view_.root.empty()) return {};
  if (auto made = make_own_folders(); !made) return made;
  for (const View::Mount& mount : view_.mounts) {
    if (mount.kind == MountKind::command)
      if (auto mounted = run_mount(mount, source_of(mount)); !mounted) return mounted;
    if (auto made = make(mount); !made) return made;
    if (!mount.url.empty() && mount.pulls)
      if (auto pulled = pull(mount); !pulled) return pulled;
  }
  return make_folders_and_files();
}

// With the rights of the agent: what lies in folders of its own.
Result<void> TaskEnvironment::make_own_folders() const {
  if (!user_) return make_open_folders(tree_);
  if (const std::string_view workspace = workspace_of(view_.tree); !workspace.empty() && ::geteuid() == 0) {
    const std::string folder = fmt::format("{}/{}", context_.data, workspace);
    const auto closed =
        make_folders(folder).and_then([&] { return container::let_through(folder, user_->uid); });
    if (!closed) return closed;
  }
  const auto give = [this](const std::string& folder) {
    return make_folders(folder).and_then([&]() -> Result<void> {
      if (::geteuid() != 0) return {};
      return container::give_folder(folder, user_->uid, user_->gid, {});
    });
  };
  if (auto given = give(tree_); !given) return given;
  for (const View::Mount& mount : view_.mounts) {
    if (mount.source.empty() || !is_chosen_by_service(mount)) continue;
    const std::string own = own_part(mount);
    if (!mount.url.empty() && own != mount.source)
      return fail(ErrorCode::invalid,
                  fmt::format("the mount at {} names a folder of a datastore that is copied", mount.at),
                  "a job that runs as a user mounts the whole of it");
    const std::string folder = context_.data + "/" + own;
    // A datastore is for everybody who is let into the workspace's folder.
    auto made = mount.kind == MountKind::shared ? give(folder) : make_folders(folder);
    if (made && mount.kind == MountKind::datastore && ::chmod(folder.c_str(), 0777) != 0)
      made = fail(system_error("cannot open " + folder + " to its users", errno));
    if (!made) return made;
  }
  return {};
}

Result<void> TaskEnvironment::make(const View::Mount& mount) const {
  const std::string at = tree_ + "/" + mount.at;
  const std::string source = source_of(mount);
  const auto access = as_user();
  if (mount.kind == MountKind::scratch && !user_) return make_open_folders(at);
  if (mount.kind == MountKind::path && (mount.read_only || user_)) {
    const auto opened = user_ ? container::open_source(source, *user_) : Result<Fd>();
    if (!opened) return fail(opened.error());
    if (!is_folder(source))
      return fail(ErrorCode::not_found, fmt::format("{} is to be mounted and is not a folder here", source));
  } else if (mount.kind != MountKind::command && mount.kind != MountKind::scratch) {
    if (mount.kind == MountKind::datastore && !context_.shares_storage && mount.url.empty() &&
        is_chosen_by_service(mount))
      return fail(ErrorCode::invalid,
                  fmt::format("{} is a folder of the service, which this node does not see",
                              mount.source.substr(mount.source.rfind('/') + 1)),
                  "give the datastore a path that all nodes see: slipway datastore create NAME --path DIR");
    if (!user_) {
      if (auto made = make_open_folders(source); !made) return made;
    } else if (is_chosen_by_service(mount)) {
      const std::string own = own_part(mount);
      const auto root = container::open_source(own, *user_);
      if (!root) return fail(root.error());
      const std::string inside = mount.source.substr(own.size());
      if (auto made = make_folder_beneath(root->get(), inside); !made) return fail(made.error());
    } else if (auto made = make_folders(source); !made) {
      return made;
    }
  }
  if (!has_namespaces_ && mount.kind != MountKind::scratch) return make_link(source, at);
  if (!user_) return make_folders(at);
  const auto made =
      open_tree().and_then([&](const Fd& tree) { return make_folder_beneath(tree.get(), mount.at); });
  if (!made) return fail(made.error());
  return {};
}

Result<Fd> TaskEnvironment::open_tree() const {
  Fd fd(::open(tree_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + tree_, errno));
  return fd;
}

Result<Fd> TaskEnvironment::open_folder(const std::string& path) const {
  if (user_) {
    const std::string_view inside =
        std::string_view(path).substr(std::min(path.size(), view_.root.size() + 1));
    const View::Mount* mount = innermost(inside);
    const bool is_in_tree = !mount || mount->kind == MountKind::scratch;
    Result<Fd> root = is_in_tree ? open_tree() : container::open_source(source_for_user(*mount), *user_);
    if (!root) return root;
    return make_folder_beneath(root->get(), std::string(inside.substr(is_in_tree ? 0 : mount->at.size())));
  }
  const std::string folder = real(path);
  if (auto made = make_open_folders(folder); !made) return fail(made.error());
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + folder, errno));
  return fd;
}

Result<void> TaskEnvironment::make_folders_and_files() const {
  const auto access = as_user();
  for (const std::string& folder : view_.folders)
    if (auto made = open_folder(folder); !made) return fail(made.error());
  for (const auto& [path, text] : view_.files) {
    const std::size_t slash = path.rfind('/');
    const Result<Fd> folder = open_folder(path.substr(0, slash));
    if (!folder) return fail(folder.error());
    if (auto written = write_file(by_descriptor(*folder, path.substr(slash + 1)), translate(text)); !written)
      return written;
  }
  if (view_.logs.empty()) return {};
  if (auto made = open_folder(view_.logs); !made) return fail(made.error());
  return {};
}

Result<void> TaskEnvironment::run_mount(const View::Mount& mount, const std::string& at) const {
  if (auto made = make_folders(at); !made) return made;
  if (is_mount_point(at)) return {};  // by an earlier attempt
  const auto ran = run_helper({"/bin/sh", "-c", mount.command + " \"$0\"", at}, {}, mount_max);
  if (!ran) return fail(ran.error());
  if (ran->is_success()) return {};
  return fail(ErrorCode::invalid,
              fmt::format("'{} {}' {}: {}", mount.command, at, ran->describe(), ran->output));
}

Result<void> TaskEnvironment::pull(const View::Mount& mount) const {
  const auto ran =
      run_helper({context_.program, "node", "sync-datastore", "pull", "--folder", source_of(mount)},
                 {{"SLIPWAY_DATASTORE_URL", mount.url},
                  {"SLIPWAY_DATASTORE_KEY", mount.key},
                  {"SLIPWAY_DATASTORE_PARENT", std::to_string(::getpid())}},
                 sync_max);
  if (!ran) return fail(ran.error());
  if (ran->is_success()) return {};
  return fail(ErrorCode::unavailable,
              fmt::format("bringing {} {}: {}", mount.url, ran->describe(), ran->output));
}

Result<void> TaskEnvironment::link_logs(const std::string& attempt,
                                        const std::vector<ProcessStart>& processes) const {
  if (view_.logs.empty()) return {};
  if (auto made = make_folders(attempt); !made) return made;
  const auto link_one = [&](const std::string& log, const std::string& stream) -> Result<void> {
    if (log.empty()) return {};
    const auto file = [&]() -> Result<Fd> {
      const auto access = as_user();
      const Result<Fd> folder = open_folder(view_.logs);
      if (!folder) return fail(folder.error());
      return open_log(*folder, log);
    }();
    if (!file) return fail(file.error());
    const std::string own = attempt + "/" + stream;
    // The file that was opened, whatever has that name by now.
    if (::linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", file->get()).c_str(), AT_FDCWD, own.c_str(),
                 AT_SYMLINK_FOLLOW) == 0 ||
        errno == EEXIST)
      return {};
    if (user_)  // who could make it lead elsewhere
      return fail(system_error(fmt::format("{} is kept with the task alone", log), errno));
    // On another file system it lies there alone, and is written through a link.
    if (::symlink((real(view_.logs) + "/" + log).c_str(), own.c_str()) == 0 || errno == EEXIST) return {};
    return fail(system_error("cannot make " + own, errno));
  };
  for (const ProcessStart& process : processes) {
    if (auto linked = link_one(process.log_out, process.stdout_name); !linked) return linked;
    if (auto linked = link_one(process.log_err, process.stderr_name); !linked) return linked;
  }
  return {};
}

void TaskEnvironment::note(TimePoint now, std::string_view text) const {
  if (view_.journal.empty()) return;
  const auto access = as_user();
  const Result<Fd> folder = open_folder(view_.logs);
  if (!folder) return;
  if (const Result<Fd> file = open_log(*folder, view_.journal))
    (void)write_all(file->get(), fmt::format("{} {}\n", format_time(now), text), view_.journal);
}

void unmount_under(const std::string& folder) {
  const std::vector<std::string> points = mount_points();
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    if (point->starts_with(folder + "/") && ::umount2(point->c_str(), MNT_DETACH) != 0)
      log::warning("node.not_unmounted", {{"mount", *point}, {"why", system_error("umount", errno).what}});
  // Only what is empty: whatever is mounted there still must not be touched.
  std::vector<std::filesystem::path> folders{folder};
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error))
    folders.push_back(entry.path());
  for (auto one = folders.rbegin(); one != folders.rend(); ++one) ::rmdir(one->c_str());
}

}  // namespace slipway::agent
