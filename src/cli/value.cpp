#include "cli/value.h"

#include "wire/json.h"

namespace slipway::cli {

using wire::Json;

struct Value::Document {
  Json root;
};

namespace {
const Json* null_node() {
  static const Json node;
  return &node;
}
const Json& as_json(const void* node) { return *static_cast<const Json*>(node); }
}  // namespace

Value::Value() : node_(null_node()) {}

std::optional<Value> Value::parse(std::string_view json) {
  auto document = std::make_shared<Document>();
  document->root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (document->root.is_discarded()) return std::nullopt;
  Value value;
  value.node_ = &document->root;
  value.document_ = std::move(document);
  return value;
}

bool Value::is_null() const { return as_json(node_).is_null(); }

Value Value::at(std::string_view key) const {
  const Json& node = as_json(node_);
  Value value;
  if (!node.is_object()) return value;
  if (const auto found = node.find(std::string(key)); found != node.end()) {
    value.document_ = document_;
    value.node_ = &*found;
  }
  return value;
}

std::vector<Value> Value::items() const {
  std::vector<Value> values;
  const Json& node = as_json(node_);
  if (!node.is_array()) return values;
  for (const Json& item : node) {
    Value& value = values.emplace_back();
    value.document_ = document_;
    value.node_ = &item;
  }
  return values;
}

std::vector<std::string> Value::keys() const {
  std::vector<std::string> keys;
  const Json& node = as_json(node_);
  if (node.is_object())
    for (const auto& [key, unused] : node.items()) keys.push_back(key);
  return keys;
}

std::string Value::text() const {
  const Json& node = as_json(node_);
  if (node.is_string()) return node.get<std::string>();
  if (node.is_number() || node.is_boolean()) return node.dump();
  return {};
}

std::optional<double> Value::number() const {
  const Json& node = as_json(node_);
  return node.is_number() ? std::optional<double>(node.get<double>()) : std::nullopt;
}

std::uint64_t Value::count(std::string_view key) const {
  const double number_found = number(key).value_or(0);
  return number_found > 0 ? static_cast<std::uint64_t>(number_found) : 0;
}

bool Value::is_true(std::string_view key) const {
  const Value value = at(key);
  const Json& node = as_json(value.node_);
  return node.is_boolean() && node.get<bool>();
}

std::optional<TimePoint> Value::time(std::string_view key) const {
  const Result<TimePoint> parsed = parse_time(text(key));
  return parsed ? std::optional<TimePoint>(*parsed) : std::nullopt;
}

std::string Value::format() const {
  return as_json(node_).dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

std::string Value::compact() const {
  return as_json(node_).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace slipway::cli
