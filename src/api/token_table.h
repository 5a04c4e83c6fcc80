#pragma once
// The tokens as requests ask for them: by the hash of their secret. On the network's thread; notified of
// changes after each turn of the control loop that made some. When they were last used is known here first.
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "domain/records.h"

namespace slipway::api {

// Of a new token: known once, in the answer that makes it. Only its hash is kept.
struct NewSecret {
  std::string id;
  std::string secret;
  std::string hash;
};
NewSecret make_secret();

class TokenTable {
 public:
  void put(const TokenRecord& token);
  void remove(const std::string& id);
  // The address holds until the token is changed or removed.
  const TokenRecord* find_secret(std::string_view secret) const;
  const TokenRecord* find_hash(const std::string& hash) const;
  void use(const std::string& id, TimePoint now);
  // Of those used since the last time this was asked.
  std::map<std::string, TimePoint> take_used() { return std::exchange(used_, {}); }
  bool knows(const std::string& id) const { return hashes_.contains(id); }
  std::vector<TokenRecord> all() const;  // the oldest first

 private:
  std::unordered_map<std::string, TokenRecord> tokens_;  // by hash
  std::unordered_map<std::string, std::string> hashes_;  // by id
  std::map<std::string, TimePoint> used_;                // by id
};

}  // namespace slipway::api
