#include "net/exchange.h"

#include <boost/beast/http/rfc7230.hpp>

#include "base/check.h"
#include "base/log.h"
#include "net/websocket.h"

namespace slipway::net {
namespace {

class ConnectionStream final : public Stream {
 public:
  explicit ConnectionStream(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~ConnectionStream() override {
    if (!finished_ && !connection_->loop_is_closing()) connection_->cut();
  }

  void write(std::string piece, std::function<void()> written) override {
    if (!connection_->is_streaming()) return;  // the client is gone, and its owner is notified or will be
    SLIPWAY_CHECK(!finished_ && !*writing_);
    *writing_ = true;
    connection_->write_piece(std::move(piece), [writing = writing_, call = std::move(written)] {
      *writing = false;
      if (call) call();
    });
  }
  void finish() override {
    if (!std::exchange(finished_, true)) connection_->finish_stream();
  }
  void on_closed(std::function<void()> gone) override {
    if (!finished_) connection_->on_closed(std::move(gone));
  }

 private:
  std::shared_ptr<Connection> connection_;
  // Shared with the callback, which may run after the stream was dropped.
  std::shared_ptr<bool> writing_ = std::make_shared<bool>(false);
  bool finished_ = false;
};

}  // namespace

ConnectionExchange::ConnectionExchange(std::shared_ptr<Connection> connection, Request request,
                                       BodyMemory memory)
    : connection_(std::move(connection)), request_(std::move(request)), memory_(std::move(memory)) {}

ConnectionExchange::~ConnectionExchange() {
  if (answered_ || connection_->loop_is_closing()) return;
  connection_->answer({500, {{"Content-Type", "text/plain"}}, "the request was not answered\n"});
}

void ConnectionExchange::begin_answer() {
  SLIPWAY_CHECK(!answered_);
  answered_ = true;
}

void ConnectionExchange::send(Response response) {
  begin_answer();
  connection_->answer(std::move(response));
}

void ConnectionExchange::send_file(int status, Headers headers, Fd file, std::uint64_t offset,
                                   std::uint64_t length) {
  begin_answer();
  connection_->answer_file(status, headers, std::move(file), offset, length);
}

std::shared_ptr<Stream> ConnectionExchange::start_stream(int status, Headers headers) {
  begin_answer();
  connection_->start_stream(status, headers);
  return std::make_shared<ConnectionStream>(connection_);
}

std::shared_ptr<WebSocket> ConnectionExchange::accept_websocket(WebSocketCallbacks callbacks) {
  begin_answer();
  return connection_->upgrade(request_, std::move(callbacks));
}

bool ConnectionExchange::wants_websocket() const {
  const auto upgrade = request_.header("Upgrade");
  const auto connection = request_.header("Connection");
  return request_.method == "GET" && upgrade && connection &&
         http::token_list{*upgrade}.exists("websocket") && http::token_list{*connection}.exists("upgrade");
}

void ConnectionExchange::on_closed(std::function<void()> gone) {
  if (!answered_) connection_->on_closed(std::move(gone));
}

}  // namespace slipway::net
