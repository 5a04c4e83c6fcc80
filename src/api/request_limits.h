#pragma once
// Requests a second of each user and workspace that has a quota of them: a token bucket each, as large as
// what comes in two seconds. On the network's thread.
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "domain/quota.h"

namespace slipway::api {

class RequestLimits {
 public:
  void change(const QuotaRecord& quota);  // without limits: gone
  // Takes one request, or says after how long it may be tried again.
  std::optional<Duration> take(const std::string& workspace, const std::string& user, TimePoint now);
  std::optional<std::uint64_t> limit_of(const QuotaKey& key) const;

 private:
  struct Bucket {
    double tokens = 0;
    TimePoint at{};
  };
  std::optional<Duration> wait_of(const QuotaKey& key, TimePoint now);

  std::map<QuotaKey, std::uint64_t> limits_;
  std::map<QuotaKey, Bucket> buckets_;  // of those that have a limit
};

}  // namespace slipway::api
