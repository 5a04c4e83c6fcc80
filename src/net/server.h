#pragma once
// An HTTP/1.1 server on a Loop: keep-alive, bounded bodies and headers, deadlines for slow clients, streamed
// answers, files sent without a copy in memory, WebSockets.
//
// What it answers by itself: 400 for what is not HTTP, 408 for a client too slow to send its request, 413 for
// a body over its limit, 431 for headers over 32 KiB, 503 where connections or the memory for bodies are used
// up; then it closes the connection. When descriptors run out
// it stops accepting until one is free, and never spins. listen() raises the process's limit of descriptors
// and makes SIGPIPE harmless.
//
// Exchanges, streams and WebSockets may be kept longer than the server, and dropped at any time.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/tls_server.h"

namespace slipway::net {

// One side of a WebSocket. Messages are whole; sends are queued in order, and what is queued is sent before a
// close. Dropping it closes it.
class WebSocket {
 public:
  virtual ~WebSocket() = default;
  virtual void send_text(std::string message) = 0;
  virtual void send_binary(std::string message) = 0;
  virtual void close(std::string reason) = 0;  // closed is called soon after
  // Nothing more is read from the peer until resume(): what it sends waits in the socket's buffers, and then
  // the peer itself waits. A peer that is paused for 30 s is cut, as one from which nothing comes.
  virtual void pause() = 0;
  virtual void resume() = 0;
  virtual std::size_t queued_bytes() const = 0;
};

struct WebSocketCallbacks {
  std::function<void(std::string)> text{};
  std::function<void(std::string)> binary{};
  std::function<void(std::string why)> closed{};  // exactly once; nothing is called after it
};

// A response written piece by piece (chunked). Dropping it without finish() cuts the connection, so that the
// client can distinguish a broken answer from a whole one. Once the client is gone, pieces are dropped and
// `written` is not called.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void write(std::string piece, std::function<void()> written) = 0;  // one at a time
  virtual void finish() = 0;
  virtual void on_closed(std::function<void()> gone) = 0;  // the client went away; also called after an error
};

// One request and its answer. May be kept and answered later, from the loop's thread; answered exactly once.
// An exchange dropped without an answer gives 500.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  virtual void send(Response response) = 0;
  // The bytes [offset, offset + length) of the file as the body.
  virtual void send_file(int status, Headers headers, Fd file, std::uint64_t offset,
                         std::uint64_t length) = 0;
  virtual std::shared_ptr<Stream> start_stream(int status, Headers headers) = 0;
  virtual std::shared_ptr<WebSocket> accept_websocket(WebSocketCallbacks callbacks) = 0;
  virtual bool wants_websocket() const = 0;
  virtual void on_closed(std::function<void()> gone) = 0;  // the client went away before the answer
  // What the caller showed; see Server::cut_opened_with. Empty: nothing that could be taken back.
  virtual void opened_with(std::string /*token*/) {}
};

struct BodyPolicy {
  std::uint64_t size_max = 16u << 20;
  std::string spool_folder{};        // not empty: the body goes to a file there, not to memory
  std::optional<Response> refuse{};  // set: answered at once, the body is not read
};

struct ServerOptions {
  std::shared_ptr<TlsServer> tls{};  // absent: plain
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;              // 0: any free one
  Duration first_byte_deadline = 30s;  // of a new connection
  Duration header_deadline = 15s;      // for the request's head, from its first byte
  Duration body_stall_max = 15s;       // between two reads of a body
  double body_rate_min = 1024;         // bytes/s a body must keep up after body_rate_grace
  Duration body_rate_grace = 15s;      // from a body's beginning
  Duration idle_max = 5min;            // between two requests
  Duration answer_stall_max = 5min;    // a client that reads nothing of its answer; streams may wait
  // How long a client whose answer is written may continue sending before it is cut off. Long enough to let
  // one that was refused read why, for closing on unread bytes takes the answer from it.
  Duration linger_max = 2s;
  std::size_t websocket_message_max = 64u << 20;  // a node may report a hundred thousand ends at once
  std::size_t connections_max = 20'000;           // one more is answered 503 and closed
  // The same for those of one IPv4 address, or one IPv6 network of 64 bits: it leaves others some.
  std::size_t connections_per_address_max = 15'000;
  std::size_t body_memory_max = 32u << 20;  // of all bodies kept in memory; one more is answered 503
};

class Server {
 public:
  using Handler = std::function<void(std::shared_ptr<Exchange>)>;
  using Policy = std::function<BodyPolicy(const Request& head)>;  // asked for each request, before its body

  // Error `conflict` when the address is in use, naming it.
  static Result<std::unique_ptr<Server>> listen(Loop& loop, ServerOptions options, Policy policy,
                                                Handler handler);
  virtual ~Server() = default;
  virtual std::uint16_t port() const = 0;
  virtual void stop() = 0;  // closes the listener and every connection
  virtual std::size_t connections() const = 0;
  // Cuts the streams, WebSockets and answers under way of exchanges that were opened with it, and those that
  // read and are not answered yet.
  virtual void cut_opened_with(const std::string& token) = 0;
};

}  // namespace slipway::net
