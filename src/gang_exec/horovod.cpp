#include "gang_exec/horovod.h"

#include <fmt/format.h>

#include "base/shell.h"
#include "gang_exec/interface.h"

namespace slipway::gang_exec {

std::vector<HorovodSlot> horovod_slots(const std::vector<std::uint32_t>& processes_of_node) {
  std::vector<HorovodSlot> slots;
  std::map<std::uint32_t, std::uint32_t> nodes_with;  // local rank → nodes so far
  for (std::size_t node = 0; node < processes_of_node.size(); ++node)
    for (std::uint32_t local = 0; local < processes_of_node[node]; ++local) {
      HorovodSlot slot;
      slot.node = node;
      slot.rank = static_cast<std::uint32_t>(slots.size());
      slot.local_rank = local;
      slot.local_size = processes_of_node[node];
      slot.cross_rank = nodes_with[local]++;
      slots.push_back(slot);
    }
  for (HorovodSlot& slot : slots) {
    slot.size = static_cast<std::uint32_t>(slots.size());
    slot.cross_size = nodes_with[slot.local_rank];
  }
  return slots;
}

Environment gloo_variables(const Gang& gang, const HorovodSlot& slot, const Environment& own) {
  const GangNode& first = gang.nodes.front();
  Environment variables{
      {"HOROVOD_RANK", std::to_string(slot.rank)},
      {"HOROVOD_SIZE", std::to_string(slot.size)},
      {"HOROVOD_LOCAL_RANK", std::to_string(slot.local_rank)},
      {"HOROVOD_LOCAL_SIZE", std::to_string(slot.local_size)},
      {"HOROVOD_CROSS_RANK", std::to_string(slot.cross_rank)},
      {"HOROVOD_CROSS_SIZE", std::to_string(slot.cross_size)},
      {"HOROVOD_HOSTNAME", gang.nodes[slot.node].name},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", first.address},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", std::to_string(first.port)},
      {"HOROVOD_CONTROLLER", "gloo"},
      {"HOROVOD_CPU_OPERATIONS", "gloo"},
      {"PYTHONUNBUFFERED", "1"},
  };
  if (slot.node != gang.own) return variables;
  const std::string interface = interface_of(gang.self().address);
  for (const char* name : {"HOROVOD_GLOO_IFACE", "NCCL_SOCKET_IFNAME"})
    if (!own.contains(name) && !interface.empty()) variables[name] = interface;
  return variables;
}

std::string gloo_line(const std::vector<std::string>& command, const Environment& own) {
  std::string line;
  for (const char* name : {"HOROVOD_GLOO_IFACE", "NCCL_SOCKET_IFNAME"})
    if (!own.contains(name))
      line += fmt::format("[ -z \"$SLIPWAY_INTERFACE\" ] || export {}=\"$SLIPWAY_INTERFACE\"; ", name);
  return line + "exec " + quote_for_shell(command);
}

KeyValueStore::KeyValueStore(const Gang& gang, const std::vector<HorovodSlot>& slots) {
  for (const HorovodSlot& slot : slots) {
    ranks_of_["global"] = slot.size;
    ranks_of_["local_" + gang.nodes[slot.node].name] = slot.local_size;
    ranks_of_["cross_" + std::to_string(slot.local_rank)] = slot.cross_size;
  }
}

KeyValueStore::Answer KeyValueStore::answer(std::string_view method, std::string_view path,
                                            std::string_view body) {
  const std::size_t slash = path.find('/', 1);
  if (!path.starts_with('/') || slash == std::string_view::npos || slash == 1 || slash + 1 == path.size())
    return {400, "a path is /scope/key\n"};
  if (path.size() > key_max) return {414, "the key is too long\n"};
  const std::string_view scope = path.substr(1, slash - 1), key = path.substr(slash + 1);
  if (method == "PUT") return {put(scope, key, body)};
  if (method == "DELETE") {
    remove(scope, key);
    return {};
  }
  if (method != "GET") return {405};
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return {404};
  const auto value = found->second.values.find(key);
  if (value == found->second.values.end()) return {404};
  return {200, value->second};
}

int KeyValueStore::put(std::string_view scope, std::string_view key, std::string_view value) {
  const std::size_t size = scope.size() + key.size() + value.size();
  if (value.size() > value_max || total_ + size > total_max) return 413;
  Scope& place = scopes_[std::string(scope)];
  const auto [at, is_new] = place.values.try_emplace(std::string(key), value);
  if (is_new) {
    total_ += size;
  } else {
    total_ += value.size();
    total_ -= at->second.size();
    at->second = value;
  }
  return 200;
}

void KeyValueStore::forget(Scope& scope) {
  std::size_t size = 0;
  for (const auto& [key, value] : scope.values) size += key.size() + value.size();
  total_ -= std::min(total_, size);
  scope.values.clear();
  scope.done.clear();
}

void KeyValueStore::remove(std::string_view scope, std::string_view key) {
  const auto ranks = ranks_of_.find(scope);
  if (ranks != ranks_of_.end()) {
    Scope& place = scopes_[std::string(scope)];
    if (place.done.size() < ranks->second) place.done.emplace(key);
    if (place.done.size() >= ranks->second) forget(place);
    return;
  }
  const auto found = scopes_.find(scope);  // one that the ranks made for themselves
  if (found == scopes_.end()) return;
  const auto value = found->second.values.find(key);
  if (value == found->second.values.end()) return;
  total_ -= std::min(total_, key.size() + value->second.size());
  found->second.values.erase(value);
  if (found->second.values.empty()) scopes_.erase(found);
}

}  // namespace slipway::gang_exec
