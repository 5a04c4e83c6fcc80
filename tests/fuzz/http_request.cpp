// Requests as a server gets them: head, target, range and body.
#include "http_message.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text(data, size);
  if (bytes.size() > 16 * 1024) return 0;  // one byte at a time would take long and find nothing more
  fuzz::Message<true> message;
  fuzz::check_cuts_do_not_matter(message, bytes);
  if (message.broken) return 0;
  // What parses was not refused early, unless for a method no one ever heard of.
  if (message.parser.method.size() <= 32) SLIPWAY_CHECK(net::may_begin_request(bytes));

  net::Request request;
  request.target = message.parser.target;
  if (net::split_target(request)) {
    if (const auto parts = net::split_path(request.path))
      for (const std::string& part : *parts) SLIPWAY_CHECK(part.find('\0') == std::string::npos);
  }
  for (const auto& [name, value] : message.parser.headers) {
    SLIPWAY_CHECK(net::find_header(message.parser.headers, name).has_value());
    constexpr std::uint64_t length = 1000;
    if (const auto range = net::parse_range(value, length); range && *range)
      SLIPWAY_CHECK((*range)->first <= (*range)->last && (*range)->last < length);
  }
  return 0;
}
