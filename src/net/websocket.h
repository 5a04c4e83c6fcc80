#pragma once
// A WebSocket of either side, on Beast. Alive while it is open, whoever holds its handle; dropping the handle
// closes it.
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/channel.h"
#include "net/loop_impl.h"
#include "net/server.h"

namespace slipway::net {

namespace websocket = boost::beast::websocket;

class WebSocketSession : public std::enable_shared_from_this<WebSocketSession> {
 public:
  using Socket = websocket::stream<Channel, false>;  // false: no compression

  WebSocketSession(Loop::Impl& loop, Channel channel, WebSocketCallbacks callbacks);

  // What the user holds.
  std::shared_ptr<WebSocket> make_handle();

  // Server: answers the request with an upgrade on this socket. `owner` is kept until the end.
  void accept(Channel channel, const Request& request, std::size_t message_max, std::shared_ptr<void> owner);
  // Client: the socket, connected and upgraded by the caller with socket().
  Socket& socket() { return *socket_; }
  void opened();

  void send(std::string message, bool is_binary);
  void close(std::string reason);  // after what is queued was sent
  void abort(std::string why);     // at once
  void discard();                  // at once, and without a word to the callbacks
  void pause() { paused_ = true; }
  void resume();
  std::size_t queued_bytes() const { return queued_bytes_; }
  bool loop_is_closing() const { return loop_.closing; }

 private:
  struct Message {
    std::string text;
    bool is_binary;
  };
  void read();
  void read_more();  // unless it is paused
  void write_next();
  void send_close();

  Loop::Impl& loop_;
  std::optional<Socket> socket_;
  WebSocketCallbacks callbacks_;
  std::string incoming_;
  std::optional<asio::dynamic_string_buffer<char, std::char_traits<char>, std::allocator<char>>> buffer_;
  std::deque<Message> queue_;
  std::size_t queued_bytes_ = 0;
  std::string close_reason_;
  std::optional<SteadyTimer> close_timer_;
  std::shared_ptr<void> owner_;
  bool open_ = false;
  bool writing_ = false;
  bool closing_ = false;
  bool ended_ = false;
  bool paused_ = false;
  bool read_is_due_ = false;  // what was read has been taken, and the session was paused then
};

}  // namespace slipway::net
