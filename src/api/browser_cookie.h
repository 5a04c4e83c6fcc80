#pragma once
// The cookie by which a browser shows its token. No script of a page can read it (HttpOnly), and no browser
// sends it along with a request that another site's page makes (SameSite).
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/http.h"

namespace slipway::api {

class BrowserCookie {
 public:
  static constexpr Duration good_for = std::chrono::hours(24 * 7);

  // `data`: the data folder. Cookies know no ports, so that services of one machine need names of their own.
  explicit BrowserCookie(const std::string& data);

  std::optional<std::string> token_of(const net::Request& request) const;
  // The values of Set-Cookie. `is_secure`: it is sent over TLS only.
  std::string set(const std::string& token, bool is_secure) const;
  std::string clear() const;

 private:
  std::string name_;
};

}  // namespace slipway::api
