#pragma once
// What a request says, in its query or in its body: one reader for both. The first problem is kept; getters
// give their default after it, so that handlers are straight lines and check once.
//
// As MLflow's server reads: whole numbers may come as texts, "NaN" and "Infinity" are numbers, unknown fields
// are ignored, a body may be JSON in a JSON text, and none is {}.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "track/values.h"
#include "wire/value.h"

namespace slipway::mlflow {

class Input {
 public:
  static Result<Input> of_query(const net::Request& request);
  static Result<Input> of_body(std::string_view body);

  bool has(std::string_view key) const;
  std::optional<std::string> text(std::string_view key);
  std::string text_or(std::string_view key, std::string otherwise) {
    return text(key).value_or(std::move(otherwise));
  }
  std::string required(std::string_view key);  // and not empty
  std::optional<std::int64_t> integer(std::string_view key);
  std::size_t count(std::string_view key, std::size_t otherwise, std::size_t most);  // at least 1
  double number(std::string_view key);                                               // required
  bool boolean(std::string_view key);
  std::vector<std::string> texts(std::string_view key);  // one that is alone is a list, too
  std::vector<Input> items(std::string_view key);        // objects of a list
  std::optional<Input> object(std::string_view key);
  std::vector<track::Pair> pairs(std::string_view key);  // {key, value} each

  // Of this, and of items that were given out and reported.
  const std::optional<Error>& problem() const { return problem_; }
  void report(const Input& item) {
    if (!problem_) problem_ = item.problem_;
  }
  void refuse(std::string what, std::string hint = {}) {
    if (!problem_) problem_ = Error{ErrorCode::invalid, std::move(what), std::move(hint)};
  }

 private:
  explicit Input(wire::Value value)
      : whole_(std::make_shared<const wire::Value>(std::move(value))), here_(whole_.get()) {}
  Input(std::shared_ptr<const wire::Value> whole, const wire::Value& here)
      : whole_(std::move(whole)), here_(&here) {}
  const wire::Value* find(std::string_view key) const;
  std::shared_ptr<const wire::Value> whole_;  // what was sent
  const wire::Value* here_;                   // the object in it that is read
  std::optional<Error> problem_;
};

}  // namespace slipway::mlflow
