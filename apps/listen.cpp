#include "apps/listen.h"

#include <fmt/format.h>

#include <charconv>

#include "agent/machine.h"
#include "net/http.h"

namespace slipway {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

Result<Listen> parse_listen(const std::string& given) {
  constexpr std::string_view scheme = "https://";
  Listen listen;
  listen.with_tls = given.starts_with(scheme);
  std::string text = listen.with_tls ? given.substr(scheme.size()) : given;
  if (const std::size_t question = text.find("?cert="); question != std::string::npos) {
    const std::size_t key = text.find("&key=", question);
    const auto file = [&](std::size_t begin, std::size_t end) {
      return net::percent_decode(text.substr(begin, end - begin)).value_or("");
    };
    if (key != std::string::npos) {
      listen.certificate = file(question + 6, key);
      listen.key = file(key + 5, text.size());
    }
    text.resize(question);
  }
  const std::size_t colon = text.rfind(':');
  listen.host = text.substr(0, colon);
  if (listen.host.size() > 2 && listen.host.front() == '[' && listen.host.back() == ']')
    listen.host = listen.host.substr(1, listen.host.size() - 2);
  const char* end = text.data() + text.size();
  if (colon != std::string::npos && !listen.host.empty())
    if (const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, listen.port);
        error == std::errc{} && stop == end)
      return listen;
  return fail(ErrorCode::invalid, fmt::format("--listen {} is not ADDRESS:PORT", text),
              "write it like 127.0.0.1:8470");
}

std::string own_address() {
  const std::string address = agent::address_towards("198.51.100.1", 9);
  return address.empty() || is_loopback(address) ? agent::host_name() : address;
}

}  // namespace slipway
