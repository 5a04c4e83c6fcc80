#pragma once
// Reading of what FieldReader has no getter for. Included in .cpp files only.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "domain/job.h"
#include "wire/document.h"

namespace slipway::wire {

// Nothing sent is the same as an empty object.
inline Result<Value> parse_body(std::string_view json) {
  return parse_json(json.empty() ? std::string_view("{}") : json, "the request");
}

// Reads a map inside another with a reader of its own; what it finds wrong is the outer one's problem.
template <class Read>
void read_inside(FieldReader& outer, std::string_view key, Read read) {
  const Value* value = outer.value(key);
  if (!value) return;
  if (value->kind != Value::Kind::map)
    return outer.problem(*value, fmt::format("{} should be a map of keys and values", key), {});
  FieldReader reader(*value, outer.document(),
                     outer.path().empty() ? std::string(key) : fmt::format("{}.{}", outer.path(), key));
  read(reader);
  if (auto finished = reader.finish(); !finished) outer.problem(finished.error());
}

// Tags that are `reserved` are refused: a service knows them, a client does not.
inline Tags read_tags(FieldReader& reader, const std::vector<ReservedTags>& reserved) {
  Tags tags;
  for (auto& [name, value] : reader.text_map("tags")) {
    if (const ReservedTags* owner = owner_of_tag(name, reserved))
      reader.problem(*reader.value("tags"), fmt::format("the tag {} is reserved", name),
                     fmt::format("tags that begin with '{}' belong to {}", owner->prefix, owner->owner));
    tags[name] = value;
  }
  return tags;
}

}  // namespace slipway::wire
