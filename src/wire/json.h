#pragma once
// JSON with its keys in the order they were written, so that answers read well. Included in .cpp files only.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "domain/job.h"

namespace slipway::wire {
using Json = nlohmann::ordered_json;

inline Json cores_json(Millicores cores) {  // 2, or 0.5
  return cores % 1000 == 0 ? Json(cores / 1000) : Json(cores / 1000.0);
}

// A whole number that fits. get<> takes any number: of one that is too large nobody knows what it makes.
template <class Integer>
Integer integer(const Json& json) {
  if (json.is_number_unsigned()) {
    if (const auto number = json.get<std::uint64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  } else if (json.is_number_integer()) {
    if (const auto number = json.get<std::int64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  }
  throw Json::type_error::create(302, "a whole number is missing, or too large", &json);
}

// Whatever bytes a text has: what is not UTF-8 is replaced, as readers must be able to read it.
inline std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
}  // namespace slipway::wire
