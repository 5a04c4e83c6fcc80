#include "wire/snapshot.h"

#include <fmt/format.h>

#include <utility>

#include "wire/protocol_fields.h"

namespace slipway::wire {
namespace {

std::string_view kind_name(SnapshotKind kind) {
  return kind == SnapshotKind::file ? "file" : kind == SnapshotKind::folder ? "folder" : "link";
}

}  // namespace

std::string format(const Snapshot& snapshot) {
  Json list = Json::array();
  for (const SnapshotEntry& entry : snapshot.entries) {
    Json item{{"path", entry.path}, {"kind", kind_name(entry.kind)}};
    if (entry.kind == SnapshotKind::file) {
      item["executable"] = entry.executable;
      item["hash"] = entry.hash;
      item["size"] = entry.size;
    }
    if (entry.kind == SnapshotKind::link) item["target"] = entry.target;
    list.push_back(std::move(item));
  }
  return Json{{"entries", std::move(list)}}.dump();
}

Result<Snapshot> parse_snapshot(std::string_view text) {
  auto parsed = guarded<Snapshot>("the snapshot's manifest", text, [](const Json& json) -> Result<Snapshot> {
    Snapshot snapshot;
    for (const Json& item : json.at("entries")) {
      SnapshotEntry entry;
      entry.path = item.at("path").get<std::string>();
      const auto& kind = item.at("kind").get_ref<const std::string&>();
      if (kind == "file") {
        entry.executable = item.at("executable").get<bool>();
        entry.hash = item.at("hash").get<std::string>();
        entry.size = integer<Bytes>(item.at("size"));
      } else if (kind == "link") {
        entry.kind = SnapshotKind::link;
        entry.target = item.at("target").get<std::string>();
      } else if (kind == "folder") {
        entry.kind = SnapshotKind::folder;
      } else {
        return fail(ErrorCode::invalid,
                    fmt::format("the snapshot's manifest has an entry of unknown kind '{}'", kind));
      }
      snapshot.entries.push_back(std::move(entry));
    }
    return snapshot;
  });
  if (!parsed) return parsed;
  if (auto valid = validate(*parsed); !valid) return fail(valid.error());
  return parsed;
}

}  // namespace slipway::wire
