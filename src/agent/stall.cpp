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
  bool is_zombie = false;
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
    char state = 0;
    long long parent = 0, session = 0, times[4] = {};
    if (after_name == std::string::npos ||
        std::sscanf(text->c_str() + after_name + 1,
                    " %c %lld %*d %lld %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld", &state, &parent,
                    &session, &times[0], &times[1], &times[2], &times[3]) != 7)
      continue;
    seen.parent = parent;
    seen.session = session;
    seen.is_zombie = state == 'Z';
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

std::vector<StallWatch::Progress> observe_machine(const std::vector<const StallWatch::Processes*>& works) {
  const std::map<std::int64_t, Seen> all = look_at_all();
  std::vector<StallWatch::Progress> progress;
  for (const StallWatch::Processes* processes : works) {
    StallWatch::Progress& sum = progress.emplace_back();
    for (const auto& [rank, process] : *processes) {
      for (const std::string& output : process.outputs) sum.bytes += size_of(output);
      if (process.pid <= 0) continue;
      sum.cpu += cpu_of(all, process.pid);
      const auto first = all.find(process.pid);
      sum.has_ended = sum.has_ended || first == all.end() || first->second.is_zombie;
    }
  }
  return progress;
}

void StallWatch::add(const WorkKey& key, Duration timeout, Processes processes, TimePoint now) {
  Watched& watched = watched_[key];
  watched.timeout = timeout;
  watched.processes = std::move(processes);
  watched.active_at = watched.look_at = now;
}

void StallWatch::started(const WorkKey& key, std::uint32_t rank, std::int64_t pid, TimePoint now) {
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  Watched& watched = found->second;
  const auto process = watched.processes.find(rank);
  if (process == watched.processes.end()) return;
  if (process->second.pid == 0) watched.active_at = now;
  process->second.pid = pid;
}

void StallWatch::ended(const WorkKey& key, std::uint32_t rank) {
  const auto found = watched_.find(key);
  if (found == watched_.end()) return;
  found->second.processes.erase(rank);
  if (found->second.processes.empty()) watched_.erase(found);
}

std::vector<std::pair<WorkKey, bool>> StallWatch::look(TimePoint now) {
  std::vector<std::pair<const WorkKey*, Watched*>> due;
  std::vector<const Processes*> works;
  for (auto& [key, watched] : watched_) {
    if (watched.look_at > now) continue;
    watched.look_at = now + std::clamp(watched.timeout / 4, look_soonest, look_latest);
    const auto& processes = watched.processes;
    if (std::none_of(processes.begin(), processes.end(), [](const auto& one) { return one.second.pid > 0; }))
      continue;
    due.emplace_back(&key, &watched);
    works.push_back(&processes);
  }
  if (due.empty()) return {};
  std::vector<std::pair<WorkKey, bool>> changes;
  const std::vector<Progress> progress = observe_(works);
  for (std::size_t i = 0; i < due.size(); ++i) {
    const auto& [key, watched] = due[i];
    const auto& [bytes, cpu, has_ended] = progress[i];
    // What has ended takes its time with it, so less than before is progress as well.
    const Duration since = now - watched->active_at;
    if (has_ended || bytes != watched->seen.bytes || cpu < watched->seen.cpu ||
        (cpu - watched->seen.cpu) * 100 > since) {
      watched->seen = progress[i];
      watched->active_at = now;
    }
    const bool is_stalled = now - watched->active_at >= watched->timeout;
    if (is_stalled != watched->is_stalled) changes.emplace_back(*key, is_stalled);
    watched->is_stalled = is_stalled;
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
