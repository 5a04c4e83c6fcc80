#include "keeper/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "keeper/log.h"

namespace slipway::keeper {

struct Guard::Shared {
  std::atomic<Duration::rep> deadline{0};  // 0: none
  std::atomic<bool> leaving{false};        // the keeper ends in order
};

Guard::~Guard() {
  if (!shared_) return;
  shared_->leaving = true;
  ::munmap(shared_, sizeof *shared_);
}

void Guard::set_deadline(std::optional<Duration> deadline) {
  if (pid_ == 0) {
    if (!deadline) return;
    start();
    if (pid_ == 0) return;
  }
  const Duration::rep next = deadline ? deadline->count() : 0;
  const Duration::rep before = shared_->deadline.exchange(next);
  // It sleeps until the deadline it knows, and then looks again: only an earlier one must wake it.
  if (next != 0 && (before == 0 || next < before)) ::eventfd_write(wake_.get(), 1);
}

void Guard::start() {
  if (!shared_) {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return log_line(fmt::format("no guard: {}", std::strerror(errno)));
    shared_ = new (memory) Shared;
    wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }
  const Fd keeper(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!keeper || !wake_) return log_line(fmt::format("no guard: {}", std::strerror(errno)));
  pid_ = ::fork();
  if (pid_ == 0) watch(keeper.get());
  if (pid_ < 0) log_line(fmt::format("no guard: {}", std::strerror(errno)));
  pid_ = std::max(pid_, 0);
}

void Guard::watch(int keeper) {
  ::prctl(PR_SET_NAME, "slipway-guard");
  ::setsid();
  // Only what is needed stays open: the keeper's lock and its sockets must go with it.
  int kept[] = {::fcntl(keeper, F_DUPFD_CLOEXEC, 1000), ::fcntl(wake_.get(), F_DUPFD_CLOEXEC, 1001), -1};
  ::close_range(STDERR_FILENO + 1, 999, 0);
  kept[2] = ::fcntl(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), F_DUPFD_CLOEXEC, 1002);
  ::close_range(1003, ~0u, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (;;) {
    const Duration deadline(shared_->deadline.load());
    itimerspec at{};
    at.it_value.tv_sec = deadline.count() / 1'000'000;
    at.it_value.tv_nsec = deadline.count() % 1'000'000 * 1'000;
    ::timerfd_settime(kept[2], TFD_TIMER_ABSTIME, &at, nullptr);
    pollfd watched[] = {{kept[0], POLLIN, 0}, {kept[1], POLLIN, 0}, {kept[2], POLLIN, 0}};
    if (::poll(watched, 3, -1) < 0) continue;
    if (watched[0].revents != 0) break;
    std::uint64_t count = 0;
    if (::read(kept[1], &count, sizeof count) < 0 && errno != EAGAIN) break;
    const Duration::rep due = shared_->deadline.load();
    if (due != 0 && boot_time().count() >= due) {
      log_line("the keeper did not end what it runs when the lease of the node ended: it is killed");
      ::syscall(SYS_pidfd_send_signal, kept[0], SIGKILL, nullptr, 0);
      const pollfd gone{kept[0], POLLIN, 0};
      pollfd wait = gone;
      ::poll(&wait, 1, -1);
      break;
    }
  }
  if (shared_->leaving || restart_.empty()) ::_exit(0);
  log_line("the keeper is gone: another takes its place");
  std::vector<char*> arguments;
  for (std::string& word : restart_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  ::_exit(1);
}

}  // namespace slipway::keeper
