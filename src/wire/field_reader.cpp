// How the fields of a map are read, and what is said of those that do not fit.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/quantity.h"
#include "base/suggest.h"
#include "wire/document.h"
#include "wire/document_bounds.h"

namespace slipway::wire {
namespace {

bool is_scalar(const Value& value) {
  return value.kind == Value::Kind::string || value.kind == Value::Kind::number ||
         value.kind == Value::Kind::boolean;
}

}  // namespace

FieldReader::FieldReader(const Value& map, std::string document, std::string path)
    : map_(map), document_(std::move(document)), path_(std::move(path)) {
  if (map.kind != Value::Kind::map)
    problem(map,
            fmt::format("{} should be a map of keys and values, not {}", path_.empty() ? "it" : path_,
                        describe(map.kind)),
            "");
}

const Value* FieldReader::value(std::string_view key) {
  asked_.emplace_back(key);
  const Value* found = map_.find(key);
  return found && found->kind != Value::Kind::null ? found : nullptr;
}

bool FieldReader::has(std::string_view key) { return value(key) != nullptr; }

void FieldReader::problem(const Value& at, std::string what, std::string hint) {
  problem_at(at.line, at.column, std::move(what), std::move(hint));
}

void FieldReader::problem(Error placed) {
  if (!problem_) problem_ = std::move(placed);
}

void FieldReader::problem_at_key(const Value& at, std::string what, std::string hint) {
  problem_at(at.key_line, at.key_column, std::move(what), std::move(hint));
}

void FieldReader::problem_at(int line, int column, std::string what, std::string hint) {
  if (problem_) return;
  problem_ = invalid(place_in(document_, line, column) + what, std::move(hint));
}

void FieldReader::misplaced(std::string_view key, std::string hint) {
  if (const Value* found = map_.find(key))
    problem_at_key(*found, fmt::format("unknown key '{}'{}{}", key, path_.empty() ? "" : " in ", path_),
                   std::move(hint));
}

void FieldReader::expected(std::string_view key, const Value& at, std::string_view what, std::string hint) {
  const std::string full = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  const std::string got =
      is_scalar(at) ? fmt::format("'{}'", at.text.substr(0, 100)) : std::string(describe(at.kind));
  problem(at, fmt::format("{} should be {}, not {}", full, what, got), std::move(hint));
}

std::string FieldReader::text(std::string_view key, std::string otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  if (is_scalar(*found) && found->text.find('\0') == std::string::npos) return found->text;
  expected(key, *found, "text");
  return otherwise;
}

std::int64_t FieldReader::integer(std::string_view key, std::int64_t low, std::int64_t high,
                                  std::int64_t otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  std::int64_t number = 0;
  const auto [end, error] =
      std::from_chars(found->text.data(), found->text.data() + found->text.size(), number);
  if (found->kind == Value::Kind::number && error == std::errc{} &&
      end == found->text.data() + found->text.size() && number >= low && number <= high)
    return number;
  expected(key, *found, fmt::format("a whole number from {} to {}", low, high));
  return otherwise;
}

double FieldReader::number(std::string_view key, double low, double high, double otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  double number = 0;
  const auto [end, error] =
      std::from_chars(found->text.data(), found->text.data() + found->text.size(), number);
  if (found->kind == Value::Kind::number && error == std::errc{} &&
      end == found->text.data() + found->text.size() && number >= low && number <= high)
    return number;
  expected(key, *found, fmt::format("a number from {} to {}", low, high));
  return otherwise;
}

bool FieldReader::boolean(std::string_view key, bool otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  if (found->kind == Value::Kind::boolean) return found->text[0] == 't' || found->text[0] == 'T';
  expected(key, *found, "true or false");
  return otherwise;
}

Bytes FieldReader::bytes(std::string_view key, Bytes otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  if (is_scalar(*found))
    if (const auto parsed = parse_bytes(found->text)) return *parsed;
  expected(key, *found, "a size", "write a number and a unit, like 512MiB or 2GiB");
  return otherwise;
}

Duration FieldReader::duration(std::string_view key, Duration otherwise) {
  const Value* found = value(key);
  if (!found) return otherwise;
  if (is_scalar(*found))
    if (const auto parsed = parse_duration(found->text)) return *parsed;
  expected(key, *found, "a duration", "write a number and a unit, like 30s, 10m or 1h30m");
  return otherwise;
}

std::vector<std::string> FieldReader::texts(std::string_view key) {
  const Value* found = value(key);
  if (!found) return {};
  if (is_scalar(*found)) return {found->text};
  std::vector<std::string> list;
  if (found->kind != Value::Kind::list) expected(key, *found, "a list of texts");
  for (const Value& item : found->items) {
    if (!is_scalar(item) || item.text.find('\0') != std::string::npos) {
      expected(fmt::format("{}[{}]", key, list.size()), item, "text");
      break;
    }
    list.push_back(item.text);
  }
  return list;
}

std::vector<std::pair<std::string, std::string>> FieldReader::text_map(std::string_view key) {
  const Value* found = value(key);
  if (!found) return {};
  std::vector<std::pair<std::string, std::string>> map;
  if (found->kind != Value::Kind::map) expected(key, *found, "a map of names and values");
  for (const auto& [name, item] : found->fields) {
    if (!is_scalar(item) || item.text.find('\0') != std::string::npos) {
      expected(fmt::format("{}.{}", key, name), item, "text", "write \"\" for an empty value");
      break;
    }
    map.emplace_back(name, item.text);
  }
  return map;
}

Result<void> FieldReader::finish() {
  if (!problem_)
    for (const auto& [name, value] : map_.fields)
      if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) {
        std::sort(asked_.begin(), asked_.end());
        asked_.erase(std::unique(asked_.begin(), asked_.end()), asked_.end());
        const std::string close = nearest(name, asked_);
        const std::string known = fmt::format("{}", fmt::join(asked_, ", "));
        problem_at_key(
            value,
            fmt::format("unknown key '{}'{}{}", name.substr(0, 100), path_.empty() ? "" : " in ", path_),
            close.empty() ? "the keys here are " + known : fmt::format("did you mean '{}'?", close));
        break;
      }
  if (problem_) return fail(*problem_);
  return {};
}

}  // namespace slipway::wire
