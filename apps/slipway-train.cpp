// The native trainer. SIGTERM and SIGINT ask it to save and end.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "train/exchange/stop.h"
#include "train/run/commands.h"

extern char** environ;

namespace {

// Takes signals on a thread of its own. A handler will not do: oneDNN's sgemm runs with the stack pointer in
// a buffer of its own on the heap, and a signal that is delivered there writes its frame over whatever lies
// beside it.
class SignalWatch {
 public:
  // Blocks the signals in this thread and all it starts, so it must come before any other thread.
  explicit SignalWatch(slipway::train::Stop& stop) : end_(::eventfd(0, EFD_CLOEXEC)) {
    sigset_t watched;
    ::sigemptyset(&watched);
    ::sigaddset(&watched, SIGTERM);
    ::sigaddset(&watched, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
    signals_ = slipway::Fd(::signalfd(-1, &watched, SFD_CLOEXEC));
    thread_ = std::thread([this, &stop] { watch(stop); });
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch() {
    const std::uint64_t one = 1;
    // An eventfd takes eight bytes whole as long as its counter does not overflow.
    [[maybe_unused]] const ssize_t put = ::write(end_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void watch(slipway::train::Stop& stop) const {
    bool interrupted = false;
    for (;;) {
      pollfd fds[2] = {{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
      if (::poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) return;
      signalfd_siginfo info{};
      if (::read(signals_.get(), &info, sizeof info) != sizeof info) continue;
      if (info.ssi_signo == SIGINT && interrupted) ::_exit(130);  // Ctrl-C a second time ends at once
      interrupted = interrupted || info.ssi_signo == SIGINT;
      stop.request();
    }
  }

  slipway::Fd end_, signals_;
  std::thread thread_;
};

}  // namespace

int main(int count, char** arguments) {
  slipway::train::Stop stop;
  const SignalWatch watch(stop);
  std::signal(SIGPIPE, SIG_IGN);

  slipway::train::Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (const std::size_t equals = text.find('='); equals != std::string::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return slipway::train::run_command(std::vector<std::string>(arguments + 1, arguments + count), environment,
                                     stop, {stdout, stderr});
}
