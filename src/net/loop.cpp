#include "net/loop.h"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <utility>

#include "base/log.h"
#include "net/loop_impl.h"

namespace slipway::net {

struct SignalWatch {
  explicit SignalWatch(asio::io_context& io) : set(io.get_executor()) {}

  void wait() {
    set.async_wait([this](const error_code& error, int signal) {
      if (error) return;
      caught(signal);
      wait();
    });
  }

  asio::basic_signal_set<Executor> set;
  std::function<void(int)> caught;
};

Loop::Impl::Impl() = default;
Loop::Impl::~Impl() { closing = true; }

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() { impl_->closing = true; }

void Loop::run() {
  impl_->io.run();
  impl_->io.restart();  // so that a stopped loop can be run again
}

void Loop::stop() { impl_->io.stop(); }

void Loop::post(std::function<void()> work) { impl_->post(std::move(work)); }

class Loop::Timer {
 public:
  Timer(asio::io_context& io, Duration delay, std::function<void()> work)
      : timer(io.get_executor()), work_(std::move(work)) {
    // A far future would overflow the clock's own type.
    timer.expires_after(std::clamp<Duration>(delay, Duration(0), std::chrono::hours(24 * 365 * 10)));
  }
  void fire() { std::exchange(work_, nullptr)(); }

  SteadyTimer timer;

 private:
  std::function<void()> work_;
};

std::shared_ptr<Loop::Timer> Loop::after(Duration delay, std::function<void()> work) {
  auto timer = std::make_shared<Timer>(impl_->io, delay, std::move(work));
  timer->timer.async_wait([weak = std::weak_ptr<Timer>(timer)](const error_code& error) {
    if (error) return;
    if (const auto alive = weak.lock()) alive->fire();
  });
  return timer;
}

// Split from its handle, which may be dropped inside the callback: the descriptor leaves epoll at once, for
// its owner may close it on the next line.
struct DescriptorWatch : std::enable_shared_from_this<DescriptorWatch> {
  DescriptorWatch(asio::io_context& io, std::function<void()> call)
      : descriptor(io.get_executor()), ready(std::move(call)) {}

  void wait() {
    descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                          [self = shared_from_this()](const error_code& error) {
                            if (error || !self->descriptor.is_open()) return self->report(error);
                            self->ready();
                            if (self->descriptor.is_open()) self->wait();
                          });
  }
  void report(const error_code& error) const {
    if (error && error != asio::error::operation_aborted)
      log::error("loop.watch", {{"error", error.message()}});
  }

  asio::posix::basic_stream_descriptor<Executor> descriptor;
  std::function<void()> ready;
};

class Loop::Watch {
 public:
  Watch(std::shared_ptr<DescriptorWatch> watch, int flags_before)
      : watch_(std::move(watch)), was_blocking_(flags_before >= 0 && (flags_before & O_NONBLOCK) == 0) {}
  ~Watch() {
    const int fd = watch_->descriptor.release();
    const int flags = ::fcntl(fd, F_GETFL);
    if (was_blocking_ && flags >= 0) ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);  // Asio set it
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::shared_ptr<DescriptorWatch> watch_;
  bool was_blocking_;
};

std::shared_ptr<Loop::Watch> Loop::watch(int fd, std::function<void()> ready) {
  const int flags = ::fcntl(fd, F_GETFL);
  auto watch = std::make_shared<DescriptorWatch>(impl_->io, std::move(ready));
  error_code error;
  watch->descriptor.assign(fd, error);
  if (error) {
    watch->report(error);
    return nullptr;
  }
  watch->wait();
  return std::make_shared<Watch>(std::move(watch), flags);
}

void Loop::on_signals(std::initializer_list<int> signals, std::function<void(int)> caught) {
  auto& watch = *impl_->signals.emplace_back(std::make_unique<SignalWatch>(impl_->io));
  for (const int signal : signals) {
    error_code error;
    watch.set.add(signal, error);
    if (error) log::error("loop.signal", {{"signal", signal}, {"error", error.message()}});
  }
  watch.caught = std::move(caught);
  watch.wait();
}

}  // namespace slipway::net
