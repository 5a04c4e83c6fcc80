// The functions of the language, by a table: what each takes is checked before it runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jmespath/node.h"

namespace slipway::jmespath {
namespace {

struct Given {  // what a function works with
  Work& work;
  const Node& node;
  std::vector<Json> values;  // null in the place of an expression
  const Node& expression(std::size_t i) const { return node.children[i].children[0]; }
  [[noreturn]] void wrong(const std::string& what) const {
    throw QueryError{node.at, fmt::format("{}() {}", node.text, what)};
  }
};

std::string_view type_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_number()) return "number";
  if (value.is_string()) return "string";
  return value.is_array() ? "array" : "object";
}

std::string_view described(const Json& value) {
  const std::string_view type = type_of(value);
  return type == "array"     ? "a list"
         : type == "object"  ? "an object"
         : type == "string"  ? "a text"
         : type == "number"  ? "a number"
         : type == "boolean" ? "true or false"
                             : "null";
}

const std::string& text_of(const Json& value) { return value.get_ref<const std::string&>(); }

// Where each character of UTF-8 begins.
std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= text.size(); ++i)
    if (i == text.size() || (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
      out.push_back(text.substr(begin, i - begin));
      begin = i;
    }
  return out;
}

// All numbers or all texts: what can be put in an order.
void check_sortable(const Given& given, const std::vector<Json>& keys) {
  for (const Json& key : keys)
    if (!(key.is_number() || key.is_string()) || key.is_number() != keys.front().is_number())
      given.wrong("compares numbers with numbers or texts with texts, and met " +
                  std::string(described(key)));
}

bool less(const Json& one, const Json& other) {
  return one.is_string() ? text_of(one) < text_of(other) : one < other;
}

std::vector<Json> keys_by(const Given& given, const Json& list) {
  std::vector<Json> keys;
  for (const Json& item : list) keys.push_back(given.work.evaluate(given.expression(1), item));
  check_sortable(given, keys);
  return keys;
}

Json sort_by(Given& given) {
  const std::vector<Json> keys = keys_by(given, given.values[0]);
  std::vector<std::size_t> order(keys.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return less(keys[a], keys[b]); });
  Json out = Json::array();
  for (const std::size_t i : order) out.push_back(given.values[0][i]);
  return out;
}

Json sort(Given& given) {
  std::vector<Json> items(given.values[0].begin(), given.values[0].end());
  check_sortable(given, items);
  std::stable_sort(items.begin(), items.end(), less);
  return Json(std::move(items));
}

Json extreme_by(Given& given, bool largest) {
  const std::vector<Json> keys = keys_by(given, given.values[0]);
  if (keys.empty()) return nullptr;
  const auto found = largest ? std::max_element(keys.begin(), keys.end(), less)
                             : std::min_element(keys.begin(), keys.end(), less);
  return given.values[0][static_cast<std::size_t>(found - keys.begin())];
}

Json extreme(Given& given, bool largest) {
  const std::vector<Json> items(given.values[0].begin(), given.values[0].end());
  check_sortable(given, items);
  if (items.empty()) return nullptr;
  return largest ? *std::max_element(items.begin(), items.end(), less)
                 : *std::min_element(items.begin(), items.end(), less);
}

Json sum(Given& given) {
  bool whole = true;
  double total = 0;
  std::int64_t exact = 0;
  for (const Json& item : given.values[0]) {
    if (!item.is_number()) given.wrong("adds numbers, and met " + std::string(described(item)));
    total += item.get<double>();
    whole =
        whole && item.is_number_integer() && !__builtin_add_overflow(exact, item.get<std::int64_t>(), &exact);
  }
  return whole ? Json(exact) : Json(total);
}

Json avg(Given& given) {
  if (given.values[0].empty()) return nullptr;
  return sum(given).get<double>() / static_cast<double>(given.values[0].size());
}

Json whole_number(double value) {
  if (std::abs(value) < 9e15) return static_cast<std::int64_t>(value);
  return value;
}

Json join(Given& given) {
  std::string out;
  bool first = true;
  for (const Json& item : given.values[1]) {
    if (!item.is_string()) given.wrong("joins texts, and met " + std::string(described(item)));
    if (!std::exchange(first, false)) out += text_of(given.values[0]);
    out += text_of(item);
  }
  return out;
}

Json contains(Given& given) {
  const Json& where = given.values[0];
  const Json& what = given.values[1];
  if (where.is_string()) return what.is_string() && text_of(where).find(text_of(what)) != std::string::npos;
  return std::any_of(where.begin(), where.end(), [&](const Json& item) { return equal(item, what); });
}

Json reverse(Given& given) {
  Json& value = given.values[0];
  if (value.is_array()) {
    std::reverse(value.begin(), value.end());
    return value;
  }
  const std::vector<std::string_view> all = characters(text_of(value));
  std::string out;
  for (auto at = all.rbegin(); at != all.rend(); ++at) out += *at;
  return out;
}

Json length(Given& given) {
  const Json& value = given.values[0];
  return value.is_string() ? characters(text_of(value)).size() : value.size();
}

Json keys(Given& given) {
  Json out = Json::array();
  for (const auto& [key, unused] : given.values[0].items()) out.push_back(key);
  return out;
}

Json values(Given& given) {
  Json out = Json::array();
  for (const Json& value : given.values[0]) out.push_back(value);
  return out;
}

Json map(Given& given) {
  Json out = Json::array();
  for (const Json& item : given.values[1]) out.push_back(given.work.evaluate(given.expression(0), item));
  return out;
}

Json merge(Given& given) {
  Json out = Json::object();
  for (const Json& object : given.values)
    for (const auto& [key, value] : object.items()) out[key] = value;
  return out;
}

Json not_null(Given& given) {
  for (const Json& value : given.values)
    if (!value.is_null()) return value;
  return nullptr;
}

Json to_number(Given& given) {
  const Json& value = given.values[0];
  if (value.is_number()) return value;
  if (!value.is_string()) return nullptr;
  const Json number = Json::parse(text_of(value), nullptr, false);
  return number.is_number() ? number : Json();
}

Json to_string(Given& given) {
  const Json& value = given.values[0];
  return value.is_string() ? value : Json(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json to_array(Given& given) {
  return given.values[0].is_array() ? given.values[0] : Json::array({given.values[0]});
}

Json abs(Given& given) {
  const Json& value = given.values[0];
  if (value.is_number_unsigned()) return value;
  if (value.is_number_integer() && value.get<std::int64_t>() != INT64_MIN)
    return std::abs(value.get<std::int64_t>());
  return std::abs(value.get<double>());
}

Json starts_with(Given& given) { return text_of(given.values[0]).starts_with(text_of(given.values[1])); }
Json ends_with(Given& given) { return text_of(given.values[0]).ends_with(text_of(given.values[1])); }

// What a function takes, a word for each argument: n number, s text, l list, o object, e expression, a
// anything; two letters for one of both. A last + repeats the last.
struct Function {
  std::string_view name;
  std::vector<std::string_view> takes;
  Json (*run)(Given&);
};

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"abs", {"n"}, abs},
      {"avg", {"l"}, avg},
      {"ceil", {"n"}, [](Given& given) { return whole_number(std::ceil(given.values[0].get<double>())); }},
      {"contains", {"sl", "a"}, contains},
      {"ends_with", {"s", "s"}, ends_with},
      {"floor", {"n"}, [](Given& given) { return whole_number(std::floor(given.values[0].get<double>())); }},
      {"join", {"s", "l"}, join},
      {"keys", {"o"}, keys},
      {"length", {"slo"}, length},
      {"map", {"e", "l"}, map},
      {"max", {"l"}, [](Given& given) { return extreme(given, true); }},
      {"max_by", {"l", "e"}, [](Given& given) { return extreme_by(given, true); }},
      {"merge", {"o+"}, merge},
      {"min", {"l"}, [](Given& given) { return extreme(given, false); }},
      {"min_by", {"l", "e"}, [](Given& given) { return extreme_by(given, false); }},
      {"not_null", {"a+"}, not_null},
      {"reverse", {"sl"}, reverse},
      {"sort", {"l"}, sort},
      {"sort_by", {"l", "e"}, sort_by},
      {"starts_with", {"s", "s"}, starts_with},
      {"sum", {"l"}, sum},
      {"to_array", {"a"}, to_array},
      {"to_number", {"a"}, to_number},
      {"to_string", {"a"}, to_string},
      {"type", {"a"}, [](Given& given) { return Json(type_of(given.values[0])); }},
      {"values", {"o"}, values},
  };
  return all;
}

const Function* find(std::string_view name) {
  for (const Function& function : functions())
    if (function.name == name) return &function;
  return nullptr;
}

bool fits(std::string_view takes, const Json& value) {
  return std::any_of(takes.begin(), takes.end(), [&](char kind) {
    return kind == 'a' || (kind == 'n' && value.is_number()) || (kind == 's' && value.is_string()) ||
           (kind == 'l' && value.is_array()) || (kind == 'o' && value.is_object());
  });
}

std::string wanted(std::string_view takes) {
  std::string out;
  for (const char kind : takes) {
    if (kind == '+') continue;
    out += out.empty() ? "" : " or ";
    out += kind == 'n' ? "a number" : kind == 's' ? "a text" : kind == 'l' ? "a list" : "an object";
  }
  return out;
}

}  // namespace

bool is_function(std::string_view name) { return find(name) != nullptr; }

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const Function& function : functions()) names.emplace_back(function.name);
  return names;
}

Json call(Work& work, const Node& node, const Json& data) {
  const Function& function = *find(node.text);
  Given given{work, node, {}};
  const bool repeats = function.takes.back().ends_with('+');
  const std::size_t count = node.children.size(), needed = function.takes.size();
  if (count < needed || (count > needed && !repeats))
    given.wrong(fmt::format("takes {}{} argument{}, not {}", repeats ? "at least " : "", needed,
                            needed == 1 ? "" : "s", count));
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view takes = function.takes[std::min(i, needed - 1)];
    const Node& child = node.children[i];
    if ((takes == "e") != (child.kind == Kind::expression))
      given.wrong(takes == "e" ? fmt::format("takes an expression as argument {}: &name", i + 1)
                               : fmt::format("does not take an expression as argument {}", i + 1));
    given.values.push_back(takes == "e" ? Json() : work.evaluate(child, data));
    if (takes != "e" && !fits(takes, given.values.back()))
      given.wrong(fmt::format("takes {} as argument {}, not {}", wanted(takes), i + 1,
                              described(given.values.back())));
    work.charge(node, given.values.back());
  }
  return function.run(given);
}

}  // namespace slipway::jmespath
