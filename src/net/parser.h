#pragma once
// Takes HTTP messages apart, for server and client: Beast's parser, filling our own values.
//
// The caller finds the head's end first (find_head_end) and puts the whole head at once; then body bytes as
// they come, which go to `sink`.
#include <boost/beast/http/basic_parser.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "net/asio.h"
#include "net/http.h"

namespace slipway::net {

namespace http = boost::beast::http;

inline constexpr std::size_t head_size_max = 32 * 1024;

// Bytes of the head with its empty line, or 0 when it is not whole yet. Looks only from `searched` on.
std::size_t find_head_end(std::string_view bytes, std::size_t searched);

// Whether these bytes can be the beginning of an HTTP/1 request, so that anything else is refused at once and
// not after the deadline for a head.
bool may_begin_request(std::string_view bytes);

// Path and query from the target; false when the target is broken.
bool split_target(Request& request);

template <bool is_request>
class MessageParser final : public http::basic_parser<is_request> {
 public:
  MessageParser() {
    this->header_limit(head_size_max + 1);
    this->body_limit(boost::none);  // bounded by who owns the sink, who knows whose body it is
  }

  // Puts the head without anything behind it.
  void put_head(std::string_view head, error_code& error);
  // Consumes what it can of a body and removes it from `bytes`. What stays is the beginning of a chunk's
  // header (wait for more), or belongs to the next message.
  void put_body(std::string_view& bytes, error_code& error);

  std::string method;  // requests
  std::string target;  // requests
  int status = 0;      // responses
  bool is_http_1_1 = true;
  Headers headers;
  // False refuses the body; put_body() then fails.
  std::function<bool(std::string_view)> sink;

 private:
  using string_view = boost::beast::string_view;
  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override;
  void on_response_impl(int, string_view, int, error_code&) override;
  void on_field_impl(http::field, string_view, string_view, error_code&) override;
  void on_header_impl(error_code&) override { head_done_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view, error_code&) override;
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view, error_code&) override;
  void on_finish_impl(error_code&) override {}

  bool head_done_ = false;
};

extern template class MessageParser<true>;
extern template class MessageParser<false>;

}  // namespace slipway::net
