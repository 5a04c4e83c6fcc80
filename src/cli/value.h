#pragma once
// An answer of the service, read forgivingly: what is absent, null or of another type than asked for reads as
// empty, because service and command line may be of different versions.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace slipway::cli {

class Value {  // cheap to copy: a view into a shared, immutable document
 public:
  Value();                                                   // null
  static std::optional<Value> parse(std::string_view json);  // nullopt when it is no JSON

  bool is_null() const;
  Value at(std::string_view key) const;  // null when absent
  std::vector<Value> items() const;      // of a list; empty for anything else
  std::vector<Value> items(std::string_view key) const { return at(key).items(); }
  std::vector<std::string> keys() const;

  std::string text() const;  // a text as it is; numbers and booleans as they are written
  std::string text(std::string_view key) const { return at(key).text(); }
  std::optional<double> number() const;
  std::optional<double> number(std::string_view key) const { return at(key).number(); }
  std::uint64_t count(std::string_view key) const;  // 0 when absent
  bool is_true(std::string_view key) const;
  std::optional<TimePoint> time(std::string_view key) const;

  std::string format() const;   // for people: indented, without a newline at the end
  std::string compact() const;  // for programs: on one line

 private:
  struct Document;
  std::shared_ptr<const Document> document_;
  const void* node_;
};

}  // namespace slipway::cli
