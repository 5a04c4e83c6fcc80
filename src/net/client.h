#pragma once
// A blocking HTTP/1.1 client for programs that wait for their answer, and an asynchronous WebSocket client.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/server.h"

namespace slipway::net {

struct Url {
  std::string host;
  std::uint16_t port = 80;
  std::string path;        // without a trailing slash; usually empty
  bool is_secure = false;  // https
  // Of https: the only certificate that is trusted, the server's or its issuer's, by its SHA-256. Written
  // behind the address: https://head:8470#sha256:4f2a…
  std::string fingerprint{};
  std::string certificate_file{}, key_file{};  // what to show, where there is such a file
  std::string authority() const;               // host:port; of https without its usual port
  std::string origin() const;                  // http://127.0.0.1:8470
};
// http://127.0.0.1:8470, http://[::1]:8470, host:port, https://head:8470, https://head:8470#sha256:4f2a…
Result<Url> parse_url(std::string_view text);
// The same for servers that are not ours: without a fingerprint.
Result<Url> parse_web_url(std::string_view text);

// Keeps its connection between requests and dials again when the server closed it meanwhile. Not thread-safe.
// An unreachable server is ErrorCode::unavailable.
class Client {
 public:
  explicit Client(Url url, Headers headers_always = {});
  ~Client();

  struct Options {
    // Every field has a value, so that callers may name only those they want: {.body = json, .deadline = 5s}.
    std::string body{};
    std::string body_file{};  // sent instead of body, without reading it into memory
    Headers headers{};
    Duration deadline{0};  // for the whole exchange; 0: none
    // When this can be read (a pipe that a signal handler writes to), the request is given up.
    int cancel_fd = -1;
    // Set: the body of a 2xx answer is handed over piece by piece as it arrives; false stops and closes.
    std::function<bool(std::string_view piece)> on_piece{};
  };
  Result<Response> request(std::string_view method, const std::string& target, const Options& options);
  Result<Response> request(std::string_view method, const std::string& target) {
    return request(method, target, {});
  }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Dials and upgrades; `opened` gets the socket, or the error (for a refused upgrade: the status and the
// body's text).
void connect_websocket(Loop& loop, const Url& url, std::string target, Headers headers,
                       WebSocketCallbacks callbacks,
                       std::function<void(Result<std::shared_ptr<WebSocket>>)> opened);

}  // namespace slipway::net
