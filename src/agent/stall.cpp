#include "agent/stall.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/file.h"

namespace slipway::agent {
namespace {

constexpr Duration look_soonest = 50ms;
constexpr Duration look_latest = 5s;

struct Seen {
  std::int64_t parent = 0;
  std::int64_t session = 0;
  Duration cpu{0};  // its own and that of children it has waited for
};

std::map<std::int64_t, Seen> look_at_all() {
  std::map<std::int64_t, Seen> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  const long ticks = std::max(1L, ::sysconf(_SC_CLK_TCK));
  while (const dirent* item = folder ? ::readdir(folder.get()) : nullptr) {
    const std::int64_t pid = std::atoll(item->d_name);
    if (pid <= 0) continue;
    const Result<std::string> text = read_file("/proc/" + std::string(item->d_name) + "/stat");
    if (!text) continue;  // ended meanwhile
    const std::size_t after_name = text->rfind(')');
    Seen seen;
    long long parent = 0, session = 0, times[4] = {};
    if (after_name == std::string::npos ||
        std::sscanf(text->c_str() + after_name + 1,
                    " %*c %lld %*d %lld %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld", &parent, &session,
                    &times[0], &times[1], &times[2], &times[3]) != 6)
      continue;
    seen.parent = parent;
    seen.session = session;
    seen.cpu = Duration((times[0] + times[1] + times[2] + times[3]) * 1'000'000 / ticks);
    all.emplace(pid, seen);
  }
  return all;
}

// Of the process, what descends from it and what is in its session.
Duration cpu_of(const std::map<std::int64_t, Seen>& all, std::int64_t first) {
  Duration sum{0};
  for (const auto& [pid, seen] : all) {
    bool belongs = seen.session == first;
    for (std::int64_t at = pid; !belongs && at > 1;) {
      belongs = at == first;
      const auto found = all.find(at);
      at = found == all.end() ? 0 : found->second.parent;
    }
    if (belongs) sum += seen.cpu;
  }
  return sum;
}

std::uint64_t size_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace

void StallWatch::add(const WorkKey& key, Duration timeout, std::map<std::uint32_t, Process> processes,
                     TimePoint now) {
  Watched& watched = watched_[key];
  watched.timeout = timeout;
  watched.processes = std::move(processes);
  watched.active_at = watched.look_at = now;
}

void StallWatch::started(const WorkKey& key, std::uint32_t rank, std::int64_t pid) {
  if (const auto found = watched_.find(key); found != watched_.end())
    if (const auto process = found->second.processes.find(rank); process != found->second.processes.end())
      process->second.pid = pid;
}

void StallWatch::ended(const WorkKey& key, std::uint32_t rank) {
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  found->second.processes.erase(rank);
  if (found->second.processes.empty()) watched_.erase(found);
}

std::vector<std::pair<WorkKey, bool>> StallWatch::look(TimePoint now) {
  std::vector<std::pair<WorkKey, bool>> changes;
  std::optional<std::map<std::int64_t, Seen>> all;
  for (auto& [key, watched] : watched_) {
    if (watched.look_at > now) continue;
    if (!all) all = look_at_all();
    std::uint64_t bytes = 0;
    Duration cpu{0};
    for (const auto& [rank, process] : watched.processes) {
      for (const std::string& output : process.outputs) bytes += size_of(output);
      if (process.pid > 0) cpu += cpu_of(*all, process.pid);
    }
    // What has ended takes its time with it, so less than before is progress as well.
    const Duration since = now - watched.active_at;
    if (bytes != watched.bytes || cpu < watched.cpu || (cpu - watched.cpu) * 100 > since) {
      watched.bytes = bytes;
      watched.cpu = cpu;
      watched.active_at = now;
    }
    const bool is_stalled = now - watched.active_at >= watched.timeout;
    if (is_stalled != watched.is_stalled) changes.emplace_back(key, is_stalled);
    watched.is_stalled = is_stalled;
    watched.look_at = now + std::clamp(watched.timeout / 4, look_soonest, look_latest);
  }
  return changes;
}

std::optional<TimePoint> StallWatch::next() const {
  std::optional<TimePoint> next;
  for (const auto& [key, watched] : watched_)
    if (!next || watched.look_at < *next) next = watched.look_at;
  return next;
}

}  // namespace slipway::agent
