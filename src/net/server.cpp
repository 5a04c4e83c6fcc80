#include "net/server.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/resource.h>

#include <boost/asio/ip/basic_resolver.hpp>

#include "base/log.h"
#include "net/connection.h"

namespace slipway::net {
namespace {

// When descriptors run out and no connection of ours closes, another part of the process may have freed one.
constexpr std::chrono::seconds accept_pause{1};

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    log::warning("http.descriptors", {{"error", std::string_view("cannot raise the soft limit")}});
}

// sendfile(2) to a client that went away raises SIGPIPE and has no flag against it. A handler that does
// nothing, rather than SIG_IGN: programs started from here get the default back.
void disarm_broken_pipes() {
  struct sigaction current {};
  if (::sigaction(SIGPIPE, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  current.sa_handler = [](int) {};
  current.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &current, nullptr);
}

bool is_out_of_resources(const error_code& error) {
  return error == asio::error::no_descriptors ||
         error == boost::system::errc::too_many_files_open_in_system ||
         error == asio::error::no_buffer_space || error == asio::error::no_memory;
}

// What does not fit into the socket's own buffer is not waited for.
void turn_away(TcpSocket& socket) {
  constexpr std::string_view full =
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: "
      "text/plain\r\n"
      "Content-Length: 46\r\n\r\ntoo many connections are open; try again soon\n";
  error_code error;
  socket.non_blocking(true, error);
  if (!error) socket.write_some(asio::buffer(full), error);
  if (error) log::debug("http.turned_away", {{"error", error.message()}});
}

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  explicit Listener(std::shared_ptr<ServerCore> core)
      : core_(std::move(core)),
        acceptor_(core_->loop.io.get_executor()),
        pause_(core_->loop.io.get_executor()) {}

  Result<void> open();
  void stop();
  void cut_opened_with(const std::string& token);
  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return core_->connections.size(); }

 private:
  error_code bind(const tcp::endpoint& endpoint);
  std::vector<std::shared_ptr<Connection>> open_connections() const;
  void accept();
  void pause(const error_code& error);
  void resume();

  std::shared_ptr<ServerCore> core_;
  TcpAcceptor acceptor_;
  SteadyTimer pause_;
  tcp::endpoint peer_;
  std::uint16_t port_ = 0;
  bool paused_ = false;
};

Result<void> Listener::open() {
  const ServerOptions& options = core_->options;
  error_code error;
  asio::ip::basic_resolver<tcp, Executor> resolver(core_->loop.io.get_executor());
  const auto found =
      resolver.resolve(options.address, std::to_string(options.port), tcp::resolver::passive, error);
  if (!error) error = bind(found.begin()->endpoint());
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  if (error) {
    const std::string what =
        fmt::format("cannot listen on {}:{}: {}", options.address, options.port, error.message());
    if (error == asio::error::address_in_use)
      return fail(ErrorCode::conflict, what, "another program listens there: stop it or choose another port");
    return fail(error == asio::error::access_denied ? ErrorCode::denied : ErrorCode::invalid, what);
  }
  core_->on_removed = [weak = weak_from_this()] {
    if (const auto listener = weak.lock()) listener->resume();
  };
  accept();
  return {};
}

error_code Listener::bind(const tcp::endpoint& endpoint) {
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  // Accepted sockets inherit these on Linux, which saves four calls for each.
  if (!error) acceptor_.set_option(tcp::no_delay(true), error);
  if (!error) acceptor_.set_option(asio::socket_base::keep_alive(true), error);
  using Idle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using Interval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using Count = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  // A machine that vanished is noticed after a minute, also under an idle stream.
  if (!error) acceptor_.set_option(Idle(30), error);
  if (!error) acceptor_.set_option(Interval(10), error);
  if (!error) acceptor_.set_option(Count(3), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

void Listener::accept() {
  acceptor_.async_accept(peer_, [self = shared_from_this()](const error_code& error, TcpSocket socket) {
    if (error == asio::error::operation_aborted || !self->acceptor_.is_open()) return;
    if (is_out_of_resources(error)) return self->pause(error);
    // Other errors belong to a client that was gone before it was accepted.
    const bool is_full = !error && (self->connections() >= self->core_->options.connections_max ||
                                    self->core_->is_full_for(ServerCore::peer_of(self->peer_.address())));
    if (is_full)
      turn_away(socket);
    else if (!error)
      std::make_shared<Connection>(self->core_, std::move(socket), self->peer_)->start();
    self->accept();
  });
}

void Listener::pause(const error_code& error) {
  log::warning("http.accept_paused", {{"error", error.message()}, {"connections", connections()}});
  paused_ = true;
  pause_.expires_after(accept_pause);
  pause_.async_wait([weak = weak_from_this()](const error_code& cancelled) {
    const auto listener = weak.lock();
    if (!cancelled && listener) listener->resume();
  });
}

void Listener::resume() {
  if (!std::exchange(paused_, false) || !acceptor_.is_open()) return;
  pause_.cancel();
  accept();
}

// A copy: closing one may, through the objects of the user it drops, close another.
std::vector<std::shared_ptr<Connection>> Listener::open_connections() const {
  std::vector<std::shared_ptr<Connection>> open;
  for (Connection* connection : core_->connections)
    if (auto alive = connection->weak_from_this().lock()) open.push_back(std::move(alive));
  return open;
}

void Listener::cut_opened_with(const std::string& token) {
  for (const auto& connection : open_connections()) connection->cut_if_opened_with(token);
}

void Listener::stop() {
  error_code error;
  acceptor_.close(error);  // whatever it says, nothing is accepted any more
  pause_.cancel();
  paused_ = false;
  for (const auto& connection : open_connections()) connection->close();
  core_->calls.reset();
}

class ListeningServer final : public Server {
 public:
  explicit ListeningServer(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}
  ~ListeningServer() override { listener_->stop(); }
  std::uint16_t port() const override { return listener_->port(); }
  void stop() override { listener_->stop(); }
  std::size_t connections() const override { return listener_->connections(); }
  void cut_opened_with(const std::string& token) override { listener_->cut_opened_with(token); }

 private:
  std::shared_ptr<Listener> listener_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(Loop& loop, ServerOptions options, Policy policy,
                                               Handler handler) {
  raise_descriptor_limit();
  disarm_broken_pipes();
  auto listener = std::make_shared<Listener>(std::make_shared<ServerCore>(
      loop, std::move(options), ServerCore::Calls{std::move(policy), std::move(handler)}));
  if (auto opened = listener->open(); !opened) return fail(std::move(opened.error()));
  return std::make_unique<ListeningServer>(std::move(listener));
}

}  // namespace slipway::net
