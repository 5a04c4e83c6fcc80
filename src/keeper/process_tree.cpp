#include "keeper/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <set>
#include <string_view>

#include "base/file.h"
#include "base/random.h"
#include "base/sha256.h"

namespace slipway::keeper {
namespace {

// 01, then 32 bits of the folder's id, then 30 bits of the serial: below 2^63, where the kernel says
// infinite.
constexpr std::uint64_t tag_mark = 1ull << 62;
constexpr unsigned serial_bits = 30;
constexpr std::uint64_t serial_mask = (1ull << serial_bits) - 1;

std::uint64_t folder_bits(const KeeperIdentity& keeper) {
  return std::strtoull(std::string(keeper.folder_id()).c_str(), nullptr, 16) << serial_bits;
}

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = 0;
  std::uint64_t start_time = 0;
};

std::string proc_path(pid_t pid, const char* name) { return fmt::format("/proc/{}/{}", pid, name); }

std::optional<ProcessInfo> read_info(pid_t pid) {
  const Result<std::string> stat = read_file(proc_path(pid, "stat"));
  if (!stat) return std::nullopt;
  const std::size_t name_end = stat->rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  ProcessInfo info{.pid = pid};
  unsigned long long start_time = 0;
  const int read =
      std::sscanf(stat->c_str() + name_end + 1,
                  " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &info.state, &info.parent, &info.group, &info.session, &start_time);
  if (read != 5) return std::nullopt;
  info.start_time = start_time;
  return info;
}

std::uint64_t read_tag(pid_t pid) {
  const Result<std::string> limits = read_file(proc_path(pid, "limits"));
  if (!limits) return 0;
  constexpr std::string_view line = "Max realtime timeout";
  const std::size_t at = limits->find(line);
  if (at == std::string::npos) return 0;
  return std::strtoull(limits->c_str() + at + line.size(), nullptr, 10);  // 0 for "unlimited"
}

// Whether the environment the process was started with holds `marker`, whole or as the beginning of a value.
bool has_marker(pid_t pid, const std::string& marker, bool whole) {
  const Result<std::string> environment = read_file(proc_path(pid, "environ"));
  if (!environment) return false;
  const std::string_view all = *environment;
  for (std::size_t at = all.find(marker); at != std::string_view::npos; at = all.find(marker, at + 1)) {
    const std::size_t end = at + marker.size();
    if ((at == 0 || all[at - 1] == '\0') && (!whole || end == all.size() || all[end] == '\0')) return true;
  }
  return false;
}

std::vector<ProcessInfo> live_processes() {
  std::vector<ProcessInfo> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const std::optional<ProcessInfo> info = read_info(std::atoi(entry->d_name));
    if (info && info->pid > 1 && info->state != 'Z' && info->state != 'X' && info->pid != ::getpid())
      all.push_back(*info);
  }
  return all;
}

// Those that match, and their descendants.
template <class Matches>
std::vector<FoundProcess> find(const Matches& matches) {
  const std::vector<ProcessInfo> all = live_processes();
  std::set<pid_t> found;
  for (const ProcessInfo& info : all)
    if (matches(info)) found.insert(info.pid);
  for (std::size_t before = 0; before != found.size();) {
    before = found.size();
    for (const ProcessInfo& info : all)
      if (found.contains(info.parent)) found.insert(info.pid);
  }
  std::vector<FoundProcess> result;
  for (const ProcessInfo& info : all)
    if (found.contains(info.pid)) result.push_back({info.pid, info.start_time});
  return result;
}

}  // namespace

std::uint64_t KeeperIdentity::tag(std::uint32_t serial) const {
  return tag_mark | folder_bits(*this) | (serial & serial_mask);
}

bool KeeperIdentity::owns(std::uint64_t tag) const {
  return (tag & ~serial_mask) == (tag_mark | folder_bits(*this));
}

std::string KeeperIdentity::marker(const WorkKey& key, std::uint32_t rank) const {
  return fmt::format("SLIPWAY_KEEPER={}.{}.{}", id, to_string(key), rank);
}

// By device and inode: two nodes may have the same path, each in a file system of its own.
Result<KeeperIdentity> identify(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return fail(system_error("cannot look at " + folder, errno));
  const std::string of_folder = sha256_hex(fmt::format("{}:{}", status.st_dev, status.st_ino)).substr(0, 8);
  return KeeperIdentity{of_folder + random_hex(4)};
}

std::vector<FoundProcess> find_tree(const KeeperIdentity& keeper, const TreeQuery& query) {
  const pid_t self = ::getpid();
  return find([&](const ProcessInfo& info) {
    // No root: it was reaped. 0 must never be compared, it is the session of whatever came from outside.
    if (query.root > 0 && (info.pid == query.root || info.group == query.root || info.session == query.root))
      return true;
    const std::uint64_t tag = read_tag(info.pid);
    if (tag == query.tag) return true;
    if (keeper.owns(tag)) return false;
    if (has_marker(info.pid, query.marker, true)) return true;
    // An orphan of ours without any mark of ours was left by a nested keeper that died: nobody else will end
    // it.
    return info.parent == self && !has_marker(info.pid, "SLIPWAY_KEEPER=" + keeper.id + ".", false);
  });
}

std::vector<FoundProcess> find_all(const KeeperIdentity& keeper) {
  const std::string marker = fmt::format("SLIPWAY_KEEPER={}", keeper.folder_id());
  return find([&](const ProcessInfo& info) {
    return keeper.owns(read_tag(info.pid)) || has_marker(info.pid, marker, false);
  });
}

void send_signal(const FoundProcess& process, int signal) {
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!handle) return;  // gone
  // From here on the handle cannot come to mean another process; before, the pid could.
  const std::optional<ProcessInfo> info = read_info(process.pid);
  if (!info || info->start_time != process.start_time) return;
  ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0);
}

std::optional<std::vector<pid_t>> own_children() {
  const Result<std::string> list = read_file(fmt::format("/proc/self/task/{}/children", ::getpid()));
  if (!list) return std::nullopt;
  std::vector<pid_t> children;
  const char* at = list->c_str();
  for (char* end = nullptr;; at = end) {
    const long pid = std::strtol(at, &end, 10);
    if (end == at) return children;
    children.push_back(static_cast<pid_t>(pid));
  }
}

}  // namespace slipway::keeper
