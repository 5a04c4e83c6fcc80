#include "wire/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "wire/document_bounds.h"
#include "wire/utf8.h"

namespace slipway::wire {

std::string marked_line(std::string_view text, int line, int column) {
  std::size_t begin = 0;
  for (int i = 1; i < line && begin != std::string_view::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  if (begin >= text.size()) return {};
  // A window of the line: what is left of the column, and a little more.
  constexpr std::size_t window = 70;
  std::string_view shown = text.substr(begin, text.find('\n', begin) - begin);
  std::size_t at = std::min(static_cast<std::size_t>(std::max(column, 1) - 1), shown.size());
  if (at > window - 10) {
    std::size_t cut = at - (window - 10);
    while (cut < at && (static_cast<unsigned char>(shown[cut]) & 0xc0) == 0x80) ++cut;
    shown.remove_prefix(cut);
    at -= cut;
  }
  std::string line_text(shown.substr(0, std::max(window, at)));
  if (!is_utf8(line_text)) line_text = to_utf8(line_text);
  for (char& c : line_text)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
  return fmt::format("\n{}\n{}^", line_text, std::string(at, ' '));
}

std::string place_in(std::string_view document, int line, int column) {
  if (line == 0) return fmt::format("{}: ", document);
  return column == 0 ? fmt::format("{} line {}: ", document, line)
                     : fmt::format("{} line {}, column {}: ", document, line, column);
}

Error with_caret(Error error, std::string_view text, std::string_view name) {
  auto take = [rest = std::string_view(error.what)](std::string_view words, int* number) mutable {
    if (!rest.starts_with(words)) return false;
    rest.remove_prefix(words.size());
    if (number == nullptr) return true;
    const auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), *number);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return wrong == std::errc{};
  };
  int line = 0, column = 0;
  if (take(name, nullptr) && take(" line ", &line) && take(", column ", &column))
    error.what.insert(std::min(error.what.find('\n'), error.what.size()), marked_line(text, line, column));
  return error;
}

namespace {

// A value of the command line has no place in the file.
void forget_places(Value& value) {
  value.line = value.column = value.key_line = value.key_column = 0;
  for (Value& item : value.items) forget_places(item);
  for (auto& [key, inner] : value.fields) forget_places(inner);
}

}  // namespace

Result<void> set_value(Value& root, std::string_view setting) {
  if (!is_utf8(setting))
    return fail(invalid("a setting is not valid UTF-8", "write it like --set priority=5"));
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return fail(invalid(fmt::format("'{}' is not name=value", setting), "write it like --set priority=5"));
  if (setting.find_first_not_of(" \t", equals + 1) == std::string_view::npos)
    return fail(
        invalid(fmt::format("--set {} has no value", setting),
                fmt::format("write {0}=VALUE, or {0}='\"\"' for an empty text", setting.substr(0, equals))));
  auto parsed =
      parse_yaml(setting.substr(equals + 1), fmt::format("the value of {}", setting.substr(0, equals)));
  if (!parsed) return fail(parsed.error());
  Value* at = &root;
  std::string_view rest = setting.substr(0, equals);
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    if (at->kind == Value::Kind::list) {
      Value* found = nullptr;
      for (std::size_t i = 0; i < at->items.size(); ++i) {
        const Value* called = at->items[i].find("name");
        if ((called && called->text == part) || std::to_string(i) == part) {
          found = &at->items[i];
          break;
        }
      }
      if (!found)
        return fail(invalid(fmt::format("--set {}: there is no item '{}' in that list", setting, part)));
      at = found;
    } else if (at->kind == Value::Kind::map || at->kind == Value::Kind::null) {
      at->kind = Value::Kind::map;
      Value* found = at->find(part);
      if (!found) found = &at->fields.emplace_back(part, Value{}).second;
      at = found;
    } else {
      return fail(invalid(fmt::format("--set {}: '{}' is inside {}", setting, part, describe(at->kind))));
    }
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  const Value before = std::exchange(*at, std::move(*parsed));
  forget_places(*at);
  at->line = before.line;
  at->key_line = before.key_line;
  at->key_column = before.key_column;
  return {};
}

}  // namespace slipway::wire
