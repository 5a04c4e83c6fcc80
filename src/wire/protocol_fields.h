#pragma once
// What the messages of the node protocol share: keys, times and texts, read and written. Included by the
// files of the protocol only.
//
// Messages are objects with a "type"; times are microseconds since 1970, durations microseconds. What a
// process or a user wrote (commands, environments, details) may be any bytes and is made UTF-8 before it is
// put in.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "domain/protocol.h"
#include "wire/json_tree.h"
#include "wire/utf8.h"

namespace slipway::wire {

inline std::int64_t micros(TimePoint time) { return time.time_since_epoch().count(); }
inline TimePoint time_at(const Json& json, const char* key) {
  return TimePoint(Duration(integer<std::int64_t>(json.at(key))));
}
inline Duration duration_at(const Json& json, const char* key) {
  return Duration(integer<std::int64_t>(json.at(key)));
}
inline WorkKey key_at(const Json& json) {
  const auto key = parse_work_key(json.get_ref<const std::string&>());
  if (!key) throw std::invalid_argument("an attempt key is malformed");
  return *key;
}

inline std::vector<WorkKey> keys_from(const Json& list) {
  std::vector<WorkKey> keys;
  for (const Json& item : list) keys.push_back(key_at(item));
  return keys;
}

inline Resources resources_from(const Json& json) {
  return {integer<Millicores>(json.at("cores")), integer<Bytes>(json.at("memory")),
          integer<std::uint32_t>(json.at("gpus"))};
}

// Runs a reader of outside JSON; whatever it throws is a protocol error of the sender.
template <class T, class Read>
Result<T> guarded(std::string_view what, std::string_view text, Read read) {
  try {
    return read(parse_tree(text));
  } catch (const std::exception& error) {
    return fail(ErrorCode::invalid, fmt::format("{} is malformed: {}", what, to_utf8(error.what())));
  }
}

// Orders and reports go with every task. They are written straight into text: building a tree of values first
// costs several times as much as all the rest of sending them.
using Out = std::back_insert_iterator<std::string>;

inline bool is_plain(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

inline void put_text(std::string& out, std::string_view text) {
  if (!std::all_of(text.begin(), text.end(), is_plain)) {
    out += dump(Json(text));
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

template <class List, class Put>
void put_list(std::string& out, std::string_view name, const List& list, Put put_one) {
  fmt::format_to(Out(out), ",\"{}\":[", name);
  bool first = true;
  for (const auto& one : list) {
    if (!std::exchange(first, false)) out += ',';
    put_one(one);
  }
  out += ']';
}
inline void put_texts(std::string& out, std::string_view name, const std::vector<std::string>& texts) {
  put_list(out, name, texts, [&](const std::string& text) { put_text(out, text); });
}
inline void put_field(std::string& out, std::string_view name, std::string_view text) {
  fmt::format_to(Out(out), ",\"{}\":", name);
  put_text(out, text);
}

}  // namespace slipway::wire
