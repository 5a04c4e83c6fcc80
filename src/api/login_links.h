#pragma once
// Links by which a browser signs in once, with the token of who asked for the link. They are kept in memory
// only: a service that starts again knows none of those before.
#include <deque>
#include <optional>
#include <string>

#include "base/clock.h"

namespace slipway::api {

class LoginLinks {
 public:
  static constexpr Duration good_for = std::chrono::minutes(5);
  static constexpr std::size_t kept_max = 100;  // one more replaces the oldest

  struct Link {
    std::string token;  // of the link: good once
    TimePoint expires_at{};
  };
  Link make(const std::string& secret, TimePoint now);
  // The secret it was made with; the link is used up then.
  std::optional<std::string> take(const std::string& link_token, TimePoint now);

 private:
  struct Kept {
    std::string hash;
    std::string secret;
    TimePoint expires_at{};
  };
  std::deque<Kept> kept_;  // the oldest first
};

}  // namespace slipway::api
