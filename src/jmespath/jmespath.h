#pragma once
// JMESPath, the query language of `az --query`: JSON in, JSON out. Pure.
//
// Bounded: a query has at most 64 KiB and 256 levels, data at most 200 levels, and what a query makes of
// small data cannot grow without end: beyond 20 million steps or copied values it is refused. Faults name the
// character where they lie, counted from 1, and show the place.
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipway::jmespath {

struct Node;

class Query {  // cheap to copy: shares the parsed expression, which never changes
 public:
  static Result<Query> parse(std::string_view text);
  // The result as JSON, "null" where there is none. Error `invalid` when a function gets what it cannot take,
  // or `json` is none.
  Result<std::string> apply(std::string_view json) const;

 private:
  Query(std::string text, std::shared_ptr<const Node> root);
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace slipway::jmespath
