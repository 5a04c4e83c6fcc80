#pragma once
// JSONPath templates as kubectl has them, for -o jsonpath=TEMPLATE.
//
//   {.items[*].id}                                          values, with spaces between
//   {range .items[*]}{.id}{"\t"}{.state}{"\n"}{end}         once for each
//   {.items[?(@.state=="failed")].name}                     those that fit: == != < <= > >=, or just that it
//   is there
//   {.items[0].name} {.items[-1:].name} {..name} {.a['b c']}
//
// Texts are printed as they are, everything else as JSON. What is not there prints nothing.
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/value.h"

namespace slipway::cli {

class JsonPath {
 public:
  static Result<JsonPath> parse(std::string_view text);
  std::string format(const wire::Value& value) const;

 private:
  struct Part;
  explicit JsonPath(std::shared_ptr<const Part> root) : root_(std::move(root)) {}
  std::shared_ptr<const Part> root_;
  friend class JsonPathParser;
};

}  // namespace slipway::cli
