#include "api/failed_sign_ins.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>

#include "api/router.h"

namespace slipway::api {
namespace {

constexpr std::size_t guesses_kept = 16;

Duration wait_after(std::uint32_t failures) {
  if (failures <= FailedSignIns::free_tries) return Duration(0);
  const std::uint32_t doubled = std::min<std::uint32_t>(failures - FailedSignIns::free_tries - 1, 10);
  return std::min<Duration>(std::chrono::seconds(1) * (1u << doubled), FailedSignIns::wait_max);
}

}  // namespace

Duration FailedSignIns::wait(const std::string& key, TimePoint now) const {
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return Duration(0);
  return std::max<Duration>(Duration(0), known->second->blocked_until - now);
}

FailedSignIns::Failures& FailedSignIns::put_first(const std::string& key, TimePoint now) {
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    all_.splice(all_.begin(), all_, known->second);
    if (now - all_.front().last > forgotten_after) all_.front() = {key};
  } else {
    if (all_.size() >= kept_max) {
      by_key_.erase(all_.back().key);
      all_.pop_back();
    }
    all_.push_front({key});
    by_key_[key] = all_.begin();
  }
  return all_.front();
}

void FailedSignIns::begin(const std::string& key, TimePoint now, std::string_view guess) {
  Failures& failures = put_first(key, now);
  failures.last = now;
  if (!guess.empty()) {
    const auto seen = std::find(failures.guesses.begin(), failures.guesses.end(), guess);
    if (seen != failures.guesses.end()) return;
    failures.guesses.emplace_back(guess);
    if (failures.guesses.size() > guesses_kept) failures.guesses.pop_front();
  }
  ++failures.count;
  failures.blocked_until = now + wait_after(failures.count);
}

void FailedSignIns::succeeded(const std::string& key, TimePoint now) {
  const auto known = by_key_.find(key);
  if (known == by_key_.end() || known->second->count == 0) return;
  --known->second->count;
  known->second->blocked_until = now;
}

void FailedSignIns::forget(const std::string& key) {
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return;
  all_.erase(known->second);
  by_key_.erase(known);
}

net::Response too_many_failures(Duration wait) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  net::Response response =
      problem_with(429, {ErrorCode::denied, fmt::format("too many failed sign-ins: wait {} s", seconds),
                         "tokens that are known are let in meanwhile"});
  response.headers.emplace_back("Retry-After", std::to_string(seconds));
  return response;
}

std::string peer_network(const std::string& address) {
  in6_addr v6{};
  if (::inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &v6) != 1) return address;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &v6.s6_addr[12], text, sizeof text);
    return text;
  }
  std::fill(v6.s6_addr + 8, v6.s6_addr + 16, std::uint8_t{0});
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, &v6, text, sizeof text);
  return std::string(text) + "/64";
}

}  // namespace slipway::api
