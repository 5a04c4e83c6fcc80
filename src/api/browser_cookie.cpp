#include "api/browser_cookie.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/sha256.h"

namespace slipway::api {

BrowserCookie::BrowserCookie(const std::string& data) : name_("slipway_" + sha256_hex(data).substr(0, 12)) {}

std::optional<std::string> BrowserCookie::token_of(const net::Request& request) const {
  const auto header = request.header("Cookie");
  if (!header) return std::nullopt;
  std::string_view rest = *header;
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    const std::size_t equals = one.find('=');
    if (equals != one.npos && one.substr(0, equals) == name_) return std::string(one.substr(equals + 1));
  }
  return std::nullopt;
}

std::string BrowserCookie::set(const std::string& token, bool is_secure) const {
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}", name_, token,
                     std::chrono::duration_cast<std::chrono::seconds>(good_for).count(),
                     is_secure ? "; Secure" : "");
}

std::string BrowserCookie::clear() const { return name_ + "=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"; }

}  // namespace slipway::api
