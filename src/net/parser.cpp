#include "net/parser.h"

#include <boost/beast/http/error.hpp>

namespace slipway::net {
namespace {

bool is_method_character(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-'; }

// A query's form: + is a space.
std::optional<std::string> decode_parameter(std::string_view text) {
  std::string spaced(text);
  for (char& c : spaced)
    if (c == '+') c = ' ';
  return percent_decode(spaced);
}

}  // namespace

std::size_t find_head_end(std::string_view bytes, std::size_t searched) {
  const std::size_t end = bytes.find("\r\n\r\n", searched > 3 ? searched - 3 : 0);
  return end == std::string_view::npos ? 0 : end + 4;
}

bool may_begin_request(std::string_view bytes) {
  if (bytes.empty() || bytes == "\r") return true;  // the first half of a blank line before the request
  constexpr std::size_t method_size_max = 32;
  const std::size_t line_end = bytes.find('\n');
  const std::string_view line = bytes.substr(0, line_end);
  const std::size_t space = line.find(' ');
  const std::string_view method = line.substr(0, space);
  if (method.size() > method_size_max || (space != std::string_view::npos && method.empty())) return false;
  if (line_end == std::string_view::npos) {
    // Still within the method, perhaps: a CR there is no better than any other control character.
    for (const char c : method)
      if (!is_method_character(c)) return false;
    return true;
  }
  return space != std::string_view::npos && (line.ends_with(" HTTP/1.1\r") || line.ends_with(" HTTP/1.0\r"));
}

bool split_target(Request& request) {
  std::string_view target = request.target;
  if (target.starts_with("http://")) {  // the absolute form, as proxies send it
    target.remove_prefix(7);
    target.remove_prefix(std::min(target.find('/'), target.size()));
  }
  if (!target.starts_with('/')) return target == "*";
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = target.substr(0, mark);
  target.remove_prefix(std::min(mark + 1, target.size()));
  while (!target.empty()) {
    const std::size_t end = std::min(target.find('&'), target.size());
    const std::string_view pair = target.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = decode_parameter(pair.substr(0, equals));
    auto value = decode_parameter(pair.substr(std::min(equals + 1, pair.size())));
    if (!name || !value) return false;
    if (!pair.empty()) request.query.emplace_back(std::move(*name), std::move(*value));
    target.remove_prefix(std::min(end + 1, target.size()));
  }
  return true;
}

template <bool is_request>
void MessageParser<is_request>::put_head(std::string_view head, error_code& error) {
  this->eager(false);
  const std::size_t used = this->put(asio::buffer(head), error);
  if (!error && (used != head.size() || !this->is_header_done())) error = http::error::bad_field;
  this->eager(true);
}

template <bool is_request>
void MessageParser<is_request>::put_body(std::string_view& bytes, error_code& error) {
  while (!bytes.empty() && !this->is_done()) {
    const std::size_t used = this->put(asio::buffer(bytes), error);
    bytes.remove_prefix(used);
    if (error == http::error::need_more) {
      error = {};
      // A chunk's header, or the trailer, is still coming; it has a bound like the head.
      if (bytes.size() > head_size_max) error = http::error::header_limit;
      return;
    }
    if (error) return;
  }
}

template <bool is_request>
void MessageParser<is_request>::on_request_impl(http::verb, string_view verb, string_view where, int version,
                                                error_code&) {
  method = verb;
  target = where;
  is_http_1_1 = version == 11;
}

template <bool is_request>
void MessageParser<is_request>::on_response_impl(int code, string_view, int version, error_code&) {
  status = code;
  is_http_1_1 = version == 11;
}

template <bool is_request>
void MessageParser<is_request>::on_field_impl(http::field, string_view name, string_view value, error_code&) {
  // A trailer comes after the body was parsed by its head; it must not change that head.
  if (!head_done_) headers.emplace_back(name, value);
}

template <bool is_request>
std::size_t MessageParser<is_request>::on_body_impl(string_view piece, error_code& error) {
  if (!sink({piece.data(), piece.size()})) error = http::error::body_limit;
  return piece.size();
}

template <bool is_request>
std::size_t MessageParser<is_request>::on_chunk_body_impl(std::uint64_t, string_view piece,
                                                          error_code& error) {
  return on_body_impl(piece, error);
}

template class MessageParser<true>;
template class MessageParser<false>;

}  // namespace slipway::net
