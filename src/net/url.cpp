#include <fmt/format.h>

#include <charconv>

#include "net/client.h"

namespace slipway::net {

std::string Url::authority() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  if (is_secure && port == 443) return is_ipv6 ? fmt::format("[{}]", host) : host;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string Url::origin() const { return fmt::format("{}://{}", is_secure ? "https" : "http", authority()); }

Result<Url> parse_url(std::string_view text) {
  constexpr std::string_view mark = "#sha256:";
  constexpr std::size_t digits = 64;
  const std::size_t at = text.find('#');
  auto url = parse_web_url(text.substr(0, at));
  if (!url || at == std::string_view::npos) return url;
  const std::string_view pin = text.substr(at);
  const bool is_pin = pin.starts_with(mark) && pin.size() == mark.size() + digits &&
                      pin.find_first_not_of("0123456789abcdef", mark.size()) == std::string_view::npos;
  if (!is_pin || !url->is_secure)
    return fail(
        ErrorCode::invalid,
        fmt::format("'{}' is not an address of a service: {}", text,
                    is_pin ? "only https has a fingerprint" : "what follows '#' is not a fingerprint"),
        "write it like https://head:8470#sha256:4f2a… with 64 digits");
  url->fingerprint = pin.substr(mark.size());
  return url;
}

Result<Url> parse_web_url(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid, fmt::format("'{}' is not an address of a service: {}", text, why),
                "write it like http://127.0.0.1:8470");
  };
  std::string_view rest = text;
  Url url;
  if (const std::size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    url.is_secure = rest.substr(0, scheme) == "https";
    if (!url.is_secure && rest.substr(0, scheme) != "http")
      return refuse(fmt::format("{} is not supported, only http and https", rest.substr(0, scheme)));
    rest.remove_prefix(scheme + 3);
  }
  if (url.is_secure) url.port = 443;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  std::string_view authority = rest.substr(0, slash);
  for (const char c : rest)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == '?' || c == '#' || c == '@')
      return refuse(fmt::format("it has the character {:#04x}", static_cast<unsigned char>(c)));

  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse("a ']' is missing");
    url.host = authority.substr(1, end - 1);
    authority.remove_prefix(end + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    authority.remove_prefix(colon);
  }
  if (url.host.empty()) return refuse("there is no host");
  if (authority.empty()) return url;
  if (authority.front() != ':') return refuse("a ':' should follow the host");
  authority.remove_prefix(1);
  const auto [end, error] = std::from_chars(authority.data(), authority.data() + authority.size(), url.port);
  if (error != std::errc{} || end != authority.data() + authority.size() || url.port == 0)
    return refuse(fmt::format("'{}' is not a port", authority));
  return url;
}

}  // namespace slipway::net
