#include "net/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/beast/http/error.hpp>
#include <cstdlib>

#include "base/log.h"
#include "net/exchange.h"
#include "net/tls_server_state.h"
#include "net/websocket.h"

namespace slipway::net {
namespace {

// What a client may send ahead while its request is being answered; then it has to wait.
constexpr std::size_t pending_size_max = 16 * 1024;
// Bodies of a known size get their memory at once, but not on the word of a stranger for more than this.
constexpr std::size_t request_reserve_max = 1 << 20;

Transport make_transport(const ServerCore& server, TcpSocket socket) {
  const auto& tls = server.options.tls;
  SslPointer ssl = tls ? tls->state().accept(socket.native_handle()) : nullptr;
  if (tls && !ssl) {  // no memory for it: nothing goes in the clear instead
    error_code error;
    socket.close(error);
  }
  return Transport(std::move(socket), std::move(ssl));
}

}  // namespace

Connection::Connection(std::shared_ptr<ServerCore> server, TcpSocket socket, tcp::endpoint peer)
    : server_(std::move(server)),
      transport_(make_transport(*server_, std::move(socket))),
      timer_(server_->loop.io.get_executor()),
      peer_(std::move(peer)) {
  server_->add(*this, ServerCore::peer_of(peer_.address()));
}

Connection::~Connection() { server_->remove(*this, ServerCore::peer_of(peer_.address())); }

void Connection::start() {
  // Who connects has something to ask; between two requests a client may be idle for longer.
  set_deadline_in(std::min(server_->options.first_byte_deadline, server_->options.idle_max));
  watch_readable();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  const auto self = weak_from_this().lock();
  const Phase before = std::exchange(phase_, Phase::closed);
  if (before == Phase::upgraded) {
    if (const auto session = session_.lock()) session->abort("the server stopped");
  }
  timer_.cancel();
  transport_.close();
  // The user's objects in there may call back into this connection as they go; by then it is closed.
  const auto incoming = std::move(incoming_);
  const auto outgoing = std::move(outgoing_);
  pending_ = {};
  notify_gone();
  server_->remove(*this, ServerCore::peer_of(peer_.address()));
}

// What changes something is answered: it was allowed when it was asked, and may be what took the token back.
void Connection::cut_if_opened_with(const std::string& token) {
  if (opened_with_ != token) return;
  const bool is_open = phase_ == Phase::answering || phase_ == Phase::streaming ||
                       phase_ == Phase::upgraded || phase_ == Phase::handling;
  if (is_open && (only_reads_ || phase_ == Phase::upgraded)) close();
}

void Connection::watch_readable() {
  if (waiting_readable_) return;
  waiting_readable_ = true;
  transport_.when_readable([self = shared_from_this()](const error_code& error) {
    self->waiting_readable_ = false;
    if (!error) self->on_readable();  // the only error is that the wait was cancelled
  });
}

void Connection::on_readable() {
  switch (phase_) {
    case Phase::idle:
    case Phase::head:
    case Phase::body: return read_request();
    case Phase::handling:
    case Phase::answering:
    case Phase::streaming: return notice_end();
    case Phase::lingering: return drain();
    case Phase::upgraded:
    case Phase::closed: return;
  }
}

void Connection::read_request() {
  error_code error;
  const asio::mutable_buffer scratch = server_->scratch();
  const std::size_t got = transport_.read_some(scratch, error);
  if (Transport::would_block(error)) return watch_readable();
  if (error) return close();  // the end between requests, or within one that will never be whole
  const std::string_view bytes(static_cast<const char*>(scratch.data()), got);
  const std::size_t searched = pending_.size();
  if (searched == 0) return take(bytes, 0);
  std::string all = std::exchange(pending_, {});
  all += bytes;
  take(all, searched);
}

void Connection::take(std::string_view bytes, std::size_t searched) {
  if (phase_ != Phase::body && !take_head(bytes, searched)) return;
  take_body(bytes);
}

// True when the head is whole and its body may be read; else what comes next was arranged.
bool Connection::take_head(std::string_view& bytes, std::size_t searched) {
  while (bytes.starts_with("\r\n")) {  // RFC 9112 §2.2 wants these ignored; they may come in halves
    bytes.remove_prefix(2);
    searched = 0;
  }
  if (phase_ == Phase::idle) {
    if (bytes.empty()) {
      watch_readable();
      return false;
    }
    phase_ = Phase::head;
    head_started_ = SteadyClock::now();
    is_http_1_1_ = true;
    is_head_request_ = false;
    opened_with_.clear();
    searched = 0;
  }
  const std::size_t end = find_head_end(bytes, searched);
  if (end > head_size_max || (end == 0 && bytes.size() > head_size_max)) {
    refuse(431, "the head of the request is over 32 KiB");
    return false;
  }
  if (end > 0) {
    const std::string_view head = bytes.substr(0, end);
    bytes.remove_prefix(end);
    return begin_request(head) && begin_body(bytes);
  }
  if (!may_begin_request(bytes)) {
    refuse(400, "this is not an HTTP/1.1 request");
    return false;
  }
  pending_ = bytes;
  set_deadline(head_started_ + server_->options.header_deadline);
  watch_readable();
  return false;
}

bool Connection::begin_request(std::string_view head) {
  incoming_ = std::make_unique<Incoming>(*server_);
  MessageParser<true>& parser = incoming_->parser;
  error_code error;
  parser.put_head(head, error);
  if (error) {
    refuse(400, "the head of the request is broken: " + error.message());
    return false;
  }
  Request& request = incoming_->request;
  request.method = std::move(parser.method);
  request.target = std::move(parser.target);
  request.headers = std::move(parser.headers);
  request.peer = peer_.address().to_string();
  keep_alive_ = parser.keep_alive();
  is_http_1_1_ = parser.is_http_1_1;
  is_head_request_ = request.method == "HEAD";
  if (server_->options.tls) request.peer_name = transport_.peer_name();
  only_reads_ = is_head_request_ || request.method == "GET";
  if (!split_target(request)) {
    refuse(400, "the target of the request is broken");
    return false;
  }
  if (!parser.chunked() && request.header("Transfer-Encoding")) {
    // Where the body ends nobody knows, so the next request could not be found either.
    refuse(501, "the only transfer encoding known here is chunked");
    return false;
  }
  return true;
}

bool Connection::begin_body(std::string_view began) {
  const MessageParser<true>& parser = incoming_->parser;
  const auto calls = server_->calls;
  BodyPolicy policy = calls->policy ? calls->policy(incoming_->request) : BodyPolicy{};
  if (phase_ == Phase::closed) return false;  // the policy ended the server
  if (policy.refuse) {
    if (parser.is_done())
      pending_ = began;  // the next request
    else
      keep_alive_ = false;  // the body is still to come and nobody will read it
    phase_ = Phase::handling;
    incoming_.reset();
    answer(std::move(*policy.refuse));
    return false;
  }
  const auto length = parser.content_length();
  if (length && *length > policy.size_max) {
    refuse(413, fmt::format("the body has {} bytes; {} are allowed", *length, policy.size_max));
    return false;
  }
  if (parser.is_done()) return true;
  if (!open_body_sink(policy)) return false;
  phase_ = Phase::body;
  incoming_->body_started = SteadyClock::now();
  if (is_http_1_1_ && began.empty() && incoming_->request.header("Expect")) {
    constexpr std::string_view interim = "HTTP/1.1 100 Continue\r\n\r\n";
    error_code error;
    // All that was written before was taken by the kernel; when even this does not fit, the client asks
    // without ever reading.
    if (transport_.write_some(asio::buffer(interim), error) != interim.size()) close();
  }
  return phase_ == Phase::body;
}

bool Connection::open_body_sink(const BodyPolicy& policy) {
  Incoming& incoming = *incoming_;
  incoming.size_max = policy.size_max;
  if (policy.spool_folder.empty()) {
    const std::uint64_t known = incoming.parser.content_length().value_or(0);
    incoming.request.body.reserve(std::min<std::uint64_t>(known, request_reserve_max));
  } else {
    std::string path = policy.spool_folder + "/body.XXXXXX";
    incoming.spool = Fd(::mkostemp(path.data(), O_CLOEXEC));
    if (!incoming.spool) {
      const Error error = system_error("cannot create a file in " + policy.spool_folder, errno);
      log::error("http.spool", {{"error", error.what}});
      refuse(error.code == ErrorCode::unavailable ? 507 : 500, error.what);
      return false;
    }
    incoming.request.body_file = std::make_shared<const BodyFile>(std::move(path));
  }
  incoming.parser.sink = [&incoming](std::string_view piece) {
    Request& request = incoming.request;
    request.body_size += piece.size();
    if (request.body_size > incoming.size_max) return false;
    if (!incoming.spool) {
      incoming.is_memory_full = !incoming.memory.hold(request.body_size);
      if (incoming.is_memory_full) return false;
      request.body += piece;
      return true;
    }
    auto put = write_all(incoming.spool.get(), piece, request.body_file->path());
    if (!put) incoming.spool_error = std::move(put.error().what);
    return incoming.spool_error.empty();
  };
  return true;
}

void Connection::take_body(std::string_view bytes) {
  MessageParser<true>& parser = incoming_->parser;
  error_code error;
  parser.put_body(bytes, error);
  if (error) return refuse_body(error);
  pending_ = bytes;
  if (parser.is_done()) return dispatch();
  set_deadline(body_deadline());
  watch_readable();
}

void Connection::refuse_body(const error_code& error) {
  if (!incoming_->spool_error.empty()) {
    log::error("http.spool", {{"error", incoming_->spool_error}});
    return refuse(507, incoming_->spool_error);
  }
  if (incoming_->is_memory_full)
    return refuse(503, "too many large requests come at once; try again shortly");
  if (error == http::error::body_limit)
    return refuse(413, fmt::format("the body is over the {} bytes allowed", incoming_->size_max));
  refuse(400, "the body of the request is broken: " + error.message());
}

// The next byte must come before this: soon enough after the last, and so that the mean rate is kept.
SteadyClock::time_point Connection::body_deadline() const {
  const ServerOptions& options = server_->options;
  const auto stalled = SteadyClock::now() + options.body_stall_max;
  if (options.body_rate_min <= 0) return stalled;
  const double owed_s = static_cast<double>(incoming_->request.body_size) / options.body_rate_min;
  const Duration paid_for(static_cast<std::int64_t>(std::min(owed_s, 1e9) * 1e6));
  return std::min<SteadyClock::time_point>(
      stalled, incoming_->body_started + std::max(options.body_rate_grace, paid_for));
}

void Connection::dispatch() {
  phase_ = Phase::handling;
  set_deadline(SteadyClock::time_point::max());
  incoming_->spool.reset();  // the file is the handler's from here on
  auto exchange = std::make_shared<ConnectionExchange>(shared_from_this(), std::move(incoming_->request),
                                                       std::move(incoming_->memory));
  incoming_.reset();
  const auto calls = server_->calls;  // the handler may end the server
  calls->handler(std::move(exchange));
  if (phase_ == Phase::handling && !peer_ended_ && pending_.size() < pending_size_max) watch_readable();
}

// Something came while an answer is due: the next request, which waits its turn, or the client's end.
void Connection::notice_end() {
  error_code error;
  asio::mutable_buffer buffer = server_->scratch();
  if (pending_.size() >= pending_size_max) return;
  buffer = asio::buffer(buffer, pending_size_max - pending_.size());
  const std::size_t got = transport_.read_some(buffer, error);
  if (Transport::would_block(error)) return watch_readable();
  if (error && error != asio::error::eof) return close();
  if (error) {
    if (phase_ == Phase::streaming) return close();
    // It may have closed only its sending half, so the answer is still written; but nobody need hurry.
    peer_ended_ = true;
    keep_alive_ = false;
    notify_gone();
    return;
  }
  pending_.append(static_cast<const char*>(buffer.data()), got);
  if (pending_.size() < pending_size_max) return watch_readable();
  // Unread bytes would hide the client's end from a stream that may have nothing to write for hours.
  if (phase_ == Phase::streaming) close();
}

void Connection::drain() {
  error_code error;
  // The deadline of lingering was set when it began, so this ends even when the bytes do not.
  transport_.read_some(server_->scratch(), error);
  if (error && !Transport::would_block(error)) return close();
  watch_readable();
}

void Connection::refuse(int status, std::string_view why) {
  incoming_.reset();
  pending_ = {};
  keep_alive_ = false;
  phase_ = Phase::handling;
  // As the API answers, though nobody knows yet what was asked.
  std::string detail;
  for (const char c : why)
    if (static_cast<unsigned char>(c) >= ' ')
      detail += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  const char* code = status >= 500 ? "unavailable" : status == 413 ? "too_large" : "invalid";
  answer({status,
          {{"Content-Type", "application/problem+json"}},
          fmt::format("{{\"status\":{},\"code\":\"{}\",\"detail\":\"{}\"}}\n", status, code, detail)});
}

// The timer is only moved when it would fire too late: most deadlines are met, and then cost nothing.
void Connection::set_deadline(SteadyClock::time_point deadline) {
  deadline_ = deadline;
  if (deadline == SteadyClock::time_point::max()) return;
  if (!timer_armed_ || deadline < timer_.expiry()) arm_timer();
}

void Connection::arm_timer() {
  timer_armed_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error) return;  // moved, or the connection closed
    self->timer_armed_ = false;
    if (self->phase_ == Phase::closed || self->deadline_ == SteadyClock::time_point::max()) return;
    if (SteadyClock::now() < self->deadline_) return self->arm_timer();
    self->on_deadline();
  });
}

void Connection::on_deadline() {
  if (phase_ == Phase::head) return refuse(408, "the head of the request came too slowly");
  if (phase_ == Phase::body) return refuse(408, "the body of the request came too slowly");
  if (phase_ != Phase::upgraded) close();
}

}  // namespace slipway::net
