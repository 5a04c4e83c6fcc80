#pragma once
// A YAML or JSON text as a tree that remembers its lines, and a reader that explains what does not fit.
//
// Bounded: at most 64 levels and 4 million values, aliases included, so that no small text can become a large
// tree.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/result.h"
#include "wire/value.h"

namespace slipway::wire {

// `name` is what messages call the text: the file's name, or "the request".
Result<Value> parse_yaml(std::string_view text, std::string_view name);
Result<Value> parse_json(std::string_view text, std::string_view name);

// "job.yaml line 3, column 5: ", as messages begin; what is 0 is left out.
std::string place_in(std::string_view document, int line, int column);

// An error that begins with a place in `text`, with that line and a caret under the column.
Error with_caret(Error error, std::string_view text, std::string_view name);

// Sets one value by a dotted path: priority=5, environment.RATE=0.1, tasks.gang.nodes=4 (an item of a list by
// its `name` or its number). The value is read as YAML.
Result<void> set_value(Value& root, std::string_view setting);

// Reads the fields of one map. The first problem is kept; every getter after it gives its default, so that
// readers are straight lines and check once, with finish().
class FieldReader {
 public:
  FieldReader(const Value& map, std::string document, std::string path);

  bool has(std::string_view key);
  std::string text(std::string_view key, std::string otherwise = {});
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high, std::int64_t otherwise);
  double number(std::string_view key, double low, double high, double otherwise);
  bool boolean(std::string_view key, bool otherwise);
  Bytes bytes(std::string_view key, Bytes otherwise);
  Duration duration(std::string_view key, Duration otherwise);
  // A list of scalars; a lone scalar counts as a list of one.
  std::vector<std::string> texts(std::string_view key);
  std::vector<std::pair<std::string, std::string>> text_map(std::string_view key);
  // The raw value, for what the getters above do not cover; nullptr when absent or null.
  const Value* value(std::string_view key);

  void problem(const Value& at, std::string what, std::string hint);
  void problem(Error placed);  // of a reader of a map inside, which has said where
  void problem_at_key(const Value& at, std::string what, std::string hint);
  // A key that belongs to another map: it is refused, and the hint says where it goes.
  void misplaced(std::string_view key, std::string hint);
  // Unknown keys are found here, by what was asked for before.
  Result<void> finish();

  const std::string& document() const { return document_; }
  const std::string& path() const { return path_; }
  std::string path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }

 private:
  void problem_at(int line, int column, std::string what, std::string hint);
  void expected(std::string_view key, const Value& at, std::string_view what, std::string hint = {});

  const Value& map_;
  std::string document_;
  std::string path_;
  std::vector<std::string> asked_;
  std::optional<Error> problem_;
};

}  // namespace slipway::wire
