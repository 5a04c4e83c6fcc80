// The half of a connection that writes.
#include <fmt/format.h>

#include "net/connection.h"
#include "net/websocket.h"

namespace slipway::net {
namespace {

constexpr std::size_t file_chunk = 1 << 20;
// A fast reader could take a whole file without the socket ever being full; others get their turn after this.
constexpr std::size_t written_per_turn_max = 4 << 20;
// Copied behind the head, to be written in one go.
constexpr std::size_t small_body = 4096;

}  // namespace

AnswerHead Connection::answer_head(int status, const Headers& headers) {
  if (asks_to_close(headers)) keep_alive_ = false;
  return {.status = status,
          .framing = allows_body(status) ? Framing::length : Framing::none,
          .keep_alive = keep_alive_ && !peer_ended_,
          .is_http_1_1 = is_http_1_1_};
}

void Connection::answer(Response response) {
  if (phase_ != Phase::handling) return;
  phase_ = Phase::answering;
  AnswerHead head = answer_head(response.status, response.headers);
  head.length = response.body.size();
  std::vector<std::string> parts;
  parts.push_back(format_answer_head(head, response.headers));
  if (head.framing == Framing::length && !is_head_request_) {
    if (response.body.size() <= small_body)
      parts.front() += response.body;
    else
      parts.push_back(std::move(response.body));
  }
  outgoing_ = std::make_unique<Outgoing>();
  write(std::move(parts));
}

void Connection::answer_file(int status, const Headers& headers, Fd file, std::uint64_t offset,
                             std::uint64_t length) {
  if (phase_ != Phase::handling) return;
  phase_ = Phase::answering;
  AnswerHead head = answer_head(status, headers);
  head.length = length;
  outgoing_ = std::make_unique<Outgoing>();
  if (head.framing == Framing::length && !is_head_request_) {
    outgoing_->file = std::move(file);
    outgoing_->file_offset = offset;
    outgoing_->file_left = length;
  }
  write({format_answer_head(head, headers)});
}

void Connection::start_stream(int status, const Headers& headers) {
  if (phase_ != Phase::handling) return;
  phase_ = Phase::streaming;
  if (peer_ended_) return close();  // whoever follows a stream keeps both halves open
  is_chunked_ = is_http_1_1_;
  if (!is_chunked_ && !is_head_request_) keep_alive_ = false;
  AnswerHead head = answer_head(status, headers);
  head.framing = is_chunked_ ? Framing::chunked : Framing::until_close;
  outgoing_ = std::make_unique<Outgoing>();
  outgoing_->is_last = false;
  watch_readable();
  write({format_answer_head(head, headers)});
}

void Connection::write_piece(std::string piece, std::function<void()> written) {
  if (phase_ != Phase::streaming) return;
  outgoing_->written = std::move(written);
  std::vector<std::string> parts;
  if (!piece.empty() && !is_head_request_) {  // an empty chunk would end the stream
    if (is_chunked_) parts.push_back(fmt::format("{:x}\r\n", piece.size()));
    parts.push_back(std::move(piece));
    if (is_chunked_) parts.emplace_back("\r\n");
  }
  write(std::move(parts));
}

void Connection::finish_stream() {
  if (phase_ != Phase::streaming) return;
  outgoing_->is_last = true;
  if (is_chunked_ && !is_head_request_)
    write({"0\r\n\r\n"});
  else
    write({});
}

void Connection::cut() {
  if (phase_ == Phase::streaming && !is_chunked_) transport_.reset();  // else the end would look whole
  close();
}

void Connection::write(std::vector<std::string> parts) {
  Outgoing& out = *outgoing_;
  for (std::string& part : parts) out.parts.push_back(std::move(part));
  if (!waiting_writable_) pump();
}

// Writes until nothing is left or the socket is full.
void Connection::pump() {
  error_code error;
  if (pump_parts(error) && pump_file(error)) return on_all_written();
  if (phase_ == Phase::closed) return;
  const bool had_its_turn = !error;
  if (!had_its_turn && !Transport::would_block(error)) return close();
  waiting_writable_ = true;
  auto again = [self = shared_from_this()](const error_code& stopped = {}) {
    self->waiting_writable_ = false;
    if (!stopped && self->outgoing_) self->pump();
  };
  if (had_its_turn) {
    asio::post(server_->loop.io, std::move(again));
    return;
  }
  if (phase_ == Phase::answering) set_deadline_in(server_->options.answer_stall_max);
  transport_.when_writable(std::move(again));
}

bool Connection::pump_parts(error_code& error) {
  Outgoing& out = *outgoing_;
  while (out.part < out.parts.size()) {
    std::array<asio::const_buffer, 4> buffers{};
    for (std::size_t i = 0; i < buffers.size() && out.part + i < out.parts.size(); ++i)
      buffers[i] = asio::buffer(out.parts[out.part + i]);
    buffers[0] += out.offset;
    std::size_t put = transport_.write_some(buffers, error);
    if (error) return false;
    put += out.offset;
    while (out.part < out.parts.size() && put >= out.parts[out.part].size()) {
      put -= out.parts[out.part].size();
      std::string().swap(out.parts[out.part++]);
    }
    out.offset = put;
  }
  out.parts.clear();
  out.part = 0;
  return true;
}

bool Connection::pump_file(error_code& error) {
  Outgoing& out = *outgoing_;
  std::size_t written = 0;
  while (out.file_left > 0) {
    if (written >= written_per_turn_max) return false;
    const auto chunk = static_cast<std::size_t>(std::min<std::uint64_t>(out.file_left, file_chunk));
    const std::size_t put = transport_.write_file(out.file.get(), out.file_offset, chunk, error);
    if (error) return false;
    if (put == 0) {  // the file shrank; only the end of the connection can show that to the client
      close();
      return false;
    }
    out.file_offset += put;
    out.file_left -= put;
    written += put;
  }
  return true;
}

void Connection::on_all_written() {
  server_->loop.post(std::exchange(outgoing_->written, nullptr));
  if (outgoing_->is_last) finish_answer();
}

void Connection::finish_answer() {
  outgoing_.reset();
  const auto dropped = std::exchange(gone_, nullptr);
  if (!keep_alive_ || peer_ended_) {
    phase_ = Phase::lingering;
    pending_ = {};
    transport_.end_writing();
    set_deadline_in(server_->options.linger_max);
    if (peer_ended_) return close();
    return watch_readable();
  }
  phase_ = Phase::idle;
  set_deadline_in(server_->options.idle_max);
  if (pending_.empty()) return watch_readable();
  // In a turn of its own: many short requests sent ahead would else be answered ever deeper in the stack.
  server_->loop.post([self = shared_from_this()] {
    if (self->phase_ == Phase::idle) self->take(std::exchange(self->pending_, {}), 0);
  });
}

std::shared_ptr<WebSocket> Connection::upgrade(const Request& request, WebSocketCallbacks callbacks) {
  auto session = std::make_shared<WebSocketSession>(
      server_->loop, Channel(TcpSocket(server_->loop.io.get_executor())), std::move(callbacks));
  auto handle = session->make_handle();
  if (phase_ != Phase::handling || peer_ended_ || !pending_.empty()) {
    close();
    session->abort("the client went away");
    return handle;
  }
  phase_ = Phase::upgraded;
  timer_.cancel();
  gone_ = nullptr;
  session_ = session;
  session->accept(transport_.release(), request, server_->options.websocket_message_max, shared_from_this());
  return handle;
}

void Connection::on_closed(std::function<void()> gone) {
  const bool is_open = phase_ == Phase::handling || phase_ == Phase::answering || phase_ == Phase::streaming;
  gone_ = std::move(gone);
  if (phase_ == Phase::closed || (is_open && peer_ended_)) notify_gone();
}

void Connection::notify_gone() { server_->loop.post(std::exchange(gone_, nullptr)); }

}  // namespace slipway::net
