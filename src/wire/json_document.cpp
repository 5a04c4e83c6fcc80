// A JSON text as a tree of values.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wire/document.h"
#include "wire/document_bounds.h"
#include "wire/json.h"
#include "wire/utf8.h"

namespace slipway::wire {
namespace {

constexpr std::size_t values_max = 1'000'000;

// Builds the value while the text is parsed: nlohmann's own tree keeps the last of two values of one key, and
// compares each key with all before it, which takes minutes for those that fit into a request.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(std::string_view name) : bounds_(name, values_max) {}

  Result<Value> build(std::string_view text) {
    nlohmann::json_sax<Json>* const events = this;
    if (!Json::sax_parse(text, events)) return fail(problem_);
    return std::move(root_);
  }

 private:
  bool null() override { return add(Value::Kind::null, {}) != nullptr; }
  bool boolean(bool value) override { return add(Value::Kind::boolean, value ? "true" : "false") != nullptr; }
  bool number_integer(Json::number_integer_t value) override {
    return add(Value::Kind::number, std::to_string(value)) != nullptr;
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    return add(Value::Kind::number, std::to_string(value)) != nullptr;
  }
  bool number_float(Json::number_float_t value, const std::string&) override {
    return add(Value::Kind::number, Json(value).dump()) != nullptr;
  }
  bool string(std::string& value) override { return add(Value::Kind::string, std::move(value)) != nullptr; }
  bool binary(Json::binary_t&) override { return false; }  // JSON has none
  bool start_array(std::size_t) override { return open(Value::Kind::list); }
  bool start_object(std::size_t) override { return open(Value::Kind::map); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(std::string& key) override {
    auto& fields = open_.back()->fields;
    if (fields.size() == fields_max) return refuse(bounds_.too_many_fields());
    fields.emplace_back(std::move(key), Value{});
    return true;
  }
  bool end_object() override {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : open_.back()->fields) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end())
      return refuse(
          invalid(fmt::format("{}: the key '{}' stands twice", bounds_.name(), *twice), "keep one of them"));
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    std::string why = error.what();  // "[json.exception.parse_error.101] parse error at line 1, …"
    if (const std::size_t end = why.find("] "); end != std::string::npos) why = why.substr(end + 2);
    return refuse(invalid(fmt::format("{} is not valid JSON: {}", bounds_.name(), to_utf8(why))));
  }

  bool refuse(Error error) {
    problem_ = std::move(error);
    return false;
  }
  // Where the text is now; nullptr when it has too much.
  Value* add(Value::Kind kind, std::string text) {
    if (auto entered = bounds_.enter(open_.size()); !entered) {
      problem_ = entered.error();
      return nullptr;
    }
    Value* value = &root_;
    if (!open_.empty() && open_.back()->kind == Value::Kind::list)
      value = &open_.back()->items.emplace_back();
    else if (!open_.empty())
      value = &open_.back()->fields.back().second;
    value->kind = kind;
    value->text = std::move(text);
    return value;
  }
  bool open(Value::Kind kind) {
    Value* const value = add(kind, {});
    if (value == nullptr) return false;
    open_.push_back(value);
    return true;
  }

  Bounds bounds_;
  Value root_;
  std::vector<Value*> open_;  // from the root to where the text is; only the last one grows
  Error problem_;
};

}  // namespace

Result<Value> parse_json(std::string_view text, std::string_view name) {
  return JsonBuilder(name).build(text);
}

}  // namespace slipway::wire
