// JMESPath queries, parsed and applied to an answer of the service.
#include "jmespath/jmespath.h"

#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto query = jmespath::Query::parse(fuzz::text(data, size));
  fuzz::check_explained(query);
  if (!query) return 0;
  const auto result = query->apply(
      R"({"a":{"b":[1,2.5,-3]},"jobs":[{"name":"fit","nodes":2,"tags":["x"]},{"name":"tune","nodes":8,"tags":[]}],"n":null})");
  fuzz::check_explained(result);
  // What comes out is JSON again.
  SLIPWAY_CHECK(!result || jmespath::Query::parse("@")->apply(*result).has_value() || result->size() > 400);
  return 0;
}
