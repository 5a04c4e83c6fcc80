#include "net/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/error.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/quantity.h"
#include "net/dial.h"
#include "net/head.h"
#include "net/parser.h"
#include "net/upload.h"

namespace slipway::net {
namespace {

constexpr std::size_t body_size_max = 256u << 20;
constexpr std::size_t response_reserve_max = 16u << 20;
constexpr std::size_t buffer_size = 256 * 1024;

bool is_success(int status) { return status >= 200 && status < 300; }

// Whether sending it twice does what sending it once does. A connection that broke without a word leaves
// open whether the request was acted upon.
bool is_idempotent(std::string_view method, const Headers& headers) {
  return (method != "POST" && method != "PATCH") || find_header(headers, "Idempotency-Key").has_value();
}

// One request sent and its answer read, on a connection that is open.
class Call {
 public:
  Call(BlockingSocket& socket, const Url& url, std::string_view method, const Client::Options& options,
       const WaitLimit& limit)
      : socket_(socket), url_(url), is_head_(method == "HEAD"), options_(options), limit_(limit) {}

  Result<Response> run(Upload& upload);
  // No byte of an answer came: the server may have closed the connection before it saw the request.
  bool was_ignored() const { return broke_ && !got_some_; }
  bool keeps_connection() const { return keeps_connection_; }

 private:
  Result<void> send(Upload& upload);
  Result<void> receive();
  Result<void> take(std::string_view bytes);
  Result<bool> take_head(std::string_view& bytes);
  bool take_piece(std::string_view piece);
  Result<Ready> wait(bool for_writing);
  Result<void> on_end(int error_number);

  BlockingSocket& socket_;
  const Url& url_;
  const bool is_head_;
  const Client::Options& options_;
  const WaitLimit& limit_;
  std::string pending_;  // received, and not parsed yet
  std::unique_ptr<MessageParser<false>> parser_;
  Response response_;
  bool sent_all_ = false;
  bool broke_ = false;
  bool got_some_ = false;
  bool stopped_ = false;
  bool done_ = false;
  bool keeps_connection_ = false;
};

Result<Response> Call::run(Upload& upload) {
  if (auto sent = send(upload); !sent) return fail(std::move(sent.error()));
  if (auto received = receive(); !received) return fail(std::move(received.error()));
  keeps_connection_ = sent_all_ && !stopped_ && pending_.empty() && parser_->keep_alive();
  return std::move(response_);
}

Result<void> Call::send(Upload& upload) {
  for (;;) {
    const auto block = upload.next();
    if (!block) return fail(block.error());
    sent_all_ = block->empty();
    if (sent_all_) return {};
    const ssize_t put = socket_.send(*block);
    if (put < 0) return {};  // a server that refuses a body closes early; its answer has the reason
    upload.advance(static_cast<std::size_t>(put));
    if (put > 0) continue;
    const auto waited = wait(true);
    if (!waited) return fail(waited.error());
    if (*waited == Ready::readable) return {};  // answered before everything was sent
  }
}

Result<void> Call::receive() {
  const auto buffer = std::make_unique_for_overwrite<char[]>(buffer_size);
  while (!done_) {
    const ssize_t got = socket_.receive(buffer.get(), buffer_size);
    if (got < 0) return on_end(errno);
    if (got == 0) {
      if (auto waited = wait(false); !waited) return fail(std::move(waited.error()));
      continue;
    }
    got_some_ = true;
    const std::string_view bytes(buffer.get(), static_cast<std::size_t>(got));
    const std::string before = std::exchange(pending_, {});
    auto taken = before.empty() ? take(bytes) : take(before + std::string(bytes));
    if (!taken) return taken;
  }
  return {};
}

Result<void> Call::take(std::string_view bytes) {
  while (!parser_ && !bytes.empty()) {
    auto whole = take_head(bytes);
    if (!whole) return fail(std::move(whole.error()));
    if (!*whole) return {};
  }
  if (!parser_) return {};
  error_code error;
  parser_->put_body(bytes, error);
  if (stopped_) {
    done_ = true;
    return {};
  }
  if (error == http::error::body_limit)
    return fail(ErrorCode::too_large,
                fmt::format("the answer of {} is over {}", url_.origin(), format_bytes(body_size_max)));
  if (error)
    return fail(ErrorCode::internal,
                fmt::format("the answer of {} is broken: {}", url_.origin(), error.message()));
  pending_ = bytes;
  done_ = parser_->is_done();
  return {};
}

// False when more bytes are needed. Interim answers (1xx) are skipped.
Result<bool> Call::take_head(std::string_view& bytes) {
  const std::size_t end = find_head_end(bytes, 0);
  if (end == 0 && bytes.size() <= head_size_max) {
    pending_ = bytes;
    return false;
  }
  auto parser = std::make_unique<MessageParser<false>>();
  parser->skip(is_head_);
  error_code error = http::error::header_limit;
  if (end != 0 && end <= head_size_max) parser->put_head(bytes.substr(0, end), error);
  if (error)
    return fail(
        ErrorCode::internal,
        fmt::format("protocol error: {} does not answer in HTTP/1.1: {}", url_.origin(), error.message()),
        "is that the address of a Slipway service?");
  bytes.remove_prefix(end);
  if (parser->status < 200) return true;
  response_.status = parser->status;
  response_.headers = std::move(parser->headers);
  if (!is_head_)
    response_.body.reserve(
        std::min<std::uint64_t>(parser->content_length().value_or(0), response_reserve_max));
  parser->sink = [this](std::string_view piece) { return take_piece(piece); };
  parser_ = std::move(parser);
  return true;
}

bool Call::take_piece(std::string_view piece) {
  if (options_.on_piece && is_success(response_.status)) {
    stopped_ = !options_.on_piece(piece);
    return !stopped_;
  }
  if (response_.body.size() + piece.size() > body_size_max) return false;
  response_.body += piece;
  return true;
}

Result<Ready> Call::wait(bool for_writing) {
  const Ready ready = socket_.wait(true, for_writing, limit_);
  if (ready == Ready::cancelled)
    return fail(ErrorCode::unavailable, fmt::format("waiting for {} was interrupted", url_.origin()));
  if (ready == Ready::timed_out)
    return fail(ErrorCode::unavailable, fmt::format("{} did not answer within {}", url_.origin(),
                                                    format_duration(options_.deadline)));
  return ready;
}

// The connection ended (0) or broke. That is the end of an answer that says so, and else an error.
Result<void> Call::on_end(int error_number) {
  broke_ = true;
  if (parser_ && error_number == 0) {
    error_code error;
    parser_->put_eof(error);
    done_ = !error;
    if (done_) return {};
  }
  const std::string_view when = parser_ ? "in the middle of its answer" : "without an answer";
  const std::string why = error_number == 0 ? "" : fmt::format(" ({})", std::strerror(error_number));
  return fail(ErrorCode::unavailable, fmt::format("{} closed the connection {}{}", url_.origin(), when, why));
}

}  // namespace

struct Client::Impl {
  std::string format_head(std::string_view method, const std::string& target, const Options& options,
                          std::uint64_t body_size) const;
  Result<void> dial(const WaitLimit& limit);

  Url url;
  Headers headers_always;
  BlockingSocket socket;
};

std::string Client::Impl::format_head(std::string_view method, const std::string& target,
                                      const Options& options, std::uint64_t body_size) const {
  std::string head = fmt::format("{} {}{} HTTP/1.1\r\n", method, url.path, target);
  append_field(head, "Host", url.authority());
  append_field(head, "User-Agent", "slipway/" SLIPWAY_VERSION);
  for (const auto& [name, value] : headers_always)
    if (!find_header(options.headers, name)) append_field(head, name, value);
  for (const auto& [name, value] : options.headers)
    if (!is_framing_field(name)) append_field(head, name, value);
  if (body_size > 0 || method == "POST" || method == "PUT" || method == "PATCH")
    append_field(head, "Content-Length", std::to_string(body_size));
  head += "\r\n";
  return head;
}

Result<void> Client::Impl::dial(const WaitLimit& limit) {
  auto dialled = socket.dial(url, limit);
  if (dialled) return {};
  return fail(ErrorCode::unavailable, fmt::format("cannot reach {}: {}", url.origin(), dialled.error().what),
              dialled.error().hint);
}

Client::Client(Url url, Headers headers_always)
    : impl_(std::make_unique<Impl>(Impl{std::move(url), std::move(headers_always), {}})) {}
Client::~Client() = default;

Result<Response> Client::request(std::string_view method, const std::string& target, const Options& options) {
  if (std::any_of(target.begin(), target.end(), [](char c) { return static_cast<unsigned char>(c) <= ' '; }))
    return fail(ErrorCode::invalid,
                fmt::format("'{}' cannot be asked for: it has a space", one_line(target)));
  BlockingSocket& socket = impl_->socket;
  WaitLimit limit{.cancel_fd = options.cancel_fd};
  if (options.deadline > Duration(0)) limit.deadline = std::chrono::steady_clock::now() + options.deadline;
  auto upload = Upload::open(options);
  if (!upload) return fail(std::move(upload.error()));
  const std::string head = impl_->format_head(method, target, options, upload->size());

  for (;;) {
    if (socket.is_open() && socket.is_stale()) socket.close();  // closed while idle: nothing was lost
    const bool is_reused = socket.is_open();
    if (!is_reused) {
      if (auto dialled = impl_->dial(limit); !dialled) return fail(std::move(dialled.error()));
    }
    upload->start(head);
    Call call(socket, impl_->url, method, options, limit);
    auto response = call.run(*upload);
    if (!response || !call.keeps_connection()) socket.close();
    // The server may have closed the idle connection just as the request was on its way.
    if (!response && is_reused && call.was_ignored() && is_idempotent(method, options.headers)) continue;
    return response;
  }
}

}  // namespace slipway::net
