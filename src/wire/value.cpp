#include "wire/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "wire/document.h"
#include "wire/json.h"

namespace slipway::wire {
namespace {

void append_break(std::string& out, int indent) {
  if (indent >= 0) out.append("\n").append(static_cast<std::size_t>(indent) * 2, ' ');
}

// `indent` is the depth of what is inside `value`, or -1 for one line.
void append(const Value& value, std::string& out, int indent);

template <class Parts, class Append>
void append_all(const Parts& parts, std::string& out, int indent, std::string_view marks,
                Append append_part) {
  out += marks[0];
  for (const auto& part : parts) {
    if (&part != &parts.front()) out += ',';
    append_break(out, indent);
    append_part(part);
  }
  if (!parts.empty()) append_break(out, indent - 1);
  out += marks[1];
}

void append(const Value& value, std::string& out, int indent) {
  const int inside = indent < 0 ? -1 : indent + 1;
  switch (value.kind) {
    case Value::Kind::null: out += "null"; return;
    case Value::Kind::boolean: out += value.is_true() ? "true" : "false"; return;
    case Value::Kind::number: out += value.text; return;
    case Value::Kind::string: append_quoted(out, value.text); return;
    case Value::Kind::list:
      append_all(value.items, out, indent, "[]", [&](const Value& item) { append(item, out, inside); });
      return;
    case Value::Kind::map:
      append_all(value.fields, out, indent, "{}", [&](const Value::Field& field) {
        append_quoted(out, field.first);
        out += indent < 0 ? ":" : ": ";
        append(field.second, out, inside);
      });
  }
}

}  // namespace

Value::Value(double value) : Value(Kind::number, Json(value).dump()) {}

Value Value::list(std::vector<Value> items) {
  Value value(Kind::list, {});
  value.items = std::move(items);
  return value;
}

const Value* Value::find(std::string_view key) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& each) { return each.first == key; });
  return found == fields.end() ? nullptr : &found->second;
}
Value* Value::find(std::string_view key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

Value& Value::operator[](std::string_view key) {
  if (!is_map()) *this = map();
  if (Value* found = find(key)) return *found;
  return fields.emplace_back(std::string(key), Value()).second;
}

bool Value::erase(std::string_view key) {
  return std::erase_if(fields, [&](const Field& field) { return field.first == key; }) > 0;
}

const Value& Value::at(std::string_view key) const {
  static const Value null;
  const Value* found = find(key);
  return found == nullptr ? null : *found;
}

std::string Value::scalar() const { return is_null() ? std::string() : text; }

std::optional<double> Value::number() const {
  double found = 0;
  if (!is_number() || std::from_chars(text.data(), text.data() + text.size(), found).ec != std::errc{})
    return std::nullopt;
  return found;
}

std::uint64_t Value::count_at(std::string_view key) const {
  const double found = number_at(key).value_or(0);
  return found > 0 ? static_cast<std::uint64_t>(found) : 0;
}

std::optional<TimePoint> Value::time_at(std::string_view key) const {
  const Result<TimePoint> parsed = parse_time(text_at(key));
  return parsed ? std::optional<TimePoint>(*parsed) : std::nullopt;
}

bool operator==(const Value& a, const Value& b) {
  return a.kind == b.kind && a.text == b.text && a.items == b.items && a.fields == b.fields;
}

std::string_view describe(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::null: return "nothing";
    case Value::Kind::boolean: return "true or false";
    case Value::Kind::number: return "a number";
    case Value::Kind::string: return "text";
    case Value::Kind::list: return "a list";
    case Value::Kind::map: return "a map";
  }
  return "nothing";
}

std::optional<Value> parse_answer(std::string_view json) {
  Result<Value> parsed = parse_json(json, "the answer");
  return parsed ? std::optional<Value>(std::move(*parsed)) : std::nullopt;
}

std::string format_json(const Value& value) {
  std::string out;
  append(value, out, -1);
  return out;
}

std::string format_json_indented(const Value& value) {
  std::string out;
  append(value, out, 1);
  return out;
}

void append_quoted(std::string& out, std::string_view text) {
  // Nearly all texts need no escapes, and are copied.
  const bool is_plain = std::all_of(text.begin(), text.end(),
                                    [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; });
  if (!is_plain) {
    out += dump(Json(text));
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

std::string quote(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size() + 2);
  append_quoted(quoted, text);
  return quoted;
}

}  // namespace slipway::wire
