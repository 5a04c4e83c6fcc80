#include "keeper/keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/resident.h"
#include "base/result.h"
#include "keeper/agent_restart.h"
#include "keeper/log.h"
#include "keeper/processes.h"
#include "keeper/protocol.h"
#include "keeper/recover.h"
#include "keeper/socket.h"
#include "keeper/spawn_child.h"

namespace slipway::keeper {
namespace {

constexpr off_t log_size_max = 1 << 20;
constexpr std::size_t read_size = 64 << 10;
constexpr Duration start_hold_max = 1ms;
constexpr Duration report_hold_max = 20ms;

enum Token : std::uint64_t { token_listener, token_agent, token_signals };

class KeeperLoop {
 public:
  KeeperLoop(const std::string& folder, Fd epoll, Fd listener, Fd signals, Processes& processes,
             const Clock& clock)
      : epoll_(std::move(epoll)),
        listener_(std::move(listener)),
        signals_(std::move(signals)),
        processes_(processes),
        clock_(clock),
        agent_restart_(folder) {
    agent_restart_.lost(clock.now());  // none is connected yet
  }

  // Until an agent says quit and nothing runs any more.
  Result<void> run() {
    if (!control(EPOLL_CTL_ADD, listener_.get(), EPOLLIN, token_listener) ||
        !control(EPOLL_CTL_ADD, signals_.get(), EPOLLIN, token_signals))
      return fail(system_error("cannot watch descriptors", errno));
    while (!quitting_ || processes_.has_running()) {
      epoll_event events[64];
      const int count = ::epoll_wait(epoll_.get(), events, 64, wait_time());
      if (count < 0 && errno != EINTR) return fail(system_error("cannot wait for events", errno));
      for (int i = 0; i < count; ++i) handle(events[i]);
      processes_.on_deadline();
      if (agent_restart_.due() && *agent_restart_.due() <= clock_.now() && !quitting_)
        if (const pid_t pid = agent_restart_.run(clock_.now()); pid > 0) processes_.ignore_child(pid);
      for (const FromKeeper& event : processes_.take_events())
        if (agent_ && has_list_) report(event);
      if (!write_at_ || wants_to_write_ || *write_at_ <= clock_.now()) write_agent();
    }
    return {};
  }

 private:
  bool control(int operation, int fd, std::uint32_t events, std::uint64_t token) {
    epoll_event event{.events = events, .data = {.u64 = token}};
    return ::epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
  }

  // What a short process did is sent together: its start is held briefly for its end, and both a little
  // longer while at least as many attempts wait here as have ended.
  void report(const FromKeeper& event) {
    append_frame(out_, event);
    Duration hold{0};
    if (std::holds_alternative<ProcessEnded>(event)) ++ends_held_;
    const bool others_wait = processes_.waiting() > 0 && processes_.waiting() >= ends_held_;
    if (others_wait) hold = report_hold_max;
    if (const auto* started = std::get_if<ProcessStarted>(&event))
      hold = std::max(Duration(0), started->time + (others_wait ? hold : start_hold_max) - clock_.now());
    const TimePoint at = clock_.now() + hold;
    write_at_ = std::min(write_at_.value_or(at), at);
  }

  int wait_time() const {  // in milliseconds, rounded up; forever when nothing is due
    std::optional<TimePoint> deadline = processes_.next_deadline();
    if (write_at_) deadline = std::min(deadline.value_or(*write_at_), *write_at_);
    if (const auto due = agent_restart_.due()) deadline = std::min(deadline.value_or(*due), *due);
    if (!deadline) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - clock_.now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
  }

  void handle(const epoll_event& event) {
    switch (event.data.u64) {
      case token_listener: return accept_agent();
      case token_signals: return take_signals();
      case token_agent:
        if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read_agent();
        return;  // writing is tried at the end of every turn
      default: return processes_.look_at_group(static_cast<int>(event.data.u64 - Processes::tree_token));
    }
  }

  void take_signals() {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) > 0)
      processes_.reap();  // several ends may share one signal
  }

  void accept_agent() {
    Fd agent(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!agent) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(agent.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        (peer.uid != ::geteuid() && peer.uid != 0))
      return log_line(fmt::format("refused a connection of user {}", peer.uid));
    if (!control(EPOLL_CTL_ADD, agent.get(), EPOLLIN, token_agent)) return;
    control(EPOLL_CTL_MOD, listener_.get(), 0, token_listener);  // one agent at a time
    agent_ = std::move(agent);
    agent_restart_.connected();
    has_list_ = false;
    wants_to_write_ = false;
  }

  // An agent is dropped only when its last byte was read and done: what a killed one sent last counts.
  void read_agent() {
    bool is_open = true;
    for (bool more = true; more && is_open;) {
      char buffer[read_size];
      const ssize_t got = ::recv(agent_.get(), buffer, read_size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) break;
      if (got > 0) in_.append(buffer, static_cast<std::size_t>(got));
      is_open = got > 0;
      more = got == static_cast<ssize_t>(read_size);  // else there was no more, or epoll reports it again
      if (!apply_frames()) is_open = false;
    }
    if (!is_open) drop_agent();
  }

  bool apply_frames() {
    std::string_view rest = in_;
    for (;;) {
      const auto frame = take_frame(rest);
      Result<ToKeeper> message = ListRequest{};
      if (frame && *frame) message = parse_to_keeper(**frame);
      if (!frame || !message) {
        log_line((frame ? message.error() : frame.error()).what + "; its connection is closed");
        return false;
      }
      if (!*frame) break;
      apply(std::move(*message));
    }
    in_.erase(0, in_.size() - rest.size());
    if (in_.empty() && in_.capacity() > 16 * read_size) in_.shrink_to_fit();
    return true;
  }

  void apply(ToKeeper message) {
    if (auto* start = std::get_if<StartRequest>(&message)) {
      processes_.start(std::move(*start));
    } else if (const auto* stop = std::get_if<StopRequest>(&message)) {
      processes_.stop(*stop);
    } else if (const auto* forget = std::get_if<ForgetRequest>(&message)) {
      processes_.forget(*forget);
    } else if (const auto* renew = std::get_if<RenewRequest>(&message)) {
      processes_.renew(*renew);
    } else if (const auto* record = std::get_if<DutyRecord>(&message)) {
      processes_.note(*record);
    } else if (std::holds_alternative<ListRequest>(message)) {
      append_frame(out_, FromKeeper(processes_.list()));
      write_at_.reset();
      has_list_ = true;
    } else {
      quitting_ = true;
      processes_.stop_everything();
    }
  }

  void write_agent() {
    write_at_.reset();
    ends_held_ = 0;
    while (agent_ && !out_.empty()) {
      const ssize_t put = ::send(agent_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno != EAGAIN) out_.clear();  // it is gone; what it sent before is read all the same
      if (put < 0) break;
      out_.erase(0, static_cast<std::size_t>(put));
    }
    if (!agent_ || std::exchange(wants_to_write_, !out_.empty()) == !out_.empty()) return;
    control(EPOLL_CTL_MOD, agent_.get(), out_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT, token_agent);
  }

  void drop_agent() {
    control(EPOLL_CTL_DEL, agent_.get(), 0, token_agent);
    agent_.reset();
    in_ = {};
    out_ = {};
    control(EPOLL_CTL_MOD, listener_.get(), EPOLLIN, token_listener);
    agent_restart_.lost(clock_.now());
  }

  Fd epoll_;
  Fd listener_;
  Fd signals_;
  Processes& processes_;
  const Clock& clock_;
  AgentRestart agent_restart_;
  Fd agent_;
  bool has_list_ = false;  // only then are changes of it reported
  bool wants_to_write_ = false;
  std::optional<TimePoint> write_at_;  // what is in out_ may wait until then
  std::size_t ends_held_ = 0;
  bool quitting_ = false;
  std::string in_;
  std::string out_;
};

// What a caller ignores (SIGINT in the background of a script) would be ignored by everything we start. The
// kernel is asked directly: the C library hides two signals of its own, which a parent can ignore as well.
void take_default_signals() {
  const KernelAction usual{};
  for (int signal = 1; signal < NSIG; ++signal)
    ::syscall(SYS_rt_sigaction, signal, &usual, nullptr, sizeof usual.mask);
}

// Nothing of the caller's is kept: session, signal dispositions, descriptors, working directory.
Result<void> detach() {
  ::close_range(STDERR_FILENO + 1, ~0u, 0);
  ::setsid();  // fails when the caller has done it for us
  take_default_signals();
  ::signal(SIGPIPE, SIG_IGN);  // write fails instead
  ::signal(SIGXFSZ, SIG_IGN);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null || ::dup2(null.get(), STDIN_FILENO) < 0) return fail(system_error("cannot use /dev/null", errno));
  if (::chdir("/") != 0) return fail(system_error("cannot enter /", errno));
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return fail(system_error("cannot become the parent of orphans", errno));
  ::prctl(PR_SET_NAME, "slipway-keeper");
  return {};
}

Result<Fd> watch_children() {
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  if (::sigprocmask(SIG_SETMASK, &children, nullptr) != 0)
    return fail(system_error("cannot block SIGCHLD", errno));
  Fd signals(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return fail(system_error("cannot receive signals", errno));
  return signals;
}

Result<void> report_ready(const std::string& log_path) {
  const Fd log(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log) return fail(system_error("cannot open " + log_path, errno));
  struct stat status {};
  if (::fstat(log.get(), &status) == 0 && status.st_size > log_size_max && ::ftruncate(log.get(), 0) != 0)
    return fail(system_error("cannot shorten " + log_path, errno));
  if (auto written = write_all(STDOUT_FILENO, "ready\n", "standard output"); !written) return written;
  // Whoever waits for the end of our output must not wait for the end of the keeper.
  if (::dup2(STDIN_FILENO, STDOUT_FILENO) < 0 || ::dup2(log.get(), STDERR_FILENO) < 0)
    return fail(system_error("cannot let go of the terminal", errno));
  return {};
}

// Returns when an agent has sent quit and nothing runs any more.
Result<void> serve(const std::string& folder, Fd epoll, Processes& processes, const Clock& clock) {
  auto signals = watch_children();
  if (!signals) return fail(signals.error());
  auto listener = listen_keeper(folder);
  if (!listener) return fail(listener.error());
  if (auto reported = report_ready(folder + "/keeper.log"); !reported) return reported;
  release_startup_pages();
  KeeperLoop loop(folder, std::move(epoll), std::move(*listener), std::move(*signals), processes, clock);
  return loop.run();
}

// Those the local provisioner chose, as far as they can be used; all, where it chose none.
CoreList cores_of(const std::string& folder) {
  const CoreList usable = usable_cores();
  const Result<std::string> chosen = read_file(folder + "/" + std::string(cores_file));
  if (!chosen) return usable;
  CoreList cores = parse_cores(*chosen);
  std::erase_if(cores,
                [&](int core) { return std::find(usable.begin(), usable.end(), core) == usable.end(); });
  return cores.empty() ? usable : cores;
}

Result<void> keep(const std::string& folder, const std::vector<std::string>& restart_command) {
  auto lock = FileLock::take(folder + "/keeper.lock");
  if (!lock) return fail(lock.error());
  const SystemClock clock;
  auto boot = read_file("/proc/sys/kernel/random/boot_id");
  if (!boot) return fail(boot.error());
  const std::string journal_path = folder + "/keeper.journal";
  const Result<KeeperIdentity> identity = identify(folder);
  if (!identity) return fail(identity.error());
  auto left = recover(journal_path, *identity, *boot, clock.now());
  if (!left) return fail(left.error());
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail(system_error("cannot make an epoll", errno));

  const char* no_cgroup = std::getenv("SLIPWAY_NO_CGROUP");
  const bool forbidden = no_cgroup != nullptr && std::string_view(no_cgroup) == "1";
  CgroupPool cgroups(identity->id, forbidden ? CgroupPool::Mode::forbidden : CgroupPool::Mode::allowed);
  const JournalHeader header{*boot, identity->id, cgroups.folders()};
  auto journal = Journal::create(journal_path, {header, {}, left->ended, left->duties});
  if (!journal) return cgroups.remove().and_then([&]() -> Result<void> { return fail(journal.error()); });
  Processes processes(*identity, std::move(cgroups), std::move(*journal), header, std::move(*left),
                      cores_of(folder), folder + "/empty", epoll.get(), clock, restart_command);
  Result<void> done = serve(folder, std::move(epoll), processes, clock);
  processes.remove_empty_folders();
  if (auto removed = processes.remove_groups(); done) done = removed;
  if (!done) return done;  // the next keeper needs the journal
  ::unlink(journal_path.c_str());
  ::unlink((folder + "/" + keeper_socket_name).c_str());
  return {};
}

}  // namespace

int run_keeper(const KeeperOptions& options) {
  char folder[PATH_MAX];
  if (::realpath(options.folder.c_str(), folder) == nullptr) {
    log_line(system_error("cannot use folder " + options.folder, errno).what);
    return 1;
  }
  Result<void> done = detach();
  if (done) done = keep(folder, options.restart_command);
  if (!done) log_line(done.error().what);
  return done ? 0 : 1;
}

}  // namespace slipway::keeper
