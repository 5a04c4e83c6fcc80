#pragma once
// The tokens as requests ask for them: by the hash of their secret. On the network's thread; notified of
// changes after each turn of the control loop that made some.
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "domain/records.h"

namespace slipway::api {

class TokenTable {
 public:
  void put(const TokenRecord& token);
  void remove(const std::string& id);
  // The address holds until the token is changed or removed.
  const TokenRecord* find_secret(std::string_view secret) const;
  const TokenRecord* find_hash(const std::string& hash) const;
  bool knows(const std::string& id) const { return hashes_.contains(id); }
  std::vector<TokenRecord> all() const;  // the oldest first

 private:
  std::unordered_map<std::string, TokenRecord> tokens_;  // by hash
  std::unordered_map<std::string, std::string> hashes_;  // by id
};

}  // namespace slipway::api
