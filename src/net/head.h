#pragma once
// Writes the heads of HTTP messages.
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http.h"

namespace slipway::net {

enum class Framing : std::uint8_t {
  length,       // Content-Length
  chunked,      // Transfer-Encoding: chunked
  until_close,  // neither: the body ends with the connection
  none,         // the status allows no body
};

struct AnswerHead {
  int status = 200;
  Framing framing = Framing::length;
  std::uint64_t length = 0;
  bool keep_alive = true;
  bool is_http_1_1 = true;
};

bool allows_body(int status);
// Fields that say how the message is framed are net's own and left out of `headers`.
std::string format_answer_head(const AnswerHead& head, const Headers& headers);
// "name: value\r\n"; line breaks inside the value, which would end the field, become spaces.
void append_field(std::string& text, std::string_view name, std::string_view value);
std::string one_line(std::string_view value);
bool is_framing_field(std::string_view name);
bool asks_to_close(const Headers& headers);

}  // namespace slipway::net
