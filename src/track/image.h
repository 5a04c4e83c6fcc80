#pragma once
// Where checkpoints are kept: a row for each entity, and the number of the last record of the journal that
// the rows contain. The port; src/store has it over SQLite.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "track/state.h"

namespace slipway::track {

class Image {
 public:
  struct Row {
    EntityName name;
    std::optional<std::string> body;  // nullopt: it is no longer there
  };
  virtual ~Image() = default;
  // The number; 0 for an empty image. Runs come after what they belong to, in no other order.
  virtual Result<std::uint64_t> load(
      const std::function<Result<void>(const EntityName& name, std::string_view body)>& row) = 0;
  // All of it or nothing, and durable.
  virtual Result<void> save(std::uint64_t number, const std::vector<Row>& rows) = 0;
};

}  // namespace slipway::track
