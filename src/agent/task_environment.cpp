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

#include "base/file.h"
#include "base/log.h"
#include "base/subprocess.h"

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

}  // namespace

TaskEnvironment::TaskEnvironment(const View& view, const NodeContext& context, bool has_namespaces)
    : view_(view),
      context_(context),
      has_namespaces_(has_namespaces),
      tree_(context.data + "/" + view.tree) {}

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

std::string TaskEnvironment::real(std::string_view path) const {
  const std::string_view inside = path.substr(std::min(path.size(), view_.root.size() + 1));
  const View::Mount* innermost = nullptr;
  for (const View::Mount& mount : view_.mounts) {
    const bool holds = inside == mount.at || (inside.starts_with(mount.at) && inside[mount.at.size()] == '/');
    if (holds && (!innermost || mount.at.size() > innermost->at.size())) innermost = &mount;
  }
  if (!innermost) return inside.empty() ? tree_ : fmt::format("{}/{}", tree_, inside);
  return source_of(*innermost) + std::string(inside.substr(innermost->at.size()));
}

std::string TaskEnvironment::plan() const {
  if (view_.root.empty() || !has_namespaces_) return {};
  container::ViewPlan plan{view_.root, tree_, {}};
  for (const View::Mount& mount : view_.mounts)
    if (mount.kind != MountKind::scratch)  // that is in the tree
      plan.mounts.push_back({mount.at, source_of(mount), mount.read_only});
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

std::string TaskEnvironment::journal() const {
  return view_.journal.empty() ? std::string() : real(view_.logs) + "/" + view_.journal;
}

Result<void> TaskEnvironment::lay_out() const {
  if (view_.root.empty()) return {};
  if (auto made = make_open_folders(tree_); !made) return made;
  for (const View::Mount& mount : view_.mounts)
    if (auto done = lay_out(mount); !done) return done;
  for (const std::string& folder : view_.folders)
    if (auto made = make_open_folders(real(folder)); !made) return made;
  for (const auto& [path, text] : view_.texts) {
    const std::string file = real(path);
    if (auto made = make_open_folders(file.substr(0, file.rfind('/'))); !made) return made;
    if (auto written = write_file(file, translate(text)); !written) return written;
  }
  if (!view_.logs.empty()) return make_open_folders(real(view_.logs));
  return {};
}

Result<void> TaskEnvironment::lay_out(const View::Mount& mount) const {
  const std::string at = tree_ + "/" + mount.at;
  const std::string source = source_of(mount);
  if (mount.kind == MountKind::scratch) return make_open_folders(at);
  if (mount.kind == MountKind::command) {
    if (auto mounted = run_mount(mount, source); !mounted) return mounted;
  } else if (mount.kind == MountKind::path && mount.read_only) {
    if (!is_folder(source))
      return fail(ErrorCode::not_found, fmt::format("{} is to be mounted and is not a folder here", source));
  } else {
    if (mount.kind == MountKind::datastore && !context_.shares_storage && mount.url.empty() &&
        !mount.source.starts_with('/'))
      return fail(ErrorCode::invalid,
                  fmt::format("{} is a folder of the service, which this node does not see",
                              mount.source.substr(mount.source.rfind('/') + 1)),
                  "give the datastore a path that all nodes see: slipway datastore create NAME --path DIR");
    if (auto made = make_open_folders(source); !made) return made;
  }
  if (!mount.url.empty() && mount.pulls)
    if (auto pulled = pull(mount); !pulled) return pulled;
  return has_namespaces_ ? make_folders(at) : make_link(source, at);
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
  const std::string folder = real(view_.logs);
  const auto link_one = [&](const std::string& log, const std::string& stream) -> Result<void> {
    if (log.empty()) return {};
    const std::string kept = folder + "/" + log, own = attempt + "/" + stream;
    const Fd file(::open(kept.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!file) return fail(system_error("cannot make " + kept, errno));
    if (::link(kept.c_str(), own.c_str()) == 0 || errno == EEXIST) return {};
    // On another file system it lies there alone, and is written through a link.
    if (::symlink(kept.c_str(), own.c_str()) == 0 || errno == EEXIST) return {};
    return fail(system_error("cannot make " + own, errno));
  };
  for (const ProcessStart& process : processes) {
    if (auto linked = link_one(process.log_out, process.stdout_name); !linked) return linked;
    if (auto linked = link_one(process.log_err, process.stderr_name); !linked) return linked;
  }
  return {};
}

void note(const std::string& journal, TimePoint now, std::string_view text) {
  if (journal.empty()) return;
  const Fd file(::open(journal.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file) (void)write_all(file.get(), fmt::format("{} {}\n", format_time(now), text), journal);
}

void unmount_under(const std::string& folder) {
  const std::vector<std::string> points = mount_points();
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    if (point->starts_with(folder + "/") && ::umount2(point->c_str(), MNT_DETACH) != 0)
      log::warning("node.not_unmounted", {{"place", *point}, {"why", system_error("umount", errno).what}});
  // Only what is empty: whatever is mounted there still must not be touched.
  std::vector<std::filesystem::path> folders{folder};
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error))
    folders.push_back(entry.path());
  for (auto one = folders.rbegin(); one != folders.rend(); ++one) ::rmdir(one->c_str());
}

}  // namespace slipway::agent
