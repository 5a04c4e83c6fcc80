#include "wire/datastore.h"

#include "wire/document.h"
#include "wire/json.h"

namespace slipway::wire {

Result<DatastoreRecord> parse_datastore(std::string_view json) {
  DatastoreRecord record;
  if (json.empty()) return record;
  const Result<Value> value = parse_json(json, "the request");
  if (!value) return fail(value.error());
  if (value->kind != Value::Kind::map)
    return fail(ErrorCode::invalid, "the request should be an object", R"({"path": "/shared/data"}, or {})");
  FieldReader reader(*value, "the request", "");
  record.path = reader.text("path");
  record.url = reader.text("url");
  record.key = reader.text("key");
  if (const auto read = reader.finish(); !read) return fail(read.error());
  if (!record.path.empty() && !record.url.empty())
    return fail(ErrorCode::invalid, "a datastore has a path or a url, not both", "leave one of them out");
  if (!record.path.empty() && !record.path.starts_with("/"))
    return fail(ErrorCode::invalid, "path: '" + record.path.substr(0, 200) + "' is not absolute",
                "name the folder from /, as all nodes see it");
  if (!record.key.empty() && record.url.empty())
    return fail(ErrorCode::invalid, "a key belongs to a url", "add url, or leave key out");
  return record;
}

std::string format(const DatastoreRecord& datastore) {
  Json json{{"name", datastore.name}};
  json["path"] = datastore.path.empty() ? Json() : Json(datastore.path);
  // One that was stored before a SAS was split off has it here.
  const std::string url = datastore.url.substr(0, datastore.url.find('?'));
  json["url"] = url.empty() ? Json() : Json(url);
  json["owner"] = datastore.owner.empty() ? Json() : Json(datastore.owner);
  json["created_at"] = format_time(datastore.created_at);
  return dump(json);
}

std::string format_stored_file(const std::string& name, std::string_view kind, std::uint64_t size,
                               TimePoint modified_at) {
  return dump(
      Json{{"name", name}, {"kind", kind}, {"size", size}, {"modified_at", format_time(modified_at)}});
}

}  // namespace slipway::wire
