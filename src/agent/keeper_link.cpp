#include "agent/keeper_link.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/subprocess.h"
#include "keeper/socket.h"

namespace slipway::agent {
namespace {

constexpr Duration wait_first = 50ms;
constexpr Duration wait_longest = 2s;
constexpr std::size_t read_size = 64 << 10;
constexpr Duration list_wait_max = 5s;  // ends of trees that a former keeper left may have to be waited for

}  // namespace

KeeperLink::KeeperLink(net::Loop& loop, Options options, Callbacks callbacks)
    : loop_(loop), options_(std::move(options)), callbacks_(std::move(callbacks)) {}

void KeeperLink::open() {
  Result<Fd> socket = keeper::connect_keeper(options_.folder);
  if (socket) return use(std::move(*socket));
  start_keeper();
}

void KeeperLink::start_keeper() {
  if (keeper_ != 0) ::waitpid(keeper_, nullptr, WNOHANG);  // the one before it, if it was ours
  keeper_ = 0;
  std::vector<std::string> argv = options_.command;
  argv[0] = "slipway";  // in lists of processes, instead of /proc/self/exe
  auto started = Subprocess::start({.argv = std::move(argv),
                                    .program = options_.command[0],
                                    .output = Stdio::pipe,
                                    .group = ProcessGroup::session});
  if (!started) return retry("cannot start the keeper: " + started.error().what);
  starting_ = std::move(started->output);
  keeper_ = started->release();
  startup_output_.clear();
  starting_watch_ = loop_.watch(starting_.get(), [this] { read_startup(); });
  if (!starting_watch_) retry("the keeper's output cannot be watched");
}

// "ready", or the end of its output when it could not.
void KeeperLink::read_startup() {
  char buffer[256];
  const ssize_t got = ::read(starting_.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0) startup_output_.append(buffer, static_cast<std::size_t>(got));
  if (got > 0 && startup_output_.find('\n') == std::string::npos) return;
  starting_watch_.reset();
  starting_.reset();
  Result<Fd> socket = keeper::connect_keeper(options_.folder);
  if (socket) return use(std::move(*socket));
  retry(startup_output_.starts_with("ready") ? socket.error().what : "the keeper could not start");
}

void KeeperLink::retry(const std::string& why) {
  wait_ = std::clamp(wait_ * 2, wait_first, wait_longest);
  log::warning("keeper.unavailable", {{"why", why}, {"retry_s", seconds(wait_)}});
  retry_timer_ = loop_.after(wait_, [this] { open(); });
}

void KeeperLink::use(Fd socket) {
  socket_ = std::move(socket);
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (!epoll_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket_.get(), &event) != 0 ||
      !(watch_ = loop_.watch(epoll_.get(), [this] { on_ready(); }))) {
    socket_.reset();
    return retry("the keeper's socket cannot be watched");
  }
  wait_ = Duration(0);
  in_.clear();
  out_.clear();
  is_writing_ = false;
  send(keeper::ListRequest{});
  flush();
  list_timer_ = loop_.after(list_wait_max, [this] { kill_stuck(); });
}

// It took the connection, or the kernel did, but does not answer: it was stopped, and what it runs cannot be
// known. Another one ends its processes and says so.
void KeeperLink::kill_stuck() {
  const int pid = FileLock::holder(options_.folder + "/keeper.lock");
  log::warning("keeper.stuck", {{"pid", pid}, {"then", "it is killed; what it ran is lost"}});
  if (pid > 0) ::kill(pid, SIGKILL);
}

void KeeperLink::send(const keeper::ToKeeper& message) {
  if (socket_) keeper::append_frame(out_, message);
}

void KeeperLink::flush() {
  while (socket_ && !out_.empty()) {
    const ssize_t put = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) break;  // full; or broken, which the next read reports
    out_.erase(0, static_cast<std::size_t>(put));
  }
  if (!socket_ || std::exchange(is_writing_, !out_.empty()) == !out_.empty()) return;
  epoll_event event{.events = out_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT, .data = {}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event);
}

void KeeperLink::on_ready() {
  const bool is_alive = read_all();
  callbacks_.caught_up();
  if (!is_alive) return lose();
  flush();
}

// False when the keeper is gone.
bool KeeperLink::read_all() {
  for (;;) {
    char buffer[read_size];
    const ssize_t got = ::recv(socket_.get(), buffer, read_size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got > 0) in_.append(buffer, static_cast<std::size_t>(got));
    std::string_view rest = in_;
    auto frame = keeper::take_frame(rest);
    for (; frame && *frame; frame = keeper::take_frame(rest)) {
      Result<keeper::FromKeeper> message = keeper::parse_from_keeper(**frame);
      if (!message) frame = fail(message.error());
      if (!frame) break;
      if (std::holds_alternative<keeper::ProcessList>(*message)) list_timer_.reset();
      callbacks_.message(std::move(*message));
    }
    if (!frame) log::error("keeper.broken", {{"why", frame.error().what}});
    in_.erase(0, in_.size() - rest.size());
    if (!frame || got <= 0) return false;
  }
}

void KeeperLink::let_go() {
  letting_go_ = true;
  retry_timer_.reset();
}

void KeeperLink::lose() {
  watch_.reset();
  epoll_.reset();
  socket_.reset();
  list_timer_.reset();
  if (!letting_go_) log::warning("keeper.lost", {});
  callbacks_.lost();
  if (!letting_go_) open();
}

}  // namespace slipway::agent
