#include "compat/mlflow/input.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "wire/document.h"

namespace slipway::mlflow {
namespace {

std::string missing(std::string_view key) {
  return fmt::format("Missing value for required parameter '{}'.", key);
}
std::string invalid(std::string_view key, std::string_view given, std::string_view wanted) {
  return fmt::format("Invalid value {} for parameter '{}' supplied: it is {}.", given.substr(0, 100), key,
                     wanted);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && !text.empty()) return number;
  // 3.0 and 1e3 are whole numbers, too.
  double wide = 0;
  const auto [stop, wrong] = std::from_chars(text.data(), text.data() + text.size(), wide);
  if (wrong != std::errc{} || stop != text.data() + text.size() || wide != std::trunc(wide) ||
      std::abs(wide) > 9007199254740992.0)
    return std::nullopt;
  return static_cast<std::int64_t>(wide);
}

std::optional<double> any_number(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  double number = 0;
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range)  // too large, or too near to 0
    return std::strtod(std::string(text).c_str(), nullptr);
  if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;  // "inf" and "nan" are not in JSON
  return number;
}

}  // namespace

Result<Input> Input::of_query(const net::Request& request) {
  wire::Value value = wire::Value::map();
  for (const auto& [key, text] : request.query) {
    wire::Value& field = value[key];
    if (!field.is_list()) field = wire::Value::list();
    field.items.emplace_back(text);
  }
  return Input(std::move(value));
}

Result<Input> Input::of_body(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return Input(wire::Value::map());
  auto value = wire::parse_json(body, "the request");
  if (value && value->is_string()) value = wire::parse_json(value->text, "the request");
  if (!value) return fail(ErrorCode::invalid, value.error().what, value.error().hint);
  if (value->is_null()) return Input(wire::Value::map());
  if (!value->is_map())
    return fail(ErrorCode::invalid,
                fmt::format("the request is {}, not a JSON object", wire::describe(value->kind)));
  return Input(std::move(*value));
}

const wire::Value* Input::find(std::string_view key) const {
  const wire::Value* found = here_->find(key);
  return found && !found->is_null() ? found : nullptr;
}

bool Input::has(std::string_view key) const { return find(key) != nullptr; }

std::optional<std::string> Input::text(std::string_view key) {
  const wire::Value* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_list() && value->items.size() == 1) value = &value->items[0];  // of a query
  if (value->is_list() || value->is_map()) {
    refuse(invalid(key, wire::describe(value->kind), "a text"));
    return std::nullopt;
  }
  return value->text;
}

std::string Input::required(std::string_view key) {
  auto value = text(key);
  if (!value || value->empty()) refuse(missing(key));
  return value.value_or("");
}

std::optional<std::int64_t> Input::integer(std::string_view key) {
  const auto value = text(key);
  if (!value) return std::nullopt;
  const auto number = whole_number(*value);
  if (!number) refuse(invalid(key, *value, "a whole number"));
  return number;
}

std::size_t Input::count(std::string_view key, std::size_t otherwise, std::size_t most) {
  const auto number = integer(key);
  if (!number) return otherwise;
  if (*number < 1 || *number > static_cast<std::int64_t>(most)) {
    refuse(invalid(key, std::to_string(*number), fmt::format("a number from 1 to {}", most)));
    return otherwise;
  }
  return static_cast<std::size_t>(*number);
}

double Input::number(std::string_view key) {
  const wire::Value* value = find(key);
  if (!value) {
    refuse(missing(key));
    return 0;
  }
  const bool may_be = value->is_number() || value->is_string();
  const auto number = may_be ? any_number(value->text) : std::nullopt;
  if (!number) refuse(invalid(key, value->text, "a number"));
  return number.value_or(0);
}

bool Input::boolean(std::string_view key) {
  const auto value = text(key);
  if (!value) return false;
  const bool is_true = *value == "true" || *value == "True" || *value == "TRUE";
  const bool is_false = *value == "false" || *value == "False" || *value == "FALSE";
  if (!is_true && !is_false) refuse(invalid(key, *value, "true or false"));
  return is_true;
}

std::vector<std::string> Input::texts(std::string_view key) {
  std::vector<std::string> all;
  const wire::Value* value = find(key);
  if (!value) return all;
  if (!value->is_list()) {
    if (auto one = text(key)) all.push_back(std::move(*one));
    return all;
  }
  for (const wire::Value& item : value->items) {
    if (item.is_list() || item.is_map() || item.is_null())
      refuse(invalid(key, wire::describe(item.kind), "a list of texts"));
    all.push_back(item.text);
  }
  return all;
}

std::vector<Input> Input::items(std::string_view key) {
  std::vector<Input> all;
  const wire::Value* value = find(key);
  if (!value) return all;
  if (!value->is_list()) {
    refuse(invalid(key, wire::describe(value->kind), "a list"));
    return all;
  }
  all.reserve(value->items.size());
  for (const wire::Value& item : value->items) {
    if (!item.is_map()) {
      refuse(invalid(key, wire::describe(item.kind), "a list of objects"));
      return {};
    }
    all.push_back(Input(whole_, item));
  }
  return all;
}

std::optional<Input> Input::object(std::string_view key) {
  const wire::Value* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_map()) return Input(whole_, *value);
  refuse(invalid(key, wire::describe(value->kind), "an object"));
  return std::nullopt;
}

std::vector<track::Pair> Input::pairs(std::string_view key) {
  std::vector<track::Pair> all;
  for (Input& item : items(key)) {
    track::Pair pair;
    pair.key = item.required("key");
    pair.value = item.text_or("value", "");
    report(item);
    all.push_back(std::move(pair));
  }
  return all;
}

}  // namespace slipway::mlflow
