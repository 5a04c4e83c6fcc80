#pragma once
// Feeds bytes to the HTTP parser as a connection does, whole and in pieces: where the network cuts a message
// must make no difference.
#include <string>
#include <string_view>

#include "net/parser.h"
#include "target.h"

namespace slipway::fuzz {

template <bool is_request>
struct Message {
  bool broken = false;
  bool done = false;
  std::string body;
  std::size_t left = 0;  // bytes after it, of the next message
  net::MessageParser<is_request> parser;
};

// Reads one message, its body in pieces of `piece` bytes. Nothing is read when there is no whole head.
template <bool is_request>
void read(Message<is_request>& message, std::string_view bytes, std::size_t piece) {
  const std::size_t head = net::find_head_end(bytes, 0);
  if (head == 0 || head > net::head_size_max) {
    message.broken = true;
    return;
  }
  net::error_code error;
  message.parser.sink = [&message](std::string_view part) {
    message.body += part;
    return true;
  };
  message.parser.put_head(bytes.substr(0, head), error);
  std::string pending;
  for (std::size_t at = head; !error && !message.parser.is_done() && at < bytes.size();) {
    const std::size_t size = std::min(piece, bytes.size() - at);
    pending += bytes.substr(at, size);
    at += size;
    std::string_view rest = pending;
    message.parser.put_body(rest, error);
    message.left = rest.size() + bytes.size() - at;
    pending = std::string(rest);
  }
  message.broken = static_cast<bool>(error);
  message.done = !error && message.parser.is_done();
}

template <bool is_request>
void check_cuts_do_not_matter(Message<is_request>& whole, std::string_view bytes) {
  read(whole, bytes, bytes.size() + 1);
  Message<is_request> pieces;
  read(pieces, bytes, 1);
  SLIPWAY_CHECK(whole.broken == pieces.broken);
  if (whole.broken) return;
  SLIPWAY_CHECK(whole.done == pieces.done);
  SLIPWAY_CHECK(whole.body == pieces.body);
  SLIPWAY_CHECK(!whole.done || whole.left == pieces.left);
  SLIPWAY_CHECK(whole.parser.headers == pieces.parser.headers);
}

}  // namespace slipway::fuzz
