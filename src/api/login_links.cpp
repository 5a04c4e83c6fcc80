#include "api/login_links.h"

#include <algorithm>

#include "base/random.h"
#include "base/sha256.h"

namespace slipway::api {

LoginLinks::Link LoginLinks::make(const std::string& secret, TimePoint now) {
  if (kept_.size() == kept_max) kept_.pop_front();
  Link link{random_hex(24), now + good_for};
  kept_.push_back({sha256_hex(link.token), secret, link.expires_at});
  return link;
}

std::optional<std::string> LoginLinks::take(const std::string& link_token, TimePoint now) {
  while (!kept_.empty() && kept_.front().expires_at <= now) kept_.pop_front();
  const auto found =
      std::find_if(kept_.begin(), kept_.end(),
                   [hash = sha256_hex(link_token)](const Kept& kept) { return kept.hash == hash; });
  if (found == kept_.end()) return std::nullopt;
  std::string secret = std::move(found->secret);
  kept_.erase(found);
  return secret;
}

}  // namespace slipway::api
