#include "serve/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace slipway::serve {
namespace {

constexpr std::size_t excerpt_max = 300;
constexpr std::size_t reserved_max = 65536;  // values; more grow as they come

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Of a number of few digits without an exponent, which most are: whole and power of ten are exact in a
// double, so that one division rounds correctly.
std::optional<double> simple_decimal(std::string_view text) {
  static constexpr double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  constexpr std::size_t length_max = 17;  // at most 15 digits beside a sign and a point
  const bool is_negative = text.starts_with('-');
  if (text.size() > length_max) return std::nullopt;
  std::uint64_t digits = 0;
  std::size_t count = 0, fraction = 0;
  bool has_point = false;
  for (std::size_t i = is_negative ? 1 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') {
      has_point = true;
      continue;
    }
    if (!is_digit(c)) return std::nullopt;
    digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
    ++count;
    fraction += has_point ? 1 : 0;
  }
  if (count > 15) return std::nullopt;
  const double value = static_cast<double>(digits) / powers[fraction];
  return is_negative ? -value : value;
}

void append_utf8(std::string& to, std::uint32_t point) {
  if (point < 0x80) {
    to += static_cast<char>(point);
  } else if (point < 0x800) {
    to += static_cast<char>(0xC0 | point >> 6);
    to += static_cast<char>(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    to += static_cast<char>(0xE0 | point >> 12);
    to += static_cast<char>(0x80 | (point >> 6 & 0x3F));
    to += static_cast<char>(0x80 | (point & 0x3F));
  } else {
    to += static_cast<char>(0xF0 | point >> 18);
    to += static_cast<char>(0x80 | (point >> 12 & 0x3F));
    to += static_cast<char>(0x80 | (point >> 6 & 0x3F));
    to += static_cast<char>(0x80 | (point & 0x3F));
  }
}

std::uint32_t four_hex(const char* at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 4 | static_cast<std::uint32_t>(hex_digit(at[i]));
  return value;
}

}  // namespace

// Keeps the open arrays and objects on a stack of its own: the depth of a text is not that of our calls.
class JsonParser {
 public:
  JsonParser(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {}

  Answer<Json> parse() {
    if (text_.empty()) return invalid("JSON Parse error: The document is empty");
    if (text_.size() >= std::numeric_limits<std::uint32_t>::max())
      return refuse(Code::resource_exhausted, "the body is larger than 4 GiB");
    json_.text_ = text_;
    json_.nodes_.reserve(std::min(text_.size() / 4 + 8, reserved_max));
    skip_space();
    if (at_ == text_.size()) return error("The document is empty.");
    value();
    while (problem_ == nullptr && !open_.empty()) continue_container();
    if (problem_ == nullptr) {
      skip_space();
      if (at_ < text_.size()) problem_ = "The document root must not be followed by other values.";
    }
    if (problem_ != nullptr) return error(problem_);
    return std::move(json_);
  }

 private:
  using Kind = JsonValue::Kind;

  tl::unexpected<Failure> error(const char* what) const {
    return invalid(fmt::format("JSON Parse error: {} at offset: {}", what, at_));
  }
  bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  void add(Kind kind, std::size_t begin, bool is_integer = false, bool is_escaped = false) {
    if (json_.nodes_.size() >= limits_.values_max) {
      problem_ = "More values than one request may have.";
      return;
    }
    Json::Node node{};
    node.begin = static_cast<std::uint32_t>(begin);
    node.end = static_cast<std::uint32_t>(at_);
    node.next = static_cast<std::uint32_t>(json_.nodes_.size() + 1);
    node.kind = static_cast<std::uint32_t>(kind) & 0xF;
    node.is_integer = is_integer ? 1 : 0;
    node.is_escaped = is_escaped ? 1 : 0;
    json_.nodes_.push_back(node);
  }
  bool literal(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  void value() {
    const std::size_t begin = at_;
    if (at_ == text_.size()) {
      problem_ = "Invalid value.";
      return;
    }
    const char c = text_[at_];
    if (is_digit(c) || c == '-' || c == 'N' || c == 'I') return number();
    if (c == '"') return string();
    if (c == '[' || c == '{') {
      if (open_.size() >= limits_.depth_max) {
        problem_ = "Nested deeper than one request may be.";
        return;
      }
      ++at_;
      open_.push_back(static_cast<std::uint32_t>(json_.nodes_.size()));
      is_first_ = true;
      return add(c == '[' ? Kind::array : Kind::object, begin);
    }
    if (literal("true")) return add(Kind::true_value, begin);
    if (literal("false")) return add(Kind::false_value, begin);
    if (literal("null")) return add(Kind::null, begin);
    problem_ = "Invalid value.";
  }

  // Goes on with the innermost open array or object: its next child, or its end.
  void continue_container() {
    const std::uint32_t index = open_.back();
    const bool is_array = json_.nodes_[index].kind == static_cast<std::uint32_t>(Kind::array);
    const char end = is_array ? ']' : '}';
    skip_space();
    if (is_at(end)) {
      if (!is_first_ || json_.nodes_[index].count == 0) return close(index);
    }
    if (!is_first_) {
      if (!is_at(',')) {
        problem_ = is_array ? "Missing a comma or ] after an array element."
                            : "Missing a comma or } after an object member.";
        return;
      }
      ++at_;
      skip_space();
    }
    is_first_ = false;
    if (!is_array) {
      if (!is_at('"')) {
        problem_ = "Missing a name for object member.";
        return;
      }
      string();
      if (problem_ != nullptr) return;
      skip_space();
      if (!is_at(':')) {
        problem_ = "Missing a colon after a name of object member.";
        return;
      }
      ++at_;
      skip_space();
    }
    json_.nodes_[index].count = (json_.nodes_[index].count + 1) & 0xFFFFFF;  // values_max is smaller
    value();
  }

  void close(std::uint32_t index) {
    ++at_;
    json_.nodes_[index].end = static_cast<std::uint32_t>(at_);
    json_.nodes_[index].next = static_cast<std::uint32_t>(json_.nodes_.size());
    open_.pop_back();
    is_first_ = false;
  }

  void number() {
    const std::size_t begin = at_;
    const bool is_negative = is_at('-');
    if (is_negative) ++at_;
    if (is_at('N') || is_at('I')) {
      const bool known = (!is_negative && literal("NaN")) || literal("Infinity") || literal("Inf");
      if (!known) {
        problem_ = "Invalid value.";
        return;
      }
      return add(Kind::number, begin);
    }
    if (is_at('0')) {
      ++at_;
    } else {
      const std::size_t digits = at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      if (digits == at_) {
        problem_ = "Invalid value.";
        return;
      }
    }
    bool is_integer = true;
    if (is_at('.')) {
      is_integer = false;
      ++at_;
      if (at_ == text_.size() || !is_digit(text_[at_])) {
        problem_ = "Miss fraction part in number.";
        return;
      }
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    }
    bool may_overflow = at_ - begin > 300;
    if (is_at('e') || is_at('E')) {
      is_integer = false;
      may_overflow = true;
      ++at_;
      if (is_at('+') || is_at('-')) ++at_;
      if (at_ == text_.size() || !is_digit(text_[at_])) {
        problem_ = "Miss exponent in number.";
        return;
      }
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    }
    if (may_overflow) {
      double checked = 0;
      const auto read = std::from_chars(text_.data() + begin, text_.data() + at_, checked);
      // A number too small is out of range as well, and becomes 0.
      if (read.ec == std::errc::result_out_of_range && !is_tiny(text_.substr(begin, at_ - begin))) {
        at_ = begin;
        problem_ = "Number too big to be stored in double.";
        return;
      }
    }
    add(Kind::number, begin, is_integer);
  }

  // Of a number outside double's range: whether it lies next to 0.
  static bool is_tiny(std::string_view text) {
    const long double value = std::strtold(std::string(text).c_str(), nullptr);
    return std::fabs(value) < 1.0L;
  }

  void string() {
    const std::size_t begin = at_;
    ++at_;
    bool is_escaped = false;
    for (;;) {
      if (at_ >= text_.size()) {
        at_ = begin;
        problem_ = "Missing a closing quotation mark in string.";
        return;
      }
      const char c = text_[at_];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) {
        problem_ = c == '\0' ? "Missing a closing quotation mark in string." : "Invalid encoding in string.";
        return;
      }
      if (c != '\\') {
        ++at_;
        continue;
      }
      is_escaped = true;
      if (!escape()) return;
    }
    ++at_;
    add(Kind::string, begin, false, is_escaped);
  }

  bool hex_at(std::size_t from) {
    for (std::size_t i = from; i < from + 4; ++i) {
      if (i >= text_.size() || hex_digit(text_[i]) < 0) {
        problem_ = "Incorrect hex digit after \\u escape in string.";
        return false;
      }
    }
    return true;
  }

  bool escape() {
    const char kind = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (kind != 'u') {
      if (kind == '\0' || std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos) {
        problem_ = "Invalid escape character in string.";
        return false;
      }
      at_ += 2;
      return true;
    }
    if (!hex_at(at_ + 2)) return false;
    const std::uint32_t unit = four_hex(text_.data() + at_ + 2);
    if (unit < 0xD800 || unit > 0xDFFF) {
      at_ += 6;
      return true;
    }
    const bool pair_follows = unit < 0xDC00 && text_.substr(at_ + 6).starts_with("\\u");
    if (pair_follows && !hex_at(at_ + 8)) return false;
    const std::uint32_t low = pair_follows ? four_hex(text_.data() + at_ + 8) : 0;
    if (low < 0xDC00 || low > 0xDFFF) {
      problem_ = "The surrogate pair in string is invalid.";
      return false;
    }
    at_ += 12;
    return true;
  }

  std::string_view text_;
  JsonLimits limits_;
  std::size_t at_ = 0;
  Json json_;
  std::vector<std::uint32_t> open_;
  bool is_first_ = false;  // the innermost open value has no child yet
  const char* problem_ = nullptr;
};

Answer<Json> Json::parse(std::string_view text, const JsonLimits& limits) {
  return JsonParser(text, limits).parse();
}

JsonValue::Kind JsonValue::kind() const { return static_cast<Kind>(json_->nodes_[at_].kind); }
std::uint32_t JsonValue::size() const { return json_->nodes_[at_].count; }
std::string_view JsonValue::source() const {
  const auto& node = json_->nodes_[at_];
  return json_->text_.substr(node.begin, node.end - node.begin);
}

bool JsonValue::is_integer() const {
  return json_->nodes_[at_].is_integer != 0 && (as_int64() || as_uint64());
}

const char* JsonValue::kind_name() const {
  static constexpr const char* kinds[] = {"Null", "False", "True", "Number", "String", "Array", "Object"};
  return kinds[static_cast<std::size_t>(kind())];
}

double JsonValue::as_double() const {
  const std::string_view text = source();
  if (const auto simple = simple_decimal(text)) return *simple;
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && is_digit(text.back())) return value;
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity" || text == "Inf") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-Inf") return -std::numeric_limits<double>::infinity();
  return text.front() == '-' ? -0.0 : 0.0;  // next to 0: the parser refused what is too large
}

std::optional<std::int64_t> JsonValue::as_int64() const {
  if (json_->nodes_[at_].is_integer == 0) return std::nullopt;
  const std::string_view text = source();
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> JsonValue::as_uint64() const {
  if (json_->nodes_[at_].is_integer == 0) return std::nullopt;
  std::string_view text = source();
  if (text == "-0") text.remove_prefix(1);
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  return value;
}

std::string JsonValue::as_string() const {
  const std::string_view inside = source().substr(1, source().size() - 2);
  if (json_->nodes_[at_].is_escaped == 0) return std::string(inside);
  std::string text;
  text.reserve(inside.size());
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      text += inside[i];
      continue;
    }
    switch (inside[++i]) {
      case 'b': text += '\b'; break;
      case 'f': text += '\f'; break;
      case 'n': text += '\n'; break;
      case 'r': text += '\r'; break;
      case 't': text += '\t'; break;
      case 'u': {
        std::uint32_t point = four_hex(inside.data() + i + 1);
        i += 4;
        if (point >= 0xD800 && point < 0xDC00) {
          point = 0x10000 + ((point - 0xD800) << 10) + (four_hex(inside.data() + i + 3) - 0xDC00);
          i += 6;
        }
        append_utf8(text, point);
        break;
      }
      default: text += inside[i];
    }
  }
  return text;
}

JsonValue::Children JsonValue::children() const {
  const bool has_children = is_array() || is_object();
  return {json_, at_ + 1, has_children ? json_->nodes_[at_].next : at_ + 1};
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  const Children all = children();
  for (auto child = all.begin(); child != all.end(); ++child) {
    const JsonValue name = *child;
    ++child;
    const std::string_view quoted = name.source();
    const bool is_it = json_->nodes_[name.at_].is_escaped != 0 ? name.as_string() == key
                                                               : quoted.substr(1, quoted.size() - 2) == key;
    if (is_it) return *child;
  }
  return std::nullopt;
}

std::string excerpt(const JsonValue& value) {
  const std::string_view source = value.source();
  if (source.size() <= excerpt_max) return std::string(source);
  std::size_t end = excerpt_max;
  while (end > 0 && (static_cast<unsigned char>(source[end]) & 0xC0) == 0x80)
    --end;  // not inside a character
  return std::string(source.substr(0, end)) + "...";
}

void append_json_string(std::string& to, std::string_view text) {
  to += '"';
  for (const char c : text) {
    switch (c) {
      case '"': to += "\\\""; break;
      case '\\': to += "\\\\"; break;
      case '\b': to += "\\b"; break;
      case '\f': to += "\\f"; break;
      case '\n': to += "\\n"; break;
      case '\r': to += "\\r"; break;
      case '\t': to += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          to += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        else
          to += c;
    }
  }
  to += '"';
}

namespace {

template <class T>
void append_real(std::string& to, T value) {
  if (std::isnan(value)) {
    to += "NaN";
    return;
  }
  if (std::isinf(value)) {
    to += value < 0 ? "-Infinity" : "Infinity";
    return;
  }
  char text[40];
  char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6).ptr;
  T again = 0;
  const auto read = std::from_chars(text, end, again);
  if (read.ec != std::errc() || again != value)
    end = std::to_chars(text, text + sizeof text, value, std::chars_format::general,
                        std::numeric_limits<T>::max_digits10)
              .ptr;
  const std::string_view shown(text, static_cast<std::size_t>(end - text));
  to += shown;
  if (shown.find_first_of(".e") == std::string_view::npos) to += ".0";
}

}  // namespace

void append_number(std::string& to, float value) { append_real(to, value); }
void append_number(std::string& to, double value) { append_real(to, value); }

}  // namespace slipway::serve
