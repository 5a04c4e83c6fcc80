#include "api/request_limits.h"

#include <algorithm>

namespace slipway::api {
namespace {

constexpr double burst_seconds = 2;

}  // namespace

void RequestLimits::change(const QuotaRecord& quota) {
  if (const auto limit = quota.limits[QuotaKind::requests])
    limits_[quota.key] = *limit;
  else
    limits_.erase(quota.key);
  buckets_.clear();  // whoever had none left begins anew
}

std::optional<std::uint64_t> RequestLimits::limit_of(const QuotaKey& key) const {
  for (const QuotaKey& one : {key, QuotaKey{key.workspace, std::string(every_user)}}) {
    if (const auto found = limits_.find(one); found != limits_.end()) return found->second;
    if (key.user.empty()) break;
  }
  return std::nullopt;
}

// Fills the bucket, and says how long it takes until it has a whole request.
std::optional<Duration> RequestLimits::wait_of(const QuotaKey& key, TimePoint now) {
  const auto limit = limit_of(key);
  if (!limit) return std::nullopt;
  const auto rate = static_cast<double>(*limit);
  const auto [found, is_new] = buckets_.try_emplace(key, Bucket{std::max(1.0, rate * burst_seconds), now});
  Bucket& bucket = found->second;
  const double passed = std::max(0.0, seconds(now - bucket.at));
  bucket.tokens = std::min(std::max(1.0, rate * burst_seconds), bucket.tokens + passed * rate);
  bucket.at = now;
  if (bucket.tokens >= 1) return std::nullopt;
  return Duration(static_cast<Duration::rep>((1 - bucket.tokens) / rate * 1'000'000) + 1);
}

std::optional<Duration> RequestLimits::take(const std::string& workspace, const std::string& user,
                                            TimePoint now) {
  if (limits_.empty()) return std::nullopt;
  const QuotaKey own{workspace, user}, all{workspace, {}};
  const auto wait = std::max(wait_of(own, now), wait_of(all, now));  // none is less than any
  if (wait) return wait;
  for (const QuotaKey& key : {own, all})
    if (const auto bucket = buckets_.find(key); bucket != buckets_.end()) bucket->second.tokens -= 1;
  return std::nullopt;
}

}  // namespace slipway::api
