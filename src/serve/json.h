#pragma once
// JSON of prediction requests: NaN, Infinity and -Infinity are numbers, and a number keeps its digits until a
// tensor's type says what they become, so that integers stay exact.
//
// The document is one flat array in the order of the text; a value's children follow it. Values are views
// into the text, which must outlive the document.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/failure.h"

namespace slipway::serve {

struct JsonLimits {
  std::size_t depth_max = 1000;
  std::size_t values_max = 16'000'000;  // 16 bytes each
};

class Json;

// One value of a document. Cheap to copy.
class JsonValue {
 public:
  enum class Kind : std::uint8_t { null, false_value, true_value, number, string, array, object };

  Kind kind() const;
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_number() const { return kind() == Kind::number; }
  bool is_integer() const;          // a number without fraction and exponent that fits 64 bits
  std::uint32_t size() const;       // of an array or object
  std::string_view source() const;  // as sent
  const char* kind_name() const;    // Array, as TensorFlow Serving's messages say it

  // Of a number. Integers of the type are exact; nullopt: it has a fraction, an exponent, or is out of range.
  double as_double() const;
  std::optional<std::int64_t> as_int64() const;
  std::optional<std::uint64_t> as_uint64() const;
  std::string as_string() const;  // of a string, unescaped

  // Of an array or object: the children in order. In an object a key comes before each value.
  class Children;
  Children children() const;
  // The first member of that name.
  std::optional<JsonValue> find(std::string_view key) const;

 private:
  friend class Json;
  JsonValue(const Json* json, std::uint32_t at) : json_(json), at_(at) {}
  const Json* json_;
  std::uint32_t at_;
};

class Json {
 public:
  // Errors read as TensorFlow Serving's: `JSON Parse error: Invalid value. at offset: 7`.
  static Answer<Json> parse(std::string_view text, const JsonLimits& limits = {});
  JsonValue root() const { return {this, 0}; }

 private:
  friend class JsonValue;
  friend class JsonParser;
  struct Node {
    std::uint32_t begin;  // in the text
    std::uint32_t end;
    std::uint32_t next;  // index behind the last child
    std::uint32_t count : 24;
    std::uint32_t kind : 4;
    std::uint32_t is_integer : 1;
    std::uint32_t is_escaped : 1;
  };
  std::string_view text_;
  std::vector<Node> nodes_;
};

class JsonValue::Children {
 public:
  class Iterator {
   public:
    Iterator(const Json* json, std::uint32_t at) : json_(json), at_(at) {}
    JsonValue operator*() const { return {json_, at_}; }
    Iterator& operator++() {
      at_ = json_->nodes_[at_].next;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Json* json_;
    std::uint32_t at_;
  };
  Iterator begin() const { return {json_, first_}; }
  Iterator end() const { return {json_, last_}; }

 private:
  friend class JsonValue;
  Children(const Json* json, std::uint32_t first, std::uint32_t last)
      : json_(json), first_(first), last_(last) {}
  const Json* json_;
  std::uint32_t first_, last_;
};

// The value as a message shows it: as sent, cut where it is long.
std::string excerpt(const JsonValue& value);
// With quotes and escapes.
void append_json_string(std::string& to, std::string_view text);

// Floats as TensorFlow Serving prints them: six digits where they read back exactly, else 9 or 17; whole
// numbers end with .0.
void append_number(std::string& to, float value);
void append_number(std::string& to, double value);

}  // namespace slipway::serve
