// Folders, datastores, and jobs by their tags.
#include <fmt/format.h>

#include <algorithm>

#include "control/catalog.h"
#include "control/nodes.h"
#include "control/permit.h"
#include "domain/layout.h"

namespace slipway::control {

FolderRecord put_folder(Turn& turn, const Caller& caller, const std::string& path, Tags tags) {
  const auto [found, is_new] = turn.state.folders.try_emplace({caller.workspace, path});
  FolderRecord& record = found->second;
  if (is_new) {
    record.workspace = caller.workspace;
    record.path = path;
    record.created_at = turn.now;
  }
  record.changed_at = turn.now;
  record.tags = std::move(tags);
  std::erase(turn.effects.changes.folders_removed, found->first);
  std::erase_if(turn.effects.changes.folders, [&](const FolderRecord& one) {
    return Named{one.workspace, one.path} == found->first;
  });
  turn.effects.changes.folders.push_back(record);
  return record;
}

const FolderRecord* find_folder(const State& state, const Caller& caller, const std::string& path) {
  const auto found = state.folders.find({caller.workspace, path});
  return found == state.folders.end() ? nullptr : &found->second;
}

std::vector<FolderRecord> list_folders(const State& state, const Caller& caller, const std::string& prefix) {
  std::vector<FolderRecord> found;
  for (auto at = state.folders.lower_bound({caller.workspace, prefix});
       at != state.folders.end() && at->first.first == caller.workspace &&
       at->first.second.starts_with(prefix);
       ++at)
    found.push_back(at->second);
  return found;
}

void remove_folder(Turn& turn, const Caller& caller, const std::string& path) {
  const Named key{caller.workspace, path};
  if (turn.state.folders.erase(key) == 0) return;
  std::erase_if(turn.effects.changes.folders, [&](const FolderRecord& one) {
    return Named{one.workspace, one.path} == key;
  });
  turn.effects.changes.folders_removed.push_back(key);
}

Result<DatastoreRecord> put_datastore(Turn& turn, const Caller& caller, DatastoreRecord record) {
  if (auto named = validate_name("datastore", record.name); !named) return fail(named.error());
  if (!record.path.empty() && record.path.front() != '/')
    return fail(ErrorCode::invalid,
                fmt::format("datastore {}: path '{}' is not absolute", record.name, record.path),
                "name a folder that all nodes see, beginning with '/'");
  if (!record.path.empty() && !record.url.empty())
    return fail(ErrorCode::invalid, fmt::format("datastore {} has a path and a URL", record.name),
                "keep one of them");
  record.workspace = caller.workspace;
  const Named key{record.workspace, record.name};
  const auto known = turn.state.datastores.find(key);
  const bool is_known = known != turn.state.datastores.end();
  if (is_known)
    if (auto may = permit(caller, {Object::datastore, Verb::update}, "datastore " + record.name,
                          known->second.owner);
        !may)
      return fail(may.error());
  if (!record.path.empty() || !record.url.empty())
    if (auto may = permit(caller, {Object::datastore, Verb::expose}, "datastore " + record.name, {}); !may)
      return fail(may.error());
  // Deleting it continues, also after a restart, and would take what is put there now.
  if (turn.state.removals.contains(datastore_folder(record.workspace, record.name)))
    return fail(ErrorCode::conflict,
                fmt::format("the files of an earlier datastore {} are still being deleted", record.name),
                "try again shortly, or choose another name");
  record.owner = is_known ? known->second.owner : caller.name;
  record.created_at = is_known ? known->second.created_at : turn.now;
  turn.state.datastores[key] = record;
  std::erase(turn.effects.changes.datastores_removed, key);
  std::erase_if(turn.effects.changes.datastores, [&](const DatastoreRecord& one) {
    return Named{one.workspace, one.name} == key;
  });
  turn.effects.changes.datastores.push_back(record);
  return record;
}

Result<DatastoreRecord> show_datastore(const State& state, const Caller& caller, const std::string& name) {
  const auto found = state.datastores.find({caller.workspace, name});
  if (found != state.datastores.end()) return found->second;
  return fail(ErrorCode::not_found, fmt::format("there is no datastore {}", name.substr(0, 200)),
              "slipway datastore list shows those there are");
}

std::vector<DatastoreRecord> list_datastores(const State& state, const Caller& caller) {
  std::vector<DatastoreRecord> found;
  for (const auto& [key, record] : state.datastores)
    if (key.first == caller.workspace) found.push_back(record);
  return found;
}

Result<void> delete_datastore(Turn& turn, const Caller& caller, const std::string& name) {
  auto known = show_datastore(turn.state, caller, name);
  if (!known) return fail(known.error());
  if (auto may = permit(caller, {Object::datastore, Verb::remove}, "datastore " + name, known->owner); !may)
    return may;
  const Named key{caller.workspace, name};
  for (const auto& [id, job] : turn.state.jobs) {
    if (job.record.workspace != caller.workspace) continue;
    for (std::uint32_t group = 0; group < job.groups.size(); ++group) {
      auto spec = spec_of(turn, id, group);
      if (!spec) return fail(spec.error());
      for (const Mount& mount : (*spec)->mounts)
        if (mount.kind == MountKind::datastore && mount.what == name)
          return fail(ErrorCode::conflict,
                      fmt::format("{} has not ended, and mounts datastore {}", to_string(id), name),
                      fmt::format("wait for it, or: slipway job cancel {}", to_string(id)));
    }
  }
  turn.state.datastores.erase(key);
  std::erase_if(turn.effects.changes.datastores, [&](const DatastoreRecord& one) {
    return Named{one.workspace, one.name} == key;
  });
  turn.effects.changes.datastores_removed.push_back(key);
  remove_files(turn, datastore_folder(caller.workspace, name));
  return {};
}

void remove_files(Turn& turn, const std::string& folder) {
  if (!turn.state.removals.insert(folder).second) return;
  turn.effects.changes.removals.push_back(folder);
  turn.effects.outputs.folders_removed.push_back(folder);
}

void on_files_removed(Turn& turn, const std::string& folder) {
  if (turn.state.removals.erase(folder) > 0) turn.effects.changes.removals_done.push_back(folder);
}

// So many at once; the others when these are done.
static void order_removal(Turn& turn, Node& node, const std::string& folder) {
  constexpr std::size_t removals_at_once = 1'000;
  if (!node.session || node.removals_ordered == removals_at_once) return;
  orders_to(turn, node).remove.push_back(folder);
  ++node.removals_ordered;
}

static void order_removals(Turn& turn, Node& node) {
  if (const auto found = turn.state.node_removals.find(node.record.id);
      found != turn.state.node_removals.end())
    for (const std::string& folder : found->second) order_removal(turn, node, folder);
}

void remove_on_nodes(Turn& turn, const std::string& workspace, const std::string& folder) {
  for (auto& [id, node] : turn.state.nodes) {
    if (node.record.workspace != workspace || node.record.local || node.record.shares_storage) continue;
    if (!turn.state.node_removals[id].insert(folder).second) continue;
    turn.effects.changes.node_removals.emplace_back(id, folder);
    order_removal(turn, node, folder);
  }
}

void settle_removals(Turn& turn, Node& node) {
  node.removals_ordered = 0;
  if (node.record.shares_storage) {  // it does now: what it had of its own is out of reach
    if (auto mine = turn.state.node_removals.extract(node.record.id))
      for (const std::string& folder : mine.mapped())
        turn.effects.changes.node_removals_done.emplace_back(node.record.id, folder);
    return;
  }
  order_removals(turn, node);
}

void on_removed_on_node(Turn& turn, Node& node, const std::string& folder) {
  const auto found = turn.state.node_removals.find(node.record.id);
  if (found == turn.state.node_removals.end() || found->second.erase(folder) == 0) return;
  turn.effects.changes.node_removals_done.emplace_back(node.record.id, folder);
  if (found->second.empty()) turn.state.node_removals.erase(found);
  if (node.removals_ordered > 0 && --node.removals_ordered == 0) order_removals(turn, node);
}

}  // namespace slipway::control
