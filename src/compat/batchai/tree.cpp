#include "compat/batchai/tree.h"

#include <algorithm>
#include <charconv>

#include "wire/value.h"

namespace slipway::batchai {

Value text_value(std::string text) { return {std::move(text)}; }

Value number_value(std::int64_t number) { return {number}; }

Value written_value(std::string json) {
  Value value;
  value.kind = Value::Kind::number;  // like those, its text is JSON
  value.text = std::move(json);
  return value;
}

Value object_value(std::vector<std::pair<std::string, Value>> fields) {
  Value value = Value::map();
  value.fields = std::move(fields);
  return value;
}

Value list_value(std::vector<Value> items) { return Value::list(std::move(items)); }

Value time_value(TimePoint time) {
  std::string text = format_time(time);
  if (const std::size_t dot = text.find('.'); dot != std::string::npos) {
    text.pop_back();  // Z
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    text += 'Z';
  }
  return text_value(std::move(text));
}

void set(Value& object, std::string_view key, Value value) { object[key] = std::move(value); }

void remove(Value& object, std::string_view key) { object.erase(key); }

std::string format(const Value& value) { return wire::format_json(value); }

Value parse_stored(std::string_view json) {
  auto value = wire::parse_json(json, "a stored body");
  return value && value->kind == Value::Kind::map ? std::move(*value) : object_value();
}

const Value* find(const Value& value, std::string_view path) {
  const Value* at = &value;
  while (at && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = at->kind == Value::Kind::map ? at->find(path.substr(0, dot)) : nullptr;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at && at->kind == Value::Kind::null ? nullptr : at;
}

std::string text_at(const Value& value, std::string_view path, std::string otherwise) {
  const Value* found = find(value, path);
  return found && found->kind != Value::Kind::map && found->kind != Value::Kind::list ? found->text
                                                                                      : std::move(otherwise);
}

std::int64_t number_at(const Value& value, std::string_view path, std::int64_t otherwise) {
  const std::string text = text_at(value, path);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty() ? number : otherwise;
}

const std::vector<Value>& items_at(const Value& value, std::string_view path) {
  static const std::vector<Value> none;
  const Value* found = find(value, path);
  return found && found->kind == Value::Kind::list ? found->items : none;
}

namespace {

// Walks a text that was found to be JSON before; where it is not, it stops.
class LineFinder {
 public:
  explicit LineFinder(std::string_view text) : text_(text) {}
  std::map<std::string, int> find() {
    value("", 0);
    return std::move(lines_);
  }

 private:
  bool skip(char wanted = 0) {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r' && text_[at_] != '\n') break;
    }
    if (at_ >= text_.size() || (wanted && text_[at_] != wanted)) return false;
    if (wanted) ++at_;
    return true;
  }
  bool word(std::string& out) {
    if (!skip('"')) return false;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) out += text_[at_];
    }
    return at_++ < text_.size();
  }
  bool value(const std::string& path, int depth) {
    if (depth > 64 || !skip()) return false;
    lines_.emplace(path, line_);
    if (text_[at_] == '{') return object(path, depth);
    if (text_[at_] == '[') return list(path, depth);
    std::string ignored;
    if (text_[at_] == '"') return word(ignored);
    while (at_ < text_.size() && std::string_view(",]} \t\r\n").find(text_[at_]) == std::string_view::npos)
      ++at_;
    return true;
  }
  bool object(const std::string& path, int depth) {
    ++at_;
    if (skip('}')) return true;
    while (true) {
      std::string key;
      if (!word(key) || !skip(':') || !value(path.empty() ? key : path + "." + key, depth + 1)) return false;
      if (skip('}')) return true;
      if (!skip(',')) return false;
    }
  }
  bool list(const std::string& path, int depth) {
    ++at_;
    if (skip(']')) return true;
    for (int i = 0;; ++i) {
      if (!value(path + "[" + std::to_string(i) + "]", depth + 1)) return false;
      if (skip(']')) return true;
      if (!skip(',')) return false;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::map<std::string, int> lines_;
};

char lower_of(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char upper_of(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::map<std::string, int> lines_of(std::string_view json) { return LineFinder(json).find(); }

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower_of);
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), upper_of);
  return out;
}

bool same_word(std::string_view a, std::string_view b) { return lower(a) == lower(b); }

}  // namespace slipway::batchai
