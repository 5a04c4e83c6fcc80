#include "wire/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace slipway::wire {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }

// Words that YAML 1.1 or 1.2 read as something else than text.
bool is_reserved(std::string_view text) {
  static constexpr std::array<std::string_view, 11> words{"null", "true", "false", "yes",  "no",  "on",
                                                          "off",  "y",    "n",     ".nan", ".inf"};
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(words.begin(), words.end(), lower) != words.end();
}

// Without quotes it is still this text: it begins like a word, and holds nothing that has a meaning. What
// begins with a digit might be a number, a time, or an octal one.
bool is_plain(std::string_view text) {
  if (text.empty() || is_reserved(text)) return false;
  const auto first = static_cast<unsigned char>(text.front());
  if (std::isalpha(first) == 0 && first != '/' && first != '_' && first < 0x80) return false;
  if (text.back() == ' ' || text.back() == ':') return false;
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) return false;
  return std::none_of(text.begin(), text.end(), is_control);
}

// Texts of several lines are read best as such: after a '|'.
bool is_block(std::string_view text) {
  if (text.find('\n') == std::string_view::npos || text.front() == ' ' || text.front() == '\n') return false;
  if (text.ends_with("\n\n") || text.find(" \n") != std::string_view::npos) return false;
  return std::none_of(text.begin(), text.end(), [](char c) { return is_control(c) && c != '\n'; });
}

void append(const Value& value, std::string& out, std::size_t indent);

std::string scalar(const Value& value) {
  if (value.kind == Value::Kind::null) return "null";
  if (value.kind == Value::Kind::boolean) return value.is_true() ? "true" : "false";
  if (value.kind == Value::Kind::number) return value.text;
  return is_plain(value.text) ? value.text : quote(value.text);
}

void append_block(const std::string& text, std::string& out, std::size_t indent) {
  out += text.ends_with('\n') ? " |\n" : " |-\n";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) out.append(indent, ' ').append(text, begin, end - begin);
    out += '\n';
    begin = end + 1;
  }
}

// What follows a key or the '-' of an item, with the space before it. `indent` is that of lines inside.
void append_inside(const Value& value, std::string& out, std::size_t indent) {
  if (value.is_list() && !value.items.empty()) {
    out += '\n';
    append(value, out, indent);
  } else if (value.is_map() && !value.fields.empty()) {
    out += '\n';
    append(value, out, indent);
  } else if (value.is_list()) {
    out += " []\n";
  } else if (value.is_map()) {
    out += " {}\n";
  } else if (value.is_string() && is_block(value.text)) {
    append_block(value.text, out, indent);
  } else {
    out += " " + scalar(value) + "\n";
  }
}

void append(const Value& value, std::string& out, std::size_t indent) {
  for (const auto& [key, inner] : value.fields) {
    out.append(indent, ' ').append(is_plain(key) ? key : quote(key)).append(":");
    append_inside(inner, out, indent + 2);
  }
  for (const Value& item : value.items) {
    out.append(indent, ' ').append("-");
    if (item.is_map() && !item.fields.empty()) {  // its first key stands in the line of the '-'
      std::string inside;
      append(item, inside, indent + 2);
      out.append(" ").append(inside, indent + 2);
    } else {
      append_inside(item, out, indent + 2);
    }
  }
}

}  // namespace

std::string format_yaml(const Value& value, std::size_t indent) {
  std::string out;
  if ((value.is_list() && !value.items.empty()) || (value.is_map() && !value.fields.empty())) {
    append(value, out, indent);
    return out;
  }
  append_inside(value, out, indent);
  return std::string(indent, ' ') + out.substr(1);
}

}  // namespace slipway::wire
