#pragma once
// What a handler gets of a connection: one request to answer, and perhaps a stream to write.
#include <memory>

#include "net/connection.h"

namespace slipway::net {

class ConnectionExchange final : public Exchange {
 public:
  ConnectionExchange(std::shared_ptr<Connection> connection, Request request, BodyMemory memory);
  ~ConnectionExchange() override;

  const Request& request() const override { return request_; }
  void send(Response response) override;
  void send_file(int status, Headers headers, Fd file, std::uint64_t offset, std::uint64_t length) override;
  std::shared_ptr<Stream> start_stream(int status, Headers headers) override;
  std::shared_ptr<WebSocket> accept_websocket(WebSocketCallbacks callbacks) override;
  bool wants_websocket() const override;
  void on_closed(std::function<void()> gone) override;
  void opened_with(std::string token) override { connection_->set_opened_with(std::move(token)); }

 private:
  void begin_answer();

  std::shared_ptr<Connection> connection_;
  Request request_;
  BodyMemory memory_;  // of the request
  bool answered_ = false;
};

}  // namespace slipway::net
