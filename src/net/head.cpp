#include "net/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/status.hpp>
#include <ctime>

namespace slipway::net {
namespace {

// RFC 9110 §5.6.7, made once a second.
std::string_view date_now() {
  thread_local std::time_t made_for = -1;
  thread_local char text[30];
  const std::time_t now = std::time(nullptr);
  if (now != made_for) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    *fmt::format_to_n(text, sizeof text - 1, "{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days[parts.tm_wday],
                      parts.tm_mday, months[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                      parts.tm_sec)
         .out = '\0';
    made_for = now;
  }
  return text;
}

bool same(std::string_view a, std::string_view b) {
  return boost::beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

}  // namespace

bool allows_body(int status) { return status >= 200 && status != 204 && status != 304; }

void append_field(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text += ": ";
  text += one_line(value);
  text += "\r\n";
}

std::string one_line(std::string_view value) {
  std::string line(value);
  const auto breaks_out = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  std::replace_if(line.begin(), line.end(), breaks_out, ' ');
  return line;
}

bool is_framing_field(std::string_view name) {
  return same(name, "Content-Length") || same(name, "Transfer-Encoding") || same(name, "Connection");
}

bool asks_to_close(const Headers& headers) {
  const auto connection = find_header(headers, "Connection");
  return connection && same(*connection, "close");
}

std::string format_answer_head(const AnswerHead& head, const Headers& headers) {
  std::string text;
  text.reserve(256);
  const std::string_view reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(head.status));
  fmt::format_to(std::back_inserter(text), "HTTP/1.1 {} {}\r\n", head.status, reason);
  append_field(text, "Date", date_now());
  for (const auto& [name, value] : headers)
    if (!is_framing_field(name)) append_field(text, name, value);
  if (head.framing == Framing::length)
    append_field(text, "Content-Length", fmt::format_int(head.length).c_str());
  if (head.framing == Framing::chunked) append_field(text, "Transfer-Encoding", "chunked");
  if (!head.keep_alive) append_field(text, "Connection", "close");
  if (head.keep_alive && !head.is_http_1_1) append_field(text, "Connection", "keep-alive");
  text += "\r\n";
  return text;
}

}  // namespace slipway::net
