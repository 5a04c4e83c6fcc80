#pragma once
// Checkpoints in memory, for tests.
#include <map>
#include <string>
#include <vector>

#include "track/image.h"

namespace slipway::track {

class MemoryImage final : public Image {
 public:
  Result<std::uint64_t> load(
      const std::function<Result<void>(const EntityName&, std::string_view)>& row) override {
    for (const auto& [name, body] : rows)
      if (auto loaded = row(name, body); !loaded) return fail(loaded.error());
    return number;
  }
  Result<void> save(std::uint64_t through, const std::vector<Row>& changed) override {
    if (fails) return fail(ErrorCode::unavailable, "no space left on device");
    number = through;
    for (const Row& row : changed) {
      if (row.body)
        rows[row.name] = *row.body;
      else
        rows.erase(row.name);
    }
    return {};
  }
  std::map<EntityName, std::string> rows;
  std::uint64_t number = 0;
  bool fails = false;
};

}  // namespace slipway::track
