#pragma once
// The one tree for JSON and YAML: read from texts, built for answers and requests, printed as JSON.
//
// A scalar keeps its text as it was written, so 0.10 stays 0.10 and no 64-bit number loses a digit. Readers
// of answers use the *_at functions: what is absent, null or of another type reads as empty, because service
// and command line may be of different versions. Readers of user input use FieldReader (document.h), which
// reports what does not fit.
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace slipway::wire {

struct Value {
  enum class Kind : std::uint8_t { null, boolean, number, string, list, map };
  using Field = std::pair<std::string, Value>;

  Kind kind = Kind::null;
  // Where it begins, 1 for the first; 0 where unknown (JSON). Of a field's value also where its key begins.
  int line = 0;
  int column = 0;
  int key_line = 0;
  int key_column = 0;
  std::string text;  // scalars, as written
  std::vector<Value> items;
  std::vector<Field> fields;

  // Defaulted below: clang asks whether a pair of text and Value can be copied, which only a whole Value can
  // answer.
  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  // Value v{{"name", "fit"}, {"nodes", 2}, {"resources", {{"gpus", 1}}}};
  Value(std::initializer_list<Field> given);
  Value(std::nullptr_t);
  template <std::same_as<bool> Boolean>
  Value(Boolean value) : Value(Kind::boolean, value ? "true" : "false") {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Value(Integer value) : Value(Kind::number, std::to_string(value)) {}
  Value(double value);
  Value(const char* value) : Value(Kind::string, value) {}
  Value(std::string_view value) : Value(Kind::string, std::string(value)) {}
  Value(std::string value) : Value(Kind::string, std::move(value)) {}
  static Value list(std::vector<Value> items = {});
  static Value map() { return Value(Kind::map, {}); }

  bool is_null() const { return kind == Kind::null; }
  bool is_string() const { return kind == Kind::string; }
  bool is_number() const { return kind == Kind::number; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }
  bool is_true() const { return kind == Kind::boolean && (text[0] == 't' || text[0] == 'T'); }

  const Value* find(std::string_view key) const;  // nullptr when absent
  Value* find(std::string_view key);
  Value& operator[](std::string_view key);  // added when absent; anything but a map becomes one
  bool erase(std::string_view key);         // whether it was there

  const Value& at(std::string_view key) const;  // null when absent
  std::string scalar() const;                   // text of a scalar, empty for anything else
  std::optional<double> number() const;
  std::string text_at(std::string_view key) const { return at(key).scalar(); }
  std::optional<double> number_at(std::string_view key) const { return at(key).number(); }
  std::uint64_t count_at(std::string_view key) const;  // 0 when absent or negative
  bool is_true_at(std::string_view key) const { return at(key).is_true(); }
  std::optional<TimePoint> time_at(std::string_view key) const;
  const std::vector<Value>& items_at(std::string_view key) const { return at(key).items; }

  friend bool operator==(const Value& a, const Value& b);  // lines do not count

 private:
  Value(Kind kind_given, std::string text_given) : kind(kind_given), text(std::move(text_given)) {}
};
inline Value::Value() = default;
inline Value::Value(const Value&) = default;
inline Value::Value(Value&&) noexcept = default;
inline Value& Value::operator=(const Value&) = default;
inline Value& Value::operator=(Value&&) noexcept = default;
inline Value::~Value() = default;
inline Value::Value(std::initializer_list<Field> given) : kind(Kind::map), fields(given) {}
inline Value::Value(std::nullptr_t) {}

std::string_view describe(Value::Kind kind);  // "a list", "text", …

// nullopt when it is no JSON. Bounded as parse_json() is (document.h).
std::optional<Value> parse_answer(std::string_view json);

std::string format_json(const Value& value);           // on one line
std::string format_json_indented(const Value& value);  // for people; without a newline at the end

// As a JSON string, in quotes. Bytes that are not UTF-8 are replaced.
std::string quote(std::string_view text);
void append_quoted(std::string& out, std::string_view text);

}  // namespace slipway::wire
