#pragma once
// What a YAML or JSON text may have, and errors that show where in it something is wrong. Included by the
// files of document.h only.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace slipway::wire {

inline constexpr std::size_t depth_max = 64;
inline constexpr std::size_t fields_max = 10'000;  // of one map: keys are compared one by one

inline Error invalid(std::string what, std::string hint = {}) {
  return Error{ErrorCode::invalid, std::move(what), std::move(hint)};
}

// The line of the text and, under its column, a caret; nothing where the text has no such line.
std::string marked_line(std::string_view text, int line, int column);

class Bounds {  // counts what is built, across aliases
 public:
  Bounds(std::string_view name, std::size_t values) : name_(name), values_max_(values) {}

  Result<void> enter(std::size_t depth) {
    if (depth > depth_max)
      return fail(invalid(fmt::format("{} is nested more than {} levels deep", name_, depth_max)));
    if (++count_ > values_max_)
      return fail(invalid(fmt::format("{} has more than {} values", name_, values_max_)));
    return {};
  }
  Error too_many_fields() const {
    return invalid(fmt::format("{} has a map with more than {} keys", name_, fields_max));
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::size_t values_max_;
  std::size_t count_ = 0;
};

}  // namespace slipway::wire
