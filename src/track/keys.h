#pragma once
// Names of metrics, parameters and tags as numbers: ten thousand runs log the same few names.
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace slipway::track {

using KeyId = std::uint32_t;

class Keys {
 public:
  KeyId put(std::string_view name) {
    if (const auto at = ids_.find(name); at != ids_.end()) return at->second;
    names_.emplace_back(name);
    const auto id = static_cast<KeyId>(names_.size() - 1);
    ids_.emplace(names_.back(), id);
    return id;
  }
  std::optional<KeyId> find(std::string_view name) const {
    const auto at = ids_.find(name);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
  }
  const std::string& name(KeyId id) const { return names_[id]; }

 private:
  std::deque<std::string> names_;  // they stay where they are
  std::unordered_map<std::string_view, KeyId> ids_;
};

}  // namespace slipway::track
