#include "serve/grpc_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/file.h"

namespace slipway::serve {

std::optional<Duration> parse_grpc_timeout(std::string_view text) {
  std::uint64_t amount = 0;
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  const char* unit = text.data() + text.size() - 1;
  const auto read = std::from_chars(text.data(), unit, amount);
  if (read.ec != std::errc() || read.ptr != unit) return std::nullopt;
  const auto count = static_cast<std::int64_t>(amount);
  switch (*unit) {
    case 'H': return Duration(std::chrono::hours(count));
    case 'M': return Duration(std::chrono::minutes(count));
    case 'S': return Duration(std::chrono::seconds(count));
    case 'm': return Duration(std::chrono::milliseconds(count));
    case 'u': return Duration(count);
    case 'n': return Duration(count / 1000);
    default: return std::nullopt;
  }
}

std::string encode_grpc_message(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%')
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

namespace {

constexpr std::size_t frame_head = 5;  // a flag and the length of the message
constexpr std::size_t unsent_max = 1 << 20;

struct Stream {
  std::string path, body, answer;
  std::size_t sent = 0;
  std::optional<Duration> timeout;
  bool is_compressed = false, is_too_large = false, is_handled = false;
  Failure status{Code::ok, ""};
};

// Answers from other threads, until the server's own takes them. Outlives the server in the hands of replies.
struct Outbox {
  struct Entry {
    std::uint64_t connection;
    std::int32_t stream;
    Answer<std::string> answer;
  };
  std::mutex mutex;
  std::vector<Entry> entries;  // guarded by mutex
  Fd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t put =
        ::write(wake.get(), &one, sizeof one);  // a full counter wakes as well
  }
};

class EpollServer;

struct Connection {
  EpollServer* server = nullptr;
  std::uint64_t id = 0;
  Fd fd;
  nghttp2_session* session = nullptr;
  std::map<std::int32_t, Stream> streams;
  std::string unsent;
  bool waits_writable = false;
  ~Connection() { nghttp2_session_del(session); }
};

class EpollServer final : public GrpcServer {
 public:
  EpollServer(GrpcServerOptions options, GrpcHandler handler, Fd listener, std::uint16_t port)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        listener_(std::move(listener)),
        port_(port) {
    nghttp2_session_callbacks_new(&callbacks_);
    nghttp2_session_callbacks_set_on_header_callback(callbacks_, on_header);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks_, on_begin_headers);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks_, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks_, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks_, on_stream_close);
    watch(listener_.get(), listener_key, EPOLLIN, EPOLL_CTL_ADD);
    watch(outbox_->wake.get(), wake_key, EPOLLIN, EPOLL_CTL_ADD);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~EpollServer() override {
    thread_.request_stop();
    outbox_->ring();
    thread_.join();
    connections_.clear();
    nghttp2_session_callbacks_del(callbacks_);
  }
  std::uint16_t port() const override { return port_; }

 private:
  static constexpr std::uint64_t listener_key = 0, wake_key = 1;

  void watch(int fd, std::uint64_t key, std::uint32_t events, int operation) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = key;
    ::epoll_ctl(poll_.get(), operation, fd, &event);
  }

  void run(const std::stop_token& stop) {
    epoll_event events[64];
    while (!stop.stop_requested()) {
      const int count = ::epoll_wait(poll_.get(), events, 64, -1);
      for (int i = 0; i < count; ++i) {
        const std::uint64_t key = events[i].data.u64;
        if (key == listener_key)
          accept_all();
        else if (key == wake_key)
          take_answers();
        else
          serve(key, events[i].events);
      }
    }
  }

  void accept_all() {
    for (;;) {
      Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) return;
      if (connections_.size() >= options_.connections_max) continue;  // closed
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      auto connection = std::make_unique<Connection>();
      connection->server = this;
      connection->id = next_id_++;
      connection->fd = std::move(fd);
      nghttp2_session_server_new(&connection->session, callbacks_, connection.get());
      const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 256},
                                                 {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4u << 20}};
      nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, 2);
      nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0, 16 << 20);
      watch(connection->fd.get(), connection->id, EPOLLIN, EPOLL_CTL_ADD);
      Connection& added = *connections_.emplace(connection->id, std::move(connection)).first->second;
      if (!send(added)) close(added.id);
    }
  }

  void serve(std::uint64_t id, std::uint32_t events) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = *found->second;
    const bool can_read = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
    if ((can_read && !receive(connection)) || !send(connection)) close(id);
  }

  void close(std::uint64_t id) {
    const auto found = connections_.find(id);
    for (const auto& stream : found->second->streams) waiting_bytes_ -= stream.second.body.size();
    connections_.erase(found);
  }

  static bool receive(Connection& connection) {
    std::uint8_t part[65536];
    for (int turn = 0; turn < 16; ++turn) {  // then others have theirs; what is left wakes us again
      const ssize_t got = ::read(connection.fd.get(), part, sizeof part);
      if (got < 0) return errno == EAGAIN || errno == EINTR;
      if (got == 0) return false;
      if (nghttp2_session_mem_recv(connection.session, part, static_cast<std::size_t>(got)) < 0) return false;
      if (static_cast<std::size_t>(got) < sizeof part) return true;
    }
    return true;
  }

  bool send(Connection& connection) const {
    for (;;) {
      while (connection.unsent.size() < unsent_max) {
        const std::uint8_t* part = nullptr;
        const ssize_t size = nghttp2_session_mem_send(connection.session, &part);
        if (size < 0) return false;
        if (size == 0) break;
        connection.unsent.append(reinterpret_cast<const char*>(part), static_cast<std::size_t>(size));
      }
      if (connection.unsent.empty()) break;
      const ssize_t put =
          ::send(connection.fd.get(), connection.unsent.data(), connection.unsent.size(), MSG_NOSIGNAL);
      if (put < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (put > 0) connection.unsent.erase(0, static_cast<std::size_t>(put));
      if (put < 0 && errno == EAGAIN) break;
    }
    const bool waits = !connection.unsent.empty();
    if (waits != connection.waits_writable) {
      connection.waits_writable = waits;
      watch(connection.fd.get(), connection.id, waits ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    }
    const bool lives = nghttp2_session_want_read(connection.session) != 0 ||
                       nghttp2_session_want_write(connection.session) != 0 || waits;
    return lives;
  }

  void take_answers() {
    std::uint64_t rung = 0;
    [[maybe_unused]] const ssize_t got =
        ::read(outbox_->wake.get(), &rung, sizeof rung);  // nothing to read is fine
    std::vector<Outbox::Entry> entries;
    {
      const std::lock_guard lock(outbox_->mutex);
      entries.swap(outbox_->entries);
    }
    for (Outbox::Entry& entry : entries) {
      const auto connection = connections_.find(entry.connection);
      if (connection == connections_.end()) continue;
      const auto stream = connection->second->streams.find(entry.stream);
      if (stream == connection->second->streams.end()) continue;
      answer(*connection->second, entry.stream, stream->second, std::move(entry.answer));
      if (!send(*connection->second)) close(entry.connection);
    }
  }

  static nghttp2_nv header(std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};  // copied by nghttp2
  }

  static void answer(Connection& connection, std::int32_t id, Stream& stream, Answer<std::string> result) {
    if (!result) {
      const std::string code = std::to_string(static_cast<int>(result.error().code));
      const std::string message = encode_grpc_message(result.error().message);
      const nghttp2_nv headers[] = {header(":status", "200"), header("content-type", "application/grpc"),
                                    header("grpc-status", code), header("grpc-message", message)};
      nghttp2_submit_response(connection.session, id, headers, 4, nullptr);
      return;
    }
    const auto size = static_cast<std::uint32_t>(result->size());
    stream.answer = {'\0', static_cast<char>(size >> 24), static_cast<char>(size >> 16),
                     static_cast<char>(size >> 8), static_cast<char>(size)};
    stream.answer += *result;
    const nghttp2_nv headers[] = {header(":status", "200"), header("content-type", "application/grpc")};
    nghttp2_data_provider body{};
    body.source.ptr = &stream;
    body.read_callback = read_answer;
    nghttp2_submit_response(connection.session, id, headers, 2, &body);
  }

  static ssize_t read_answer(nghttp2_session* session, std::int32_t id, std::uint8_t* to, std::size_t size,
                             std::uint32_t* flags, nghttp2_data_source* source, void*) {
    Stream& stream = *static_cast<Stream*>(source->ptr);
    const std::size_t part = std::min(size, stream.answer.size() - stream.sent);
    std::memcpy(to, stream.answer.data() + stream.sent, part);
    stream.sent += part;
    if (stream.sent == stream.answer.size()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv trailer[] = {header("grpc-status", "0")};
      nghttp2_submit_trailer(session, id, trailer, 1);
    }
    return static_cast<ssize_t>(part);
  }

  // --- what nghttp2 reports

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& connection = *static_cast<Connection*>(user);
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) connection.streams.try_emplace(frame->hd.stream_id);
    return 0;
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t,
                       void* user) {
    auto& connection = *static_cast<Connection*>(user);
    const auto stream = connection.streams.find(frame->hd.stream_id);
    if (stream == connection.streams.end()) return 0;
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":path") stream->second.path = text;
    if (key == "grpc-timeout") stream->second.timeout = parse_grpc_timeout(text);
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                     std::size_t size, void* user) {
    auto& connection = *static_cast<Connection*>(user);
    EpollServer& server = *connection.server;
    const auto found = connection.streams.find(id);
    if (found == connection.streams.end()) return 0;
    Stream& stream = found->second;
    stream.is_too_large = stream.is_too_large ||
                          stream.body.size() + size > server.options_.message_max + frame_head ||
                          server.waiting_bytes_ + size > server.options_.waiting_bytes_max;
    if (stream.is_too_large) return 0;  // read to its end, and dropped
    stream.body.append(reinterpret_cast<const char*>(data), size);
    server.waiting_bytes_ += size;
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    const bool may_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (!may_end || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    auto& connection = *static_cast<Connection*>(user);
    const auto stream = connection.streams.find(frame->hd.stream_id);
    if (stream != connection.streams.end())
      connection.server->handle(connection, stream->first, stream->second);
    return 0;
  }
  static int on_stream_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    auto& connection = *static_cast<Connection*>(user);
    const auto found = connection.streams.find(id);
    if (found == connection.streams.end()) return 0;
    connection.server->waiting_bytes_ -= found->second.body.size();
    connection.streams.erase(found);
    return 0;
  }

  void handle(Connection& connection, std::int32_t id, Stream& stream) {
    if (stream.is_handled) return;
    stream.is_handled = true;
    const auto refuse_call = [&](Code code, std::string why) {
      answer(connection, id, stream, refuse(code, std::move(why)));
    };
    if (stream.is_too_large)
      return refuse_call(
          Code::resource_exhausted,
          fmt::format("the message has more than {} bytes, or too many wait", options_.message_max));
    if (stream.body.size() < frame_head)
      return refuse_call(Code::invalid_argument, "the request has no message");
    if (stream.body[0] != 0) return refuse_call(Code::unimplemented, "compressed messages are not taken");
    const auto byte = [&](std::size_t i) {
      return std::uint32_t{static_cast<unsigned char>(stream.body[i])};
    };
    const std::uint32_t size = byte(1) << 24 | byte(2) << 16 | byte(3) << 8 | byte(4);
    if (stream.body.size() != frame_head + size)
      return refuse_call(Code::unimplemented, "a call has exactly one message here");
    GrpcReply reply = [outbox = outbox_, connection_id = connection.id, id](Answer<std::string> answer_to) {
      const std::lock_guard lock(outbox->mutex);
      outbox->entries.push_back({connection_id, id, std::move(answer_to)});
      outbox->ring();
    };
    handler_({stream.path, stream.body.substr(frame_head), stream.timeout}, std::move(reply));
  }

  GrpcServerOptions options_;
  GrpcHandler handler_;
  Fd listener_;
  std::uint16_t port_;
  Fd poll_{::epoll_create1(EPOLL_CLOEXEC)};
  std::shared_ptr<Outbox> outbox_ = std::make_shared<Outbox>();
  nghttp2_session_callbacks* callbacks_ = nullptr;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t next_id_ = 2;
  std::size_t waiting_bytes_ = 0;
  std::jthread thread_;
};

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::listen(GrpcServerOptions options, GrpcHandler handler) {
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(options.port);
  if (::inet_pton(AF_INET, options.address.c_str(), &own.sin_addr) != 1)
    return fail(ErrorCode::invalid, fmt::format("gRPC cannot listen on {}", options.address),
                "give an IPv4 address");
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) != 0 ||
      ::listen(listener.get(), 1024) != 0) {
    Error error =
        system_error(fmt::format("gRPC cannot listen on {}:{}", options.address, options.port), errno);
    error.hint = "choose another --port, or --port 0 to leave gRPC out";
    return fail(std::move(error));
  }
  socklen_t size = sizeof own;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &size);
  return std::make_unique<EpollServer>(std::move(options), std::move(handler), std::move(listener),
                                       ntohs(own.sin_port));
}

}  // namespace slipway::serve
