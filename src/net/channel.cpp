#include "net/channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string_view>

namespace slipway::net {
namespace {

// To one who speaks HTTP where TLS is spoken.
constexpr std::string_view not_plain =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 47\r\n"
    "Connection: close\r\n\r\nthis port speaks TLS: ask with https, not http\n";

}  // namespace

std::size_t Channel::settle(const TlsTransfer& transfer, bool& waits_to_write, error_code& error) {
  error = {};
  switch (transfer.moved) {
    case Moved::some: return transfer.bytes;
    case Moved::nothing:
      waits_to_write = transfer.waits_to_write;
      error = asio::error::would_block;
      return 0;
    case Moved::ended: error = asio::error::eof; return 0;
    case Moved::broken: break;
  }
  const int system_error = errno;
  problem_ = explain(ssl_.get(), system_error);
  if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST) {
    error_code ignored;
    socket_.write_some(asio::buffer(not_plain), ignored);
  }
  forget_errors();
  error = error_code(system_error, boost::system::system_category());
  return 0;
}

void Channel::forget_errors() { ERR_clear_error(); }

void teardown(boost::beast::role_type role, Channel& channel, error_code& error) {
  channel.say_farewell();
  boost::beast::websocket::teardown(role, channel.socket(), error);
}

void beast_close_socket(Channel& channel) {
  error_code error;
  channel.close(error);  // the descriptor is gone whatever it says
}

}  // namespace slipway::net
