#include "api/audited_exchange.h"

#include <utility>

namespace slipway::api {
namespace {

class Audited final : public net::Exchange {
 public:
  Audited(std::shared_ptr<net::Exchange> exchange, Answered done)
      : exchange_(std::move(exchange)), done_(std::move(done)) {}
  ~Audited() override { answered(500, {}, {}); }  // dropped without an answer

  const net::Request& request() const override { return exchange_->request(); }
  void send(net::Response response) override {
    answered(response.status, response.headers, response.body);
    exchange_->send(std::move(response));
  }
  void send_file(int status, net::Headers headers, Fd file, std::uint64_t offset,
                 std::uint64_t length) override {
    answered(status, headers, {});
    exchange_->send_file(status, std::move(headers), std::move(file), offset, length);
  }
  std::shared_ptr<net::Stream> start_stream(int status, net::Headers headers) override {
    answered(status, headers, {});
    return exchange_->start_stream(status, std::move(headers));
  }
  std::shared_ptr<net::WebSocket> accept_websocket(net::WebSocketCallbacks callbacks) override {
    answered(101, {}, {});
    return exchange_->accept_websocket(std::move(callbacks));
  }
  bool wants_websocket() const override { return exchange_->wants_websocket(); }
  void on_closed(std::function<void()> gone) override { exchange_->on_closed(std::move(gone)); }
  void opened_with(std::string token) override { exchange_->opened_with(std::move(token)); }

 private:
  void answered(int status, const net::Headers& headers, const std::string& body) {
    if (const Answered done = std::exchange(done_, {})) done(status, headers, body);
  }
  std::shared_ptr<net::Exchange> exchange_;
  Answered done_;
};

class NoStream final : public net::Stream {
 public:
  void write(std::string, std::function<void()>) override {}
  void finish() override {}
  void on_closed(std::function<void()>) override {}
};

class Inner final : public net::Exchange {
 public:
  Inner(net::Request request, std::function<void(std::string)> done)
      : request_(std::move(request)), done_(std::move(done)) {}
  ~Inner() override { answered({}); }

  const net::Request& request() const override { return request_; }
  void send(net::Response response) override {
    answered(response.status == 200 ? std::move(response.body) : std::string());
  }
  void send_file(int, net::Headers, Fd, std::uint64_t, std::uint64_t) override { answered({}); }
  std::shared_ptr<net::Stream> start_stream(int, net::Headers) override {
    answered({});
    return std::make_shared<NoStream>();
  }
  std::shared_ptr<net::WebSocket> accept_websocket(net::WebSocketCallbacks) override { return nullptr; }
  bool wants_websocket() const override { return false; }
  void on_closed(std::function<void()>) override {}
  void opened_with(std::string) override {}

 private:
  void answered(std::string body) {
    if (const auto done = std::exchange(done_, {})) done(std::move(body));
  }
  net::Request request_;
  std::function<void(std::string)> done_;
};

}  // namespace

std::shared_ptr<net::Exchange> make_audited(std::shared_ptr<net::Exchange> exchange, Answered done) {
  return std::make_shared<Audited>(std::move(exchange), std::move(done));
}
std::shared_ptr<net::Exchange> make_inner(net::Request request, std::function<void(std::string body)> done) {
  return std::make_shared<Inner>(std::move(request), std::move(done));
}

}  // namespace slipway::api
