#include "gang_exec/start_server.h"

#include <netinet/in.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>

#include "base/log.h"
#include "gang_exec/interface.h"
#include "gang_exec/report.h"
#include "gang_exec/scratch.h"

namespace slipway::gang_exec {

Result<std::unique_ptr<StartServer>> StartServer::listen(Gang gang, Environment variables,
                                                         ServeOptions options) {
  auto listener = listen_on(gang.self());
  if (!listener) return fail(listener.error());
  return std::unique_ptr<StartServer>(
      new StartServer(std::move(gang), std::move(variables), options, std::move(*listener)));
}

StartServer::StartServer(Gang gang, Environment variables, ServeOptions options, Fd listener)
    : gang_(std::move(gang)),
      variables_(std::move(variables)),
      options_(options),
      listener_(std::move(listener)) {
  ::signal(SIGPIPE, SIG_IGN);  // a command that closes its input must not end us
}

std::uint16_t StartServer::port() const {
  ::sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(listener_.get(), reinterpret_cast<::sockaddr*>(&address), &size);
  // The port lies at the same place in both families.
  return ntohs(reinterpret_cast<const ::sockaddr_in&>(address).sin_port);
}

void StartServer::serve(int stop) {
  while (!stopping_ || !sessions_.empty()) wait(stop);
}

void StartServer::wait(int stop) {
  std::vector<::pollfd> wanted;
  if (!stopping_) {
    const bool has_room = sessions_.size() < options_.sessions_max && !out_of_descriptors_;
    wanted.push_back({stop, POLLIN, 0});
    wanted.push_back({listener_.get(), static_cast<short>(has_room ? POLLIN : 0), 0});
  }
  auto deadline = Steady::now() + 1h;
  std::vector<std::size_t> begins;  // of each session in `wanted`
  for (const StartSession& session : sessions_) {
    begins.push_back(wanted.size());
    session.add_to(wanted);
    deadline = std::min(deadline, session.deadline());
  }
  begins.push_back(wanted.size());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
  if (::poll(wanted.data(), wanted.size(), static_cast<int>(std::max<long long>(left, 0))) < 0) return;

  const bool stop_now = !stopping_ && wanted[0].revents != 0;
  const bool someone_came = !stopping_ && (wanted[1].revents & POLLIN) != 0;
  std::size_t number = 0;
  for (StartSession& session : sessions_) {
    const std::span<const ::pollfd> own(wanted.data() + begins[number], wanted.data() + begins[number + 1]);
    session.step(own);
    if (stop_now) session.leave();
    ++number;
  }
  if (sessions_.remove_if([](const StartSession& session) { return session.is_over(); }) > 0)
    out_of_descriptors_ = false;
  if (someone_came && !stop_now) accept();
  if (stop_now) {
    stopping_ = true;
    listener_.reset();
  }
}

void StartServer::accept() {
  Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) {
    // Asking again at once would spin: wait until a session gives some back.
    out_of_descriptors_ = (errno == EMFILE || errno == ENFILE) && !sessions_.empty();
    return;
  }
  notice_loss(socket);
  drop_oldest_unauthenticated();
  sessions_.emplace_back(std::move(socket), gang_.secret, variables_, options_);
}

void StartServer::drop_oldest_unauthenticated() {
  const auto is_unauthenticated = [](const StartSession& session) { return session.is_unauthenticated(); };
  if (static_cast<std::size_t>(std::count_if(sessions_.begin(), sessions_.end(), is_unauthenticated)) <
      options_.unauthenticated_max)
    return;
  sessions_.erase(std::find_if(sessions_.begin(), sessions_.end(), is_unauthenticated));
}

int serve_starts() {
  Environment variables = read_environment();
  auto gang = parse_gang(variables);
  if (!gang) return report(gang.error(), 1);
  // Launchers elsewhere cannot know what the interface is called here.
  variables["SLIPWAY_INTERFACE"] = interface_of(gang->self().address);
  const auto scratch = ScratchFolder::make(variables);
  if (!scratch) return report(scratch.error(), 1);
  variables["TMPDIR"] = scratch->path();

  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigaddset(&ending, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  const Fd stop(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!stop) return report(system_error("cannot wait for signals", errno), 1);

  auto server = StartServer::listen(std::move(*gang), std::move(variables));
  if (!server) return report(server.error(), 1);
  (*server)->serve(stop.get());
  return 0;
}

}  // namespace slipway::gang_exec
