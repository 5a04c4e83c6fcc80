#include "track/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace slipway::track {
namespace {

constexpr std::size_t shown_characters = 80;

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

bool is_ascii_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// A letter beyond ASCII is taken as one: which of them are letters is a table of its own, and all of them
// make good file names.
bool is_key_character(char c) {
  return is_ascii_word(c) || static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view("-. :/").find(c) != std::string_view::npos;
}

std::string shown(std::string_view text) {
  std::string cut = cut_to(text, shown_characters);
  if (cut.size() < text.size()) cut += "…";
  for (char& c : cut)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return cut;
}

std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  while (true) {
    const std::size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

// As a path it is written the shortest way and stays in its folder.
bool is_normal_path(std::string_view path) {
  for (const std::string_view segment : segments_of(path))
    if (segment.empty() || segment == "." || segment == "..") return false;
  return true;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decoded_once(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// nullopt-like: false when it is still encoded after ten rounds, which nobody does by accident.
bool decode_fully(std::string& text) {
  for (int round = 0; round < 10; ++round) {
    std::string next = decoded_once(text);
    if (next == text) return true;
    text = std::move(next);
  }
  return false;
}

Result<void> check_id(std::string_view what, std::string_view id, std::size_t rest_max) {
  const bool fits = !id.empty() && id.size() <= rest_max + 1 && is_ascii_word(id[0]) && id[0] != '_' &&
                    std::all_of(id.begin(), id.end(), [](char c) { return is_ascii_word(c) || c == '-'; });
  if (fits) return {};
  return fail(ErrorCode::invalid,
              fmt::format("'{}' is no {}: it is made of letters, digits, '_' and '-', at most {} of them",
                          shown(id), what, rest_max + 1),
              fmt::format("use the {} as the server gave it", what));
}

}  // namespace

std::string cut_to(std::string_view text, std::size_t characters_max) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins_character(text[i]) && ++characters > characters_max) return std::string(text.substr(0, i));
  return std::string(text);
}

Result<void> check_length(std::string_view what, std::string_view text, std::size_t characters_max) {
  if (text.size() <= characters_max) return {};  // no character is less than a byte
  const std::size_t characters = characters_of(text);
  if (characters <= characters_max) return {};
  return fail(ErrorCode::invalid,
              fmt::format("the {} '{}' has {} characters; at most {} are allowed", what, shown(text),
                          characters, characters_max),
              "shorten it");
}

Result<void> check_key(std::string_view what, std::string_view key) {
  const std::string name(what);
  if (key.empty())
    return fail(ErrorCode::invalid, fmt::format("the {} is empty", what), "give it a name: " + name);
  if (auto fits = check_length(what, key, key_max); !fits) return fits;
  const auto wrong = std::find_if_not(key.begin(), key.end(), is_key_character);
  if (wrong != key.end())
    return fail(ErrorCode::invalid,
                fmt::format("the {} '{}' has a character that is not allowed, at byte {}", what, shown(key),
                            wrong - key.begin() + 1),
                "names are made of letters, digits, '_', '-', '.', ' ', ':' and '/'");
  if (!is_normal_path(key) || key.starts_with(".."))
    return fail(
        ErrorCode::invalid,
        fmt::format("the {} '{}' is no name: read as a path it is written another way", what, shown(key)),
        "do not begin or end it with '/', and use no '//' and no part that is '.' or '..'");
  return {};
}

Result<void> check_run_id(std::string_view id) { return check_id("run id", id, 255); }
Result<void> check_experiment_id(std::string_view id) { return check_id("experiment id", id, 63); }

Result<void> check_experiment_name(std::string_view name) {
  if (name.empty()) return fail(ErrorCode::invalid, "the experiment's name is empty", "give it one, as name");
  return check_length("experiment name", name, experiment_name_max);
}

Result<void> check_model_name(std::string_view name) {
  if (name.empty())
    return fail(ErrorCode::invalid, "the registered model's name is empty", "give it one, as name");
  if (auto fits = check_length("registered model name", name, key_max); !fits) return fits;
  const bool has_separator = name.find_first_of("/:") != std::string_view::npos;
  const bool has_control =
      std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (!has_separator && !has_control && is_normal_path(name)) return {};
  return fail(ErrorCode::invalid, fmt::format("'{}' is no name of a registered model", shown(name)),
              "use no '/', no ':' and no control characters; '.' and '..' are no names either");
}

Result<void> check_alias(std::string_view alias) {
  const auto fits = [](char c) {
    return is_ascii_word(c) || c == '-' || static_cast<unsigned char>(c) >= 0x80;
  };
  if (alias.empty() || !std::all_of(alias.begin(), alias.end(), fits))
    return fail(ErrorCode::invalid, fmt::format("'{}' is no alias", shown(alias)),
                "aliases are made of letters, digits, '_' and '-'");
  if (auto length = check_length("alias", alias, alias_max); !length) return length;
  std::string lower(alias);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (lower == "latest")
    return fail(ErrorCode::invalid, "the alias 'latest' is taken: it always means the newest version",
                "choose another name");
  const bool is_version =
      lower.size() > 1 && lower[0] == 'v' &&
      std::all_of(lower.begin() + 1, lower.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (is_version)
    return fail(ErrorCode::invalid, fmt::format("the alias '{}' reads like the number of a version", alias),
                "choose another name");
  return {};
}

Result<void> check_point(std::string_view key, const Point& point) {
  if (point.timestamp >= 0) return {};
  return fail(
      ErrorCode::invalid,
      fmt::format("the metric '{}' has the timestamp {}: it is before 1970", shown(key), point.timestamp),
      "timestamps are milliseconds since 1970");
}

Result<void> check_batch(BatchSize size) {
  struct Limit {
    const char* what;
    std::size_t given, most;
  };
  const Limit limits[] = {{"metrics", size.metrics, batch_metrics_max},
                          {"params", size.params, batch_params_max},
                          {"tags", size.tags, batch_tags_max},
                          {"metrics, params and tags", size.metrics + size.params + size.tags, batch_max}};
  for (const Limit& limit : limits)
    if (limit.given > limit.most)
      return fail(
          ErrorCode::invalid,
          fmt::format("the batch has {} {}; at most {} are allowed", limit.given, limit.what, limit.most),
          "send it in several requests");
  return {};
}

Result<void> check_artifact_location(std::string_view location) {
  std::string plain(location);
  const bool is_decoded = decode_fully(plain);
  bool climbs = plain.find('\0') != std::string::npos || !is_decoded;
  for (const std::string_view segment : segments_of(plain)) climbs = climbs || segment == "..";
  if (!climbs && !plain.starts_with("runs:")) return {};
  return fail(ErrorCode::invalid, fmt::format("'{}' cannot be an artifact location", shown(location)),
              "leave it out: the server keeps artifacts itself");
}

Result<std::string> safe_artifact_path(std::string_view path) {
  const auto refuse = [&](const char* why) {
    return fail(ErrorCode::invalid, fmt::format("'{}' is no path of an artifact: {}", shown(path), why),
                "use a relative path like models/best.pt");
  };
  std::string plain(path);
  if (!decode_fully(plain)) return refuse("it is encoded over and over");
  if (plain.empty() || plain == ".") return std::string();
  if (plain.front() == '/') return refuse("it begins at the root");
  for (const char c : plain) {
    if (c == '\\' || c == '#') return refuse("it has a backslash or '#'");
    if (static_cast<unsigned char>(c) < 0x20) return refuse("it has a control character");
  }
  if (plain.size() >= 2 && plain[1] == ':' && is_ascii_word(plain[0]))
    return refuse("it begins with a drive");
  if (plain.size() > 4'000) return refuse("it is longer than 4,000 bytes");
  std::string clean;
  for (const std::string_view segment : segments_of(plain)) {
    if (segment == "..") return refuse("it climbs out with '..'");
    if (segment.empty() || segment == ".") continue;
    if (segment.size() > 255) return refuse("a part of it is longer than 255 bytes");
    clean += (clean.empty() ? "" : "/") + std::string(segment);
  }
  return clean;
}

}  // namespace slipway::track
