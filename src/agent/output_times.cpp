#include "agent/output_times.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/log.h"

namespace slipway::agent {
namespace {

constexpr Duration look_pause = 5ms;
constexpr std::size_t watched_max = 4096;  // of what a user may have in all, 8192 by some kernels

std::string open_file_of(std::int64_t pid, int fd) {
  std::error_code error;  // the process may have ended
  return std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", pid, fd), error).string();
}

}  // namespace

void OutputTimes::ordered(const keeper::StartRequest& request) {
  if (!attempt_of(request.key)) return;
  for (const keeper::ProcessSpec& spec : request.processes) {
    Process& process = processes_[{request.key, spec.rank}];
    process.files[0] = spec.stdout_file;
    process.files[1] = spec.stderr_file;
  }
}

// Most tasks end in the batch of messages that says they began: only what runs after it is watched.
void OutputTimes::started(const ProcessStarted& started) {
  if (!attempt_of(started.key)) return;
  const auto [found, is_new] = processes_.try_emplace({started.key, started.rank});
  Process& process = found->second;
  if (std::exchange(process.is_started, true)) return;
  if (is_new)
    for (int i = 0; i < 2; ++i) process.files[i] = open_file_of(started.pid, i + 1);
  if (new_.empty()) loop_.post([this] { watch_new(); });
  new_.push_back(found->first);
}

bool OutputTimes::open() {
  if (inotify_) return true;
  inotify_ = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (inotify_) readable_ = loop_.watch(inotify_.get(), [this] { on_events(); });
  if (!readable_) inotify_.reset();
  return readable_ != nullptr;
}

void OutputTimes::watch_new() {
  for (const Name& name : std::exchange(new_, {})) {
    const auto found = processes_.find(name);
    if (found == processes_.end() || watched_.size() >= watched_max || !open()) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      const int watch = ::inotify_add_watch(inotify_.get(), found->second.files[i].c_str(), IN_MODIFY);
      found->second.watches[i] = watch;
      if (watch >= 0) watched_[watch] = {name, i};
      look(found->second, i);
    }
  }
}

void OutputTimes::on_events() {
  std::vector<int> changed;  // in the order of their first changes
  std::set<int> seen;
  alignas(inotify_event) std::array<char, 16384> buffer;
  const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
  for (ssize_t at = 0; at < got;) {
    inotify_event event{};
    std::memcpy(&event, buffer.data() + at, sizeof event);
    at += static_cast<ssize_t>(sizeof event + event.len);
    if (event.mask & IN_MODIFY && seen.insert(event.wd).second) changed.push_back(event.wd);
    if (event.mask & IN_Q_OVERFLOW)  // events were lost: any may have grown
      for (const auto& [watch, stream] : watched_)
        if (seen.insert(watch).second) changed.push_back(watch);
  }
  for (const int watch : changed) {
    const auto found = watched_.find(watch);
    if (found == watched_.end()) continue;
    const auto process = processes_.find(found->second.first);
    if (process == processes_.end()) continue;
    look(process->second, found->second.second);
    save(process->second, false);
  }
  // A process that writes without pause must not keep this loop busy.
  readable_.reset();
  pause_ =
      loop_.after(look_pause, [this] { readable_ = loop_.watch(inotify_.get(), [this] { on_events(); }); });
}

void OutputTimes::look(Process& process, std::size_t stream) {
  struct stat status {};
  if (::stat(process.files[stream].c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size <= process.sizes[stream]) return;
  process.sizes[stream] = size;
  const TimePoint time(
      Duration(std::int64_t{status.st_mtim.tv_sec} * 1'000'000 + status.st_mtim.tv_nsec / 1000));
  process.list.add({time, static_cast<std::uint8_t>(stream + 1), size});
}

void OutputTimes::save(Process& process, bool is_over) {
  if (!process.list.is_needed()) return;
  const std::string lines = process.list.take(is_over);
  if (lines.empty()) return;
  const std::filesystem::path out(process.files[0]);
  const std::string path = (out.parent_path() / output_times_file(out.string())).string();
  const Fd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  if (!file) return;  // the attempt's folder is gone
  if (const auto written = write_all(file.get(), lines, path); !written)
    log::warning("node.output_times_not_written", {{"file", path}, {"why", written.error().what}});
}

void OutputTimes::ended(const WorkKey& key, std::uint32_t rank) {
  const auto found = processes_.find({key, rank});
  if (found == processes_.end()) return;
  Process& process = found->second;
  if (process.watches[0] >= 0 || process.watches[1] >= 0) {
    // Which of the two grew last is in their times.
    struct stat out {
    }, err{};
    const bool err_first = ::stat(process.files[0].c_str(), &out) == 0 &&
                           ::stat(process.files[1].c_str(), &err) == 0 &&
                           std::pair(err.st_mtim.tv_sec, err.st_mtim.tv_nsec) <
                               std::pair(out.st_mtim.tv_sec, out.st_mtim.tv_nsec);
    look(process, err_first ? 1 : 0);
    look(process, err_first ? 0 : 1);
    save(process, true);
    for (const int watch : process.watches) {
      const auto watched = watched_.find(watch);
      if (watch < 0 || watched == watched_.end() || watched->second.first != found->first) continue;
      watched_.erase(watched);
      ::inotify_rm_watch(inotify_.get(), watch);
    }
  }
  processes_.erase(found);
}

}  // namespace slipway::agent
