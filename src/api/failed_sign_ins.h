#pragma once
// How long whoever guesses has to wait: for each address and each user, a few failed sign-ins are free, then
// each doubles the wait, up to a minute. Pure but for what it remembers, which is bounded.
//
// It never stands in the way of a token that is known: only what has failed counts, and only guesses are
// asked to wait.
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "net/http.h"

namespace slipway::api {

class FailedSignIns {
 public:
  static constexpr std::uint32_t free_tries = 5;
  static constexpr Duration wait_max = std::chrono::seconds(60);
  static constexpr Duration forgotten_after = std::chrono::minutes(15);
  static constexpr std::size_t kept_max = 10'000;  // one more replaces the one that failed longest ago

  // Until `key` may try again; 0: now.
  Duration wait(const std::string& key, TimePoint now) const;
  // A try counts as failed when it begins, so that many at once are not free. `guess` that was among the last
  // ones of this key counts once: a program that was set up with a wrong token is not one that guesses.
  void begin(const std::string& key, TimePoint now, std::string_view guess = {});
  void succeeded(const std::string& key, TimePoint now);  // takes back what begin() counted
  void forget(const std::string& key);

 private:
  struct Failures {
    std::string key;
    std::uint32_t count = 0;
    TimePoint last{};
    TimePoint blocked_until{};
    std::deque<std::string> guesses{};
  };
  using Place = std::list<Failures>::iterator;
  Failures& put_first(const std::string& key, TimePoint now);

  std::list<Failures> all_;  // the one that failed last first
  std::unordered_map<std::string, Place> by_key_;
};

net::Response too_many_failures(Duration wait);  // 429, and when to try again

// Who an address stands for: an IPv4 address, or the /64 of an IPv6 address.
std::string peer_network(const std::string& address);

}  // namespace slipway::api
