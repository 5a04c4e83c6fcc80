#include <fmt/format.h>

#include <algorithm>

#include "jmespath/node.h"

namespace slipway::jmespath {
namespace {

std::uint64_t size_of(const Json& value) {
  std::uint64_t size = 1;
  if (value.is_string()) size += value.get_ref<const std::string&>().size() / 16;
  if (value.is_structured())
    for (const Json& item : value) size += size_of(item);
  return size;
}

Json item_at(const Json& list, std::int64_t index) {
  if (!list.is_array()) return nullptr;
  const auto size = static_cast<std::int64_t>(list.size());
  if (index < 0) index += size;
  return index < 0 || index >= size ? Json() : list[static_cast<std::size_t>(index)];
}

// Which items Python's list[start:stop:step] takes.
Json slice_of(const Json& list, const Node& node) {
  if (!list.is_array()) return nullptr;
  const auto size = static_cast<std::int64_t>(list.size());
  const std::int64_t step = node.step.value_or(1);
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](const std::optional<std::int64_t>& given, std::int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + size : *given, low, high);
  };
  const std::int64_t start = bound(node.start, step > 0 ? low : high),
                     stop = bound(node.stop, step > 0 ? high : low);
  Json out = Json::array();
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
    out.push_back(list[static_cast<std::size_t>(i)]);
  return out;
}

Json compare(const std::string& how, const Json& left, const Json& right) {
  if (how == "==") return equal(left, right);
  if (how == "!=") return !equal(left, right);
  if (!left.is_number() || !right.is_number()) return nullptr;
  if (how == "<") return left < right;
  if (how == "<=") return left <= right;
  if (how == ">") return left > right;
  return left >= right;
}

Json flattened(const Json& list) {
  if (!list.is_array()) return nullptr;
  Json out = Json::array();
  for (const Json& item : list) {
    if (!item.is_array())
      out.push_back(item);
    else
      for (const Json& inner : item) out.push_back(inner);
  }
  return out;
}

}  // namespace

bool is_true(const Json& value) {
  if (value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.is_structured() || !value.empty();
}

bool equal(const Json& one, const Json& other) {
  if (!one.is_object() || !other.is_object()) {
    if (!one.is_array() || !other.is_array()) return one == other;
    return one.size() == other.size() && std::equal(one.begin(), one.end(), other.begin(), equal);
  }
  if (one.size() != other.size()) return false;
  for (const auto& [key, value] : one.items()) {
    const auto found = other.find(key);
    if (found == other.end() || !equal(value, *found)) return false;
  }
  return true;
}

void Work::spend(const Node& node, std::uint64_t amount) {
  spent_ += amount;
  if (spent_ > work_max)
    throw QueryError{node.at, "this makes too much of too little: the query was given up"};
}

void Work::charge(const Node& node, const Json& value) { spend(node, size_of(value)); }

Json Work::project(const Node& node, const Json& data) {
  const Json left = evaluate(node.children[0], data);
  const bool of_object = node.kind == Kind::object_projection;
  if (of_object ? !left.is_object() : !left.is_array()) return nullptr;
  Json out = Json::array();
  for (const Json& item : left) {
    if (node.kind == Kind::filter_projection && !is_true(evaluate(node.children[2], item))) continue;
    Json made = evaluate(node.children[1], item);
    if (!made.is_null()) out.push_back(std::move(made));
  }
  return out;
}

Json Work::make(const Node& node, const Json& data) {
  if (data.is_null()) return nullptr;
  Json out = node.kind == Kind::list ? Json::array() : Json::object();
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    Json value = evaluate(node.children[i], data);
    charge(node, value);
    if (node.kind == Kind::list)
      out.push_back(std::move(value));
    else
      out[node.names[i]] = std::move(value);
  }
  return out;
}

Json Work::evaluate(const Node& node, const Json& data) {
  spend(node, 1);
  const auto child = [&](std::size_t i) { return evaluate(node.children[i], data); };
  switch (node.kind) {
    case Kind::current: charge(node, data); return data;
    case Kind::field: {
      if (!data.is_object()) return nullptr;
      const auto found = data.find(node.text);
      if (found == data.end()) return nullptr;
      charge(node, *found);
      return *found;
    }
    case Kind::index: return item_at(child(0), *node.start);
    case Kind::slice: return slice_of(child(0), node);
    case Kind::chain: return evaluate(node.children[1], child(0));
    case Kind::list_projection:
    case Kind::object_projection:
    case Kind::filter_projection: return project(node, data);
    case Kind::flatten: return flattened(child(0));
    case Kind::either: {
      Json left = child(0);
      return is_true(left) ? left : child(1);
    }
    case Kind::both: {
      Json left = child(0);
      return is_true(left) ? child(1) : left;
    }
    case Kind::negation: return !is_true(child(0));
    case Kind::comparison: return compare(node.text, child(0), child(1));
    case Kind::literal: charge(node, node.value); return node.value;
    case Kind::list:
    case Kind::object: return make(node, data);
    case Kind::call: {
      Json result = call(*this, node, data);
      charge(node, result);
      return result;
    }
    case Kind::expression:
      throw QueryError{node.at, "& stands only before what a function like sort_by is given"};
  }
  return nullptr;
}

Json evaluate(const Node& root, const Json& data) { return Work().evaluate(root, data); }

}  // namespace slipway::jmespath
