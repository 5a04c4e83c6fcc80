#include "wire/mounts.h"

#include <fmt/format.h>

#include <array>

namespace slipway::wire {
namespace {

constexpr std::array kinds{MountKind::datastore, MountKind::path, MountKind::command, MountKind::scratch,
                           MountKind::shared};

bool is_switch(MountKind kind) { return kind == MountKind::scratch || kind == MountKind::shared; }

Mount read_mount(FieldReader& reader, const Value& here) {
  Mount mount;
  mount.at = reader.text("at");
  mount.folder = reader.text("folder");
  mount.read_only = reader.boolean("read_only", false);
  int given = 0;
  for (const MountKind kind : kinds) {
    const std::string key(to_string(kind));
    if (!reader.has(key) || (is_switch(kind) && !reader.boolean(key, false))) continue;
    ++given;
    mount.kind = kind;
    if (!is_switch(kind)) mount.what = reader.text(key);
  }
  if (given != 1)
    reader.problem(here, fmt::format("{} should say one thing to mount", reader.path()),
                   "one of datastore: NAME, path: FOLDER, command: LINE, scratch: true and shared: true");
  return mount;
}

}  // namespace

Json mounts_json(const std::vector<Mount>& mounts) {
  Json list = Json::array();
  for (const Mount& mount : mounts) {
    Json& json = list.emplace_back(Json{{"at", mount.at}});
    json[std::string(to_string(mount.kind))] = is_switch(mount.kind) ? Json(true) : Json(mount.what);
    if (!mount.folder.empty()) json["folder"] = mount.folder;
    if (mount.read_only) json["read_only"] = true;
  }
  return list;
}

std::vector<Mount> read_mounts(FieldReader& outer) {
  std::vector<Mount> mounts;
  const Value* value = outer.value("mounts");
  if (!value) return mounts;
  if (value->kind != Value::Kind::list) {
    outer.problem(*value, fmt::format("mounts should be a list, not {}", describe(value->kind)),
                  "begin each with '- at: …'");
    return mounts;
  }
  mounts.reserve(value->items.size());
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const Value& item = value->items[i];
    FieldReader reader(item, outer.document(),
                       fmt::format("{}{}mounts[{}]", outer.path(), outer.path().empty() ? "" : ".", i));
    mounts.push_back(read_mount(reader, item));
    if (auto finished = reader.finish(); !finished)
      outer.problem(item, finished.error().what, finished.error().hint);
  }
  return mounts;
}

}  // namespace slipway::wire
