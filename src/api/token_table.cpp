#include "api/token_table.h"

#include <algorithm>
#include <tuple>

#include "base/random.h"
#include "base/sha256.h"

namespace slipway::api {

NewSecret make_secret() {
  const std::string secret = "slipway_" + random_hex(24);
  return {"token_" + random_hex(4), secret, sha256_hex(secret)};
}

void TokenTable::put(const TokenRecord& token) {
  std::optional<TimePoint> last_used = token.last_used_at;
  if (const auto known = hashes_.find(token.id); known != hashes_.end())
    last_used = std::max(last_used, tokens_.at(known->second).last_used_at);
  remove(token.id);
  hashes_[token.id] = token.hash;
  tokens_[token.hash] = token;
  tokens_[token.hash].last_used_at = last_used;
}

void TokenTable::use(const std::string& id, TimePoint now) {
  const auto known = hashes_.find(id);
  if (known == hashes_.end()) return;
  tokens_.at(known->second).last_used_at = now;
  used_[id] = now;
}

void TokenTable::remove(const std::string& id) {
  const auto found = hashes_.find(id);
  if (found == hashes_.end()) return;
  tokens_.erase(found->second);
  hashes_.erase(found);
}

const TokenRecord* TokenTable::find_secret(std::string_view secret) const {
  return find_hash(sha256_hex(secret));
}

const TokenRecord* TokenTable::find_hash(const std::string& hash) const {
  const auto found = tokens_.find(hash);
  return found == tokens_.end() ? nullptr : &found->second;
}

std::vector<TokenRecord> TokenTable::all() const {
  std::vector<TokenRecord> tokens;
  tokens.reserve(tokens_.size());
  for (const auto& [hash, token] : tokens_) tokens.push_back(token);
  std::sort(tokens.begin(), tokens.end(), [](const TokenRecord& a, const TokenRecord& b) {
    return std::tie(a.created_at, a.id) < std::tie(b.created_at, b.id);
  });
  return tokens;
}

}  // namespace slipway::api
