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

TaskEnvironment::TaskEnvironment(const View& view, const NodePlace& place, bool has_namespaces)
    : view_(view), place_(place), has_namespaces_(has_namespaces), tree_(place.data + "/" + view.tree) {}

std::string mounts_folder(const View& view, const NodePlace& place) {
  std::string name = view.tree;
  std::replace(name.begin(), name.end(), '/', '+');
  return fmt::format("{}/mounts/{}", place.data, name);
}

std::string TaskEnvironment::source_of(const View::Place& place) const {
  if (place.kind == MountKind::scratch) return tree_ + "/" + place.at;
  if (place.kind == MountKind::command) return mounts_folder(view_, place_) + "/" + place.at;
  return place.source.starts_with('/') ? place.source : place_.data + "/" + place.source;
}

std::string TaskEnvironment::real(std::string_view path) const {
  const std::string_view inside = path.substr(std::min(path.size(), view_.root.size() + 1));
  const View::Place* innermost = nullptr;
  for (const View::Place& place : view_.places) {
    const bool holds = inside == place.at || (inside.starts_with(place.at) && inside[place.at.size()] == '/');
    if (holds && (!innermost || place.at.size() > innermost->at.size())) innermost = &place;
  }
  if (!innermost) return inside.empty() ? tree_ : fmt::format("{}/{}", tree_, inside);
  return source_of(*innermost) + std::string(inside.substr(innermost->at.size()));
}

std::string TaskEnvironment::plan() const {
  if (view_.root.empty() || !has_namespaces_) return {};
  container::ViewPlan plan{view_.root, tree_, {}};
  for (const View::Place& place : view_.places)
    if (place.kind != MountKind::scratch)  // that is in the tree
      plan.places.push_back({place.at, source_of(place), place.read_only});
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
  for (const View::Place& place : view_.places)
    if (auto done = lay_out(place); !done) return done;
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

Result<void> TaskEnvironment::lay_out(const View::Place& place) const {
  const std::string at = tree_ + "/" + place.at;
  const std::string source = source_of(place);
  if (place.kind == MountKind::scratch) return make_open_folders(at);
  if (place.kind == MountKind::command) {
    if (auto mounted = run_mount(place, source); !mounted) return mounted;
  } else if (place.kind == MountKind::path && place.read_only) {
    if (!is_folder(source))
      return fail(ErrorCode::not_found, fmt::format("{} is to be mounted and is not a folder here", source));
  } else {
    if (place.kind == MountKind::datastore && !place_.shares_storage && place.url.empty() &&
        !place.source.starts_with('/'))
      return fail(ErrorCode::invalid,
                  fmt::format("{} is a folder of the service, which this node does not see",
                              place.source.substr(place.source.rfind('/') + 1)),
                  "give the datastore a path that all nodes see: slipway datastore create NAME --path DIR");
    if (auto made = make_open_folders(source); !made) return made;
  }
  if (!place.url.empty() && place.pulls)
    if (auto pulled = pull(place); !pulled) return pulled;
  return has_namespaces_ ? make_folders(at) : make_link(source, at);
}

Result<void> TaskEnvironment::run_mount(const View::Place& place, const std::string& at) const {
  if (auto made = make_folders(at); !made) return made;
  if (is_mount_point(at)) return {};  // by an earlier attempt
  const auto ran = run_helper({"/bin/sh", "-c", place.command + " \"$0\"", at}, {}, mount_max);
  if (!ran) return fail(ran.error());
  if (ran->is_success()) return {};
  return fail(ErrorCode::invalid,
              fmt::format("'{} {}' {}: {}", place.command, at, ran->describe(), ran->output));
}

Result<void> TaskEnvironment::pull(const View::Place& place) const {
  const auto ran =
      run_helper({place_.program, "node", "sync-datastore", "pull", "--folder", source_of(place)},
                 {{"SLIPWAY_DATASTORE_URL", place.url},
                  {"SLIPWAY_DATASTORE_KEY", place.key},
                  {"SLIPWAY_DATASTORE_PARENT", std::to_string(::getpid())}},
                 sync_max);
  if (!ran) return fail(ran.error());
  if (ran->is_success()) return {};
  return fail(ErrorCode::unavailable,
              fmt::format("bringing {} {}: {}", place.url, ran->describe(), ran->output));
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
