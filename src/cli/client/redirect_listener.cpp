#include "cli/client/redirect_listener.h"

#include <fmt/format.h>

namespace slipway::cli {
namespace {

constexpr Duration answer_takes = std::chrono::milliseconds(200);  // to reach the browser

}  // namespace

Result<std::unique_ptr<RedirectListener>> RedirectListener::listen() {
  std::unique_ptr<RedirectListener> made(new RedirectListener);
  auto server = net::Server::listen(
      made->loop_, {}, [](const net::Request&) { return net::BodyPolicy{.size_max = 0}; },
      [own = made.get()](const std::shared_ptr<net::Exchange>& exchange) { own->answer(exchange); });
  if (!server) return fail(server.error());
  made->server_ = std::move(*server);
  return made;
}

std::string RedirectListener::url() const {
  return fmt::format("http://127.0.0.1:{}/callback", server_->port());
}

void RedirectListener::answer(const std::shared_ptr<net::Exchange>& exchange) {
  const net::Request& request = exchange->request();
  const auto text = [&](const char* name) { return request.parameter(name).value_or(""); };
  const net::Headers headers{{"Content-Type", "text/plain; charset=utf-8"}, {"Connection", "close"}};
  if (request.path != "/callback" || text("state") != state_)
    return exchange->send({404, headers, "There is nothing here.\n"});
  answer_ = Answer{text("code"), text("state"), text("error")};
  exchange->send({200, headers, "Signed in: go back to the terminal, this page can be closed.\n"});
  ending_ = loop_.after(answer_takes, [this] { loop_.stop(); });
}

std::optional<RedirectListener::Answer> RedirectListener::wait(const std::string& state, Duration patience) {
  state_ = state;
  const auto timer = loop_.after(patience, [this] { loop_.stop(); });
  loop_.run();
  server_->stop();
  return answer_;
}

}  // namespace slipway::cli
