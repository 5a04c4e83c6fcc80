#include "serve/text_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/suggest.h"

namespace slipway::serve {
namespace {

constexpr int depth_max = 64;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '+';
}

class TextProtoParser {
 public:
  TextProtoParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Result<TextMessage> parse() {
    TextMessage message;
    if (auto done = fields(message, '\0', 0); !done) return fail(done.error());
    return message;
  }

 private:
  tl::unexpected<Error> error(const std::string& why) const {
    return fail(
        ErrorCode::invalid, fmt::format("{}:{}: {}", name_, line_, why),
        "protobuf text looks like `model_config_list { config { name: \"m\" base_path: \"/models/m\" } }`");
  }
  bool is_end() const { return at_ >= text_.size(); }
  char here() const { return is_end() ? '\0' : text_[at_]; }
  void skip() {
    for (; !is_end(); ++at_) {
      if (here() == '#')
        while (!is_end() && here() != '\n') ++at_;
      if (is_end()) return;
      if (here() == '\n')
        ++line_;
      else if (here() != ' ' && here() != '\t' && here() != '\r')
        return;
    }
  }

  Result<void> fields(TextMessage& message, char end, int depth) {
    if (depth > depth_max) return error(fmt::format("nested deeper than {} messages", depth_max));
    for (;;) {
      skip();
      if (is_end())
        return end == '\0' ? Result<void>() : error(fmt::format("the end comes before `{}`", end));
      if (here() == end) {
        ++at_;
        return {};
      }
      if (auto read = field(message, depth); !read) return read;
      skip();
      if (here() == ',' || here() == ';') ++at_;
    }
  }

  std::string word() {
    const std::size_t begin = at_;
    while (!is_end() && is_word(here())) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  Result<void> field(TextMessage& message, int depth) {
    const int line = line_;
    const std::string name = word();
    if (name.empty()) return error(fmt::format("expected a field's name and found `{}`", here()));
    skip();
    const bool has_colon = here() == ':';
    if (has_colon) {
      ++at_;
      skip();
    }
    if (here() != '[') return value(message, name, line, has_colon, depth);
    ++at_;
    for (;;) {
      skip();
      if (here() == ']') break;
      if (auto read = value(message, name, line, has_colon, depth); !read) return read;
      skip();
      if (here() == ',')
        ++at_;
      else if (here() != ']')
        return error(fmt::format("the list {} lacks a `,` or `]`", name));
    }
    ++at_;
    return {};
  }

  Result<void> value(TextMessage& message, const std::string& name, int line, bool has_colon, int depth) {
    TextField field{name, line, false, false, {}, {}};
    if (here() == '{' || here() == '<') {
      const char end = here() == '{' ? '}' : '>';
      ++at_;
      field.is_message = true;
      if (auto read = fields(field.message, end, depth + 1); !read) return read;
    } else if (!has_colon) {
      return error(fmt::format("after {} comes neither `:` nor `{{`", name));
    } else if (here() == '"' || here() == '\'') {
      field.is_string = true;
      while (here() == '"' || here() == '\'') {  // adjacent strings are one
        if (auto read = string(field.scalar); !read) return read;
        skip();
      }
    } else {
      field.scalar = word();
      if (field.scalar.empty()) return error(fmt::format("{} has no value", name));
    }
    message.fields.push_back(std::move(field));
    return {};
  }

  Result<void> string(std::string& to) {
    const char quote = here();
    ++at_;
    for (; here() != quote; ++at_) {
      if (is_end() || here() == '\n') return error("a string has no end");
      if (here() != '\\') {
        to += here();
        continue;
      }
      ++at_;
      if (is_end()) return error("a string has no end");
      if (auto read = escape(to); !read) return read;
    }
    ++at_;
    return {};
  }

  // The character after a backslash; stays on the last of the escape.
  Result<void> escape(std::string& to) {
    const std::string_view kinds = "abfnrtv\\'\"?";
    const std::string_view values = "\a\b\f\n\r\t\v\\'\"?";
    if (const std::size_t kind = kinds.find(here()); kind != std::string_view::npos) {
      to += values[kind];
      return {};
    }
    const bool is_hex = here() == 'x' || here() == 'X';
    const std::size_t begin = is_hex ? at_ + 1 : at_;
    unsigned value = 0;
    const std::size_t most = std::min(text_.size(), begin + (is_hex ? 2 : 3));
    const auto read = std::from_chars(text_.data() + begin, text_.data() + most, value, is_hex ? 16 : 8);
    if (read.ec != std::errc() || value > 255) return error(fmt::format("`\\{}` is no escape", here()));
    to += static_cast<char>(value);
    at_ = static_cast<std::size_t>(read.ptr - text_.data()) - 1;
    return {};
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

Result<TextMessage> parse_text_proto(std::string_view text, const std::string& name) {
  return TextProtoParser(text, name).parse();
}

tl::unexpected<Error> TextReader::problem(const TextField& field, std::string_view why) const {
  return fail(ErrorCode::invalid, fmt::format("{}:{}: {} {}", file_, field.line, field.name, why),
              fmt::format("it belongs to {}", where_));
}

Result<void> TextReader::only(std::initializer_list<const char*> known) const {
  for (const TextField& field : message_.fields) {
    if (std::find(known.begin(), known.end(), field.name) != known.end()) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    const std::string near = nearest(field.name, names);
    return problem(field, near.empty() ? fmt::format("is no field of {}", where_)
                                       : fmt::format("is no field of {}; did you mean {}?", where_, near));
  }
  return {};
}

std::vector<const TextField*> TextReader::all(std::string_view name) const {
  std::vector<const TextField*> found;
  for (const TextField& field : message_.fields)
    if (field.name == name) found.push_back(&field);
  return found;
}

const TextField* TextReader::last(std::string_view name) const {
  const auto found = all(name);
  return found.empty() ? nullptr : found.back();
}

Result<void> TextReader::read(std::string_view name, std::string& to) const {
  const TextField* field = last(name);
  if (field == nullptr) return {};
  if (!field->is_string) return problem(*field, "takes a string in quotes");
  to = field->scalar;
  return {};
}

namespace {

std::optional<std::int64_t> parse_integer(const TextField& field) {
  std::int64_t value = 0;
  const char* end = field.scalar.data() + field.scalar.size();
  const auto read = std::from_chars(field.scalar.data(), end, value);
  if (field.is_message || field.is_string || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

Result<void> TextReader::read(std::string_view name, std::int64_t& to) const {
  const TextField* field = last(name);
  if (field == nullptr) return {};
  const auto value = parse_integer(*field);
  if (!value) return problem(*field, "takes a whole number");
  to = *value;
  return {};
}

Result<void> TextReader::read(std::string_view name, bool& to) const {
  const TextField* field = last(name);
  if (field == nullptr) return {};
  if (field->scalar == "true" || field->scalar == "1" || field->scalar == "t" || field->scalar == "True")
    return to = true, Result<void>();
  if (field->scalar == "false" || field->scalar == "0" || field->scalar == "f" || field->scalar == "False")
    return to = false, Result<void>();
  return problem(*field, "takes true or false");
}

Result<void> TextReader::read_wrapped(std::string_view name, std::int64_t& to) const {
  const TextField* field = last(name);
  if (field == nullptr) return {};
  if (!field->is_message) return read(name, to);
  const TextReader inner(field->message, fmt::format("{}.{}", where_, name), file_);
  if (auto known = inner.only({"value"}); !known) return known;
  return inner.read("value", to);
}

Result<std::vector<std::int64_t>> TextReader::integers(std::string_view name) const {
  std::vector<std::int64_t> values;
  for (const TextField* field : all(name)) {
    const auto value = parse_integer(*field);
    if (!value) return problem(*field, "takes whole numbers");
    values.push_back(*value);
  }
  return values;
}

}  // namespace slipway::serve
