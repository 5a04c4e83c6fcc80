#pragma once
// Which names filters and orders may use, by what is searched. Pure.
#include <string>
#include <string_view>

#include "track/filter.h"

namespace slipway::track {

// A name as it was written: `params.lr`, `start_time`, metrics."val acc".
struct WrittenName {
  std::string entity;  // empty: none was written
  std::string key;
};

// For orders a few more attributes are known than for filters.
enum class NameUse : std::uint8_t { filter, order };
Result<Field> resolve_name(const WrittenName& name, Searched searched, NameUse use);

}  // namespace slipway::track
