#pragma once
// The trees that bodies are read into and answers are written from: wire::Value, with what this API needs.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "wire/document.h"

namespace slipway::batchai {

using wire::Value;

Value text_value(std::string text);
Value number_value(std::int64_t number);
Value object_value(std::vector<std::pair<std::string, Value>> fields = {});
Value list_value(std::vector<Value> items = {});
Value written_value(std::string json);  // what format() wrote, to be put out as it is
Value time_value(TimePoint time);       // 2018-06-07T21:16:21.13Z: the fraction without zeros at its end

void set(Value& object, std::string_view key, Value value);  // in resource, or at the end
void remove(Value& object, std::string_view key);

std::string format(const Value& value);     // as JSON, without spaces
Value parse_stored(std::string_view json);  // of what format() wrote; an empty object where it is none

// By a dotted path, without regard to whether the way there exists: nullptr, "" or `otherwise`.
const Value* find(const Value& value, std::string_view path);
std::string text_at(const Value& value, std::string_view path, std::string otherwise = {});
std::int64_t number_at(const Value& value, std::string_view path, std::int64_t otherwise);
// The same of what cannot be negative.
inline std::uint32_t count_at(const Value& value, std::string_view path, std::int64_t otherwise = 0) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(0, number_at(value, path, otherwise)));
}
const std::vector<Value>& items_at(const Value& value, std::string_view path);

// The line of every value of a JSON text, by paths as in properties.inputDirectories[0].id. Of a text that is
// not JSON, or is deeper than 64 levels, whatever was found until then.
std::map<std::string, int> lines_of(std::string_view json);

std::string lower(std::string_view text);
std::string upper(std::string_view text);
bool same_word(std::string_view a, std::string_view b);  // without case

}  // namespace slipway::batchai
