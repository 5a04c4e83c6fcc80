#pragma once
// A parsed query as a tree, and the values it works on. Private to this folder; included in .cpp files only.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jmespath/json.h"

namespace slipway::jmespath {

constexpr std::size_t text_size_max = 64 << 10;
constexpr std::uint32_t depth_max = 256;
constexpr int nesting_max = 200;
constexpr std::uint64_t work_max = 20'000'000;

enum class Kind : std::uint8_t {
  current,            // @, and where an expression begins
  field,              // text
  index,              // child[number]
  slice,              // child[start:stop:step]
  chain,              // left.right, left | right: the right one sees what the left one gives
  list_projection,    // right for each item of left
  object_projection,  // right for each value of left
  filter_projection,  // right for each item of left for which the third child holds
  flatten,
  either,  // ||
  both,    // &&
  negation,
  comparison,  // text is the operator
  literal,
  list,        // [a, b]
  object,      // {names[0]: a}
  call,        // text(children)
  expression,  // &a
};

struct Node {
  Kind kind = Kind::current;
  std::size_t at = 0;  // byte of the text
  std::uint32_t depth = 1;
  std::string text;
  std::vector<std::string> names;
  std::vector<Node> children;
  std::optional<std::int64_t> start, stop, step;
  Json value;
};

// The query with a mark under the place, and what is wrong there.
Error query_error_at(std::string_view text, std::size_t at, const std::string& what, std::string hint = {});
// How deep brackets nest, at most: what is deeper is not handed to code that recurses.
int nesting_of(std::string_view json);

Result<Node> parse(std::string_view text);

// What is wrong, and where; query_error_at makes it readable.
struct QueryError {
  std::size_t at = 0;
  std::string what;
};
Json evaluate(const Node& root, const Json& data);  // throws QueryError

// Counts what a query does, so that it ends. (evaluate.cpp)
class Work {
 public:
  Json evaluate(const Node& node, const Json& data);
  void charge(const Node& node, const Json& value);

 private:
  Json project(const Node& node, const Json& data);
  Json make(const Node& node, const Json& data);
  void spend(const Node& node, std::uint64_t amount);
  std::uint64_t spent_ = 0;
};

bool is_true(const Json& value);
bool equal(const Json& one, const Json& other);
// (functions.cpp)
bool is_function(std::string_view name);
std::vector<std::string> function_names();
Json call(Work& work, const Node& node, const Json& data);

}  // namespace slipway::jmespath
