#include "compat/batchai/operations.h"

#include <fmt/format.h>

#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

constexpr const char* folder_prefix = "batchai-operations/";
constexpr Duration kept = 24h;

constexpr const char* kind_words[] = {"create", "remove", "terminate"};

}  // namespace

bool is_done(const Registry& registry, Operation::Kind kind, Noun noun, const ResourceId& resource) {
  if (kind == Operation::Kind::create) return true;
  if (kind == Operation::Kind::remove) return registry.is_gone(noun, resource);
  const auto job = registry.job(resource);
  return job && (!*job || is_terminal((*job)->state));
}

void begin_operation(Registry& registry, const Operation& operation, TimePoint now) {
  control::Controller& controller = registry.controller();
  for (const FolderRecord& old : controller.folders(registry.caller(), folder_prefix))
    if (now - old.created_at > kept) controller.remove_folder(registry.caller(), old.path);
  Tags tags{{"kind", kind_words[static_cast<int>(operation.kind)]},
            {"noun", noun_word(operation.noun)},
            {tag::resource_id, format_resource_id(operation.noun, operation.resource)}};
  if (operation.is_slow) tags["slow"] = "yes";
  controller.put_folder(registry.caller(), folder_prefix + operation.id, std::move(tags));
}

Answer<Value> poll_operation(Registry& registry, const std::string& id, const std::string& url,
                             TimePoint now) {
  control::Controller& controller = registry.controller();
  const FolderRecord* found = controller.folder(registry.caller(), folder_prefix + id);
  if (!found)
    return refuse(404, "OperationNotFound",
                  fmt::format("there is no operation {}; they are kept for a day", id.substr(0, 50)));
  FolderRecord record = *found;
  Value value = object_value({{"id", text_value(url)},
                              {"name", text_value(id)},
                              {"status", text_value("InProgress")},
                              {"startTime", time_value(record.created_at)}});
  if (record.tags.erase("slow") > 0) {
    controller.put_folder(registry.caller(), record.path, record.tags);
    return value;
  }
  if (!record.tags.contains("ended")) {
    auto kind = Operation::Kind::create;
    for (int i = 0; i < 3; ++i)
      if (record.tags["kind"] == kind_words[i]) kind = static_cast<Operation::Kind>(i);
    registry.sweep();
    const Noun noun = noun_of(record.tags["noun"]);
    if (!is_done(registry, kind, noun, parse_resource_id(noun, record.tags[tag::resource_id]))) return value;
    record.tags["ended"] = time_value(now).text;
    controller.put_folder(registry.caller(), record.path, record.tags);
  }
  const Noun noun = noun_of(record.tags["noun"]);
  set(value, "status", text_value("Succeeded"));
  set(value, "endTime", text_value(record.tags["ended"]));
  set(value, "properties",
      object_value({{"resourceId",
                     text_value(dollar_id(noun, parse_resource_id(noun, record.tags[tag::resource_id])))}}));
  return value;
}

}  // namespace slipway::batchai
