#include "train/exchange/acceptor.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"

namespace slipway::train {

void Acceptor::add_to(std::vector<::pollfd>& wanted) const {
  wanted.push_back({listener_, POLLIN, 0});
  for (const Waiting& each : waiting_)
    wanted.push_back({each.peer.front().fd(), each.peer.front().events(), 0});
}

std::list<ServerConnection> Acceptor::step(std::span<const ::pollfd> seen) {
  std::list<ServerConnection> came;
  std::size_t number = 1;
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    ServerConnection& peer = each->peer.front();
    const bool is_ready = seen[number++].revents != 0;
    const Result<bool> hello = is_ready ? has_said_hello(peer) : Result<bool>(false);
    const bool is_late = hello && !*hello && Steady::now() >= each->until;
    if (hello && *hello) {
      came.splice(came.end(), each->peer);
    } else if (!hello && hello.error().code != ErrorCode::unavailable) {
      log::warning("exchange.peer_refused", {{"peer", peer.name()}, {"why", hello.error().what}});
      peer.refuse(hello.error());
    } else if (!hello || is_late) {
      const std::string why = is_late ? "it did not say who it is in time" : hello.error().what;
      log::info("exchange.peer_gone", {{"peer", peer.name()}, {"why", why}});
      peer.close();
    }
    each = each->peer.empty() || peer.closed() ? waiting_.erase(each) : std::next(each);
  }
  if (seen.front().revents != 0) accept();
  return came;
}

Result<bool> Acceptor::has_said_hello(ServerConnection& peer) {
  if (!peer.flush()) return fail(lost(peer.name(), "closed the connection"));
  for (;;) {
    auto arrived = peer.receive();
    if (!arrived || !*arrived) return arrived;
    if (!peer.has_payload()) {
      if (auto fits = peer.expect(hello_max); !fits) return fail(fits.error());
      continue;
    }
    if (peer.frame().kind == FrameKind::hello) return true;
    if (peer.frame().kind == FrameKind::challenge) return fail(has_no_key());
    return fail(ErrorCode::invalid, "it sent a request before its hello");
  }
}

void Acceptor::accept() {
  for (;;) {
    Fd fd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    set_socket_options(fd.get());
    std::string name = fmt::format("a peer at {}", remote_host(fd.get()).value_or("unknown"));
    if (waiting_.size() == waiting_max) waiting_.pop_front();
    Waiting& added = waiting_.emplace_back(Waiting{{}, Steady::now() + hello_timeout_});
    added.peer.emplace_back(Connection(std::move(fd)), std::move(name), key_);
  }
}

Steady::time_point Acceptor::deadline() const {
  return waiting_.empty() ? Steady::time_point::max() : waiting_.front().until;
}

Result<std::list<ServerConnection>> Acceptor::next(const std::string& waiting_for,
                                                   const WaitLimit& wait_limit) {
  const Steady::time_point end = Steady::now() + wait_limit.timeout;
  std::vector<::pollfd> wanted;
  for (;;) {
    wanted.clear();
    add_to(wanted);
    const std::size_t own = wanted.size();
    const Stop* stop = wait_limit.stop;
    const bool stopping = stop != nullptr && stop->requested();
    if (stop != nullptr && !stopping) wanted.push_back({stop->fd(), POLLIN, 0});
    const Steady::time_point limit = stop != nullptr ? stop->limit(end) : end;
    if (::poll(wanted.data(), wanted.size(), poll_ms(std::min(limit, deadline()))) < 0) {
      if (errno == EINTR) continue;
      return fail(system_error("cannot wait for " + waiting_for, errno));
    }
    auto came = step(std::span(wanted).first(own));
    if (!came.empty()) return came;
    if (Steady::now() >= limit)
      return fail(
          lost(waiting_for, stopping ? "did not answer before this process had to stop" : "timed out"));
  }
}

}  // namespace slipway::train
