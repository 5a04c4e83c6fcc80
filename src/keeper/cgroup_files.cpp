#include "keeper/cgroup_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "base/file.h"

namespace slipway::keeper {
namespace {

// Calls use(part) for each part of `text` between separators.
template <class Use>
void split(std::string_view text, char separator, const Use& use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> result;
  split(line, ' ', [&](std::string_view word) {
    if (!word.empty()) result.push_back(word);
  });
  return result;
}

bool lists(std::string_view commas, std::string_view wanted) {
  bool found = false;
  split(commas, ',', [&](std::string_view one) { found = found || one == wanted; });
  return found;
}

struct Mount {
  std::string root;  // which part of the hierarchy is seen there
  std::string point;
};

// Line of /proc/self/mountinfo: id parent device root point options … - type source super-options
Result<Mount> find_mount(std::string_view type, std::string_view controller) {
  const Result<std::string> mounts = read_file("/proc/self/mountinfo");
  if (!mounts) return fail(mounts.error());
  Result<Mount> found = fail(ErrorCode::not_found, fmt::format("no {} file system is mounted", type));
  split(*mounts, '\n', [&](std::string_view line) {
    const std::size_t dash = line.find(" - ");
    if (found || dash == std::string_view::npos) return;
    const std::vector<std::string_view> before = words(line.substr(0, dash));
    const std::vector<std::string_view> after = words(line.substr(dash + 3));
    if (before.size() < 5 || after.size() < 3 || after[0] != type) return;
    if (!controller.empty() && !lists(after[2], controller)) return;
    found = Mount{std::string(before[3]), std::string(before[4])};
  });
  return found;
}

// Line of /proc/self/cgroup: number:controllers:path, without controllers for v2.
Result<std::string> own_path(std::string_view controller) {
  const Result<std::string> groups = read_file("/proc/self/cgroup");
  if (!groups) return fail(groups.error());
  Result<std::string> found =
      fail(ErrorCode::not_found, fmt::format("this process is in no group for {}", controller));
  split(*groups, '\n', [&](std::string_view line) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool right = controller.empty() ? controllers.empty() : lists(controllers, controller);
    if (right) found = std::string(line.substr(second + 1));
  });
  return found;
}

Result<std::string> own_group(std::string_view type, std::string_view controller) {
  const Result<Mount> mount = find_mount(type, controller);
  if (!mount) return fail(mount.error());
  Result<std::string> path = own_path(controller);
  if (!path) return path;
  // In a container only a part of the hierarchy may be mounted.
  if (mount->root != "/" && path->starts_with(mount->root)) path->erase(0, mount->root.size());
  return *path == "/" || path->empty() ? mount->point : mount->point + *path;
}

using Deadline = std::chrono::steady_clock::time_point;

int milliseconds_left(Deadline deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(left).count()));
}

// Ends what is in the group itself. New ones may be forked meanwhile, so it looks again until there are none.
Result<void> end_processes(const std::string& folder, Deadline deadline) {
  for (std::vector<pid_t> pids = group_processes(folder); !pids.empty(); pids = group_processes(folder)) {
    std::vector<Fd> handles;
    for (const pid_t pid : pids) {
      handles.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      if (handles.back()) ::syscall(SYS_pidfd_send_signal, handles.back().get(), SIGKILL, nullptr, 0);
    }
    for (const Fd& handle : handles) {
      pollfd ended{handle.get(), POLLIN, 0};
      if (handle && ::poll(&ended, 1, milliseconds_left(deadline)) == 0)
        return fail(ErrorCode::unavailable, "some process in " + folder + " does not end, even when killed");
    }
  }
  return {};
}

Result<void> clear_until(const std::string& folder, Deadline deadline) {
  if (auto ended = end_processes(folder, deadline); !ended) return ended;
  for (const std::string& below : groups_below(folder))
    if (auto cleared = clear_until(below, deadline); !cleared) return cleared;
  // A process that has just ended is counted a moment longer.
  while (::rmdir(folder.c_str()) != 0 && errno != ENOENT) {
    if (errno != EBUSY || milliseconds_left(deadline) == 0)
      return fail(system_error("cannot remove " + folder, errno));
    ::poll(nullptr, 0, 1);
  }
  return {};
}

}  // namespace

Result<std::string> own_cgroup_v2() { return own_group("cgroup2", ""); }
Result<std::string> own_cgroup_v1(std::string_view controller) { return own_group("cgroup", controller); }

Result<void> write_control(const std::string& file, std::string_view value) {
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + file, errno));
  return write_all(fd.get(), value, file);
}

std::vector<pid_t> group_processes(const std::string& folder) {
  std::vector<pid_t> pids;
  const Result<std::string> list = read_file(folder + "/cgroup.procs");
  if (!list) return pids;  // no such group: nothing in it
  split(*list, '\n', [&](std::string_view line) {
    const pid_t pid = std::atoi(std::string(line).c_str());
    if (pid > 0) pids.push_back(pid);  // 0: of a namespace we do not see
  });
  return pids;
}

std::vector<std::string> groups_below(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr)
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.push_back(folder + "/" + entry->d_name);
  return names;
}

std::uint64_t control_number(std::string_view content, std::string_view name) {
  std::uint64_t number = 0;
  split(content, '\n', [&](std::string_view line) {
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ')
      number = std::strtoull(std::string(line.substr(name.size() + 1)).c_str(), nullptr, 10);
  });
  return number;
}

bool has_word(std::string_view content, std::string_view word) {
  if (content.ends_with('\n')) content.remove_suffix(1);
  for (const std::string_view one : words(content))
    if (one == word) return true;
  return false;
}

Result<void> make_group(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return fail(system_error("cannot make the cgroup " + folder, errno));
}

Result<void> clear_cgroup(const std::string& folder) {
  if (::access(folder.c_str(), F_OK) != 0) return {};
  // At one stroke where the kernel can; the walk below then finds nothing, and does it all on v1.
  if (::access((folder + "/cgroup.kill").c_str(), F_OK) == 0)
    if (auto killed = write_control(folder + "/cgroup.kill", "1"); !killed) return killed;
  return clear_until(folder, std::chrono::steady_clock::now() + 10s);
}

}  // namespace slipway::keeper
