#include "compat/batchai/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.h"

namespace slipway::batchai {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string trimmed(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

bool lies_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// Without doubled slashes, dots, and a slash at the end. ".." does not get here: it is refused before.
std::string normal(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0 && path.substr(0, slash) != ".") out += "/" + std::string(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out.empty() ? "/" : out;
}

}  // namespace

std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  std::string literal;
  for (std::size_t at = 0; at < text.size();) {
    const bool braced = text.substr(at).starts_with("${");
    const std::size_t begin = at + (braced ? 2 : 1);
    std::size_t end = begin;
    while (text[at] == '$' && end < text.size() && is_word(text[end])) ++end;
    const bool is_name = end > begin && !(text[begin] >= '0' && text[begin] <= '9') &&
                         (!braced || (end < text.size() && text[end] == '}'));
    if (!is_name) {
      literal += text[at++];
      continue;
    }
    if (!literal.empty()) pieces.push_back({std::exchange(literal, {}), ""});
    const std::size_t next = end + (braced ? 1 : 0);
    pieces.push_back({std::string(text.substr(at, next - at)), std::string(text.substr(begin, end - begin))});
    at = next;
  }
  if (!literal.empty()) pieces.push_back({std::move(literal), ""});
  return pieces;
}

Expanded expand(std::string_view text, const Environment& known) {
  Expanded out;
  for (const Piece& piece : pieces_of(text)) {
    const auto value = piece.name.empty() ? known.end() : known.find(piece.name);
    out.text += value == known.end() ? piece.text : value->second;
    if (!piece.name.empty() && value == known.end()) out.unknown.push_back(piece.name);
  }
  return out;
}

std::string join_path(std::string_view a, std::string_view b) {
  const std::string rest = trimmed(b);
  while (a.size() > 1 && a.ends_with('/')) a.remove_suffix(1);
  if (rest.empty()) return std::string(a);
  return a.empty() ? rest : a == "/" ? "/" + rest : std::string(a) + "/" + rest;
}

std::string job_segment(const ResourceId& resource, std::string_view uuid) {
  return fmt::format("{}/{}/workspaces/{}/experiments/{}/jobs/{}/{}", resource.subscription, resource.group,
                     resource.workspace, resource.experiment, resource.name, uuid);
}

std::string cluster_segment(const ResourceId& resource, std::string_view uuid) {
  return fmt::format("{}/{}/workspaces/{}/clusters/{}/{}", resource.subscription, resource.group,
                     resource.workspace, resource.name, uuid);
}

std::string valid_name(std::string_view text) {
  std::string name;
  for (const char c : text) name += is_word(c) || c == '-' || c == '.' ? c : '-';
  while (!name.empty() && (name.front() == '-' || name.front() == '.' || name.front() == '_'))
    name.erase(0, 1);
  if (name.empty()) name = "x";
  if (name.size() > 100) name = name.substr(0, 80) + "-" + sha256_hex(text).substr(0, 12);
  return name;
}

std::string share_datastore(std::string_view account, std::string_view share) {
  return valid_name(lower(fmt::format("{}.file.{}", account, share)));
}

std::string container_datastore(std::string_view account, std::string_view container) {
  return valid_name(lower(fmt::format("{}.blob.{}", account, container)));
}

std::pair<std::string, std::string> split_share_url(std::string_view url) {
  if (const std::size_t scheme = url.find("://"); scheme != std::string_view::npos)
    url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t slash = std::min(url.find('/'), url.size());
  const std::string_view host = url.substr(0, slash);
  return {std::string(host.substr(0, host.find_first_of(".:"))), trimmed(url.substr(slash))};
}

std::vector<std::string> servers_in(const Value& volumes) {
  std::vector<std::string> keys;
  for (const Value& item : items_at(volumes, "fileServers"))
    if (const auto target = parse_id(text_at(item, "fileServer.id")); target)
      keys.push_back(key_of(Noun::file_server, target->resource));
  return keys;
}

std::vector<Mount> mounts_of(const Value& volumes, std::string_view under, const std::string& path,
                             const FileServers& servers, Problems& problems) {
  std::vector<Mount> mounts;
  const auto at = [&](const Value& item) { return join_path(under, text_at(item, "relativeMountPath")); };
  const auto& shares = items_at(volumes, "azureFileShares");
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto [label, share] = split_share_url(text_at(shares[i], "azureFileUrl"));
    const std::string account = text_at(shares[i], "accountName", label);
    const std::string here = fmt::format("{}.azureFileShares[{}]", path, i);
    if (share.empty() || account.empty() || account.starts_with('<'))
      problems.push_back(
          {here + ".azureFileUrl",
           fmt::format("{}.azureFileUrl is '{}'; write https://ACCOUNT.file.core.windows.net/SHARE", here,
                       text_at(shares[i], "azureFileUrl").substr(0, 200))});
    const std::size_t slash = std::min(share.find('/'), share.size());
    mounts.push_back({at(shares[i]), MountKind::datastore, share_datastore(account, share.substr(0, slash)),
                      trimmed(std::string_view(share).substr(slash)), false});
  }
  for (const Value& item : items_at(volumes, "azureBlobFileSystems"))
    mounts.push_back({at(item), MountKind::datastore,
                      container_datastore(text_at(item, "accountName"), text_at(item, "containerName")), "",
                      false});
  const auto& exports = items_at(volumes, "fileServers");
  for (std::size_t i = 0; i < exports.size(); ++i) {
    const std::string here = fmt::format("{}.fileServers[{}].fileServer.id", path, i);
    const std::string id = text_at(exports[i], "fileServer.id");
    const auto target = parse_id(id);
    const auto server = target && target->noun == Noun::file_server
                            ? servers.find(key_of(Noun::file_server, target->resource))
                            : servers.end();
    if (server == servers.end()) {
      problems.push_back(
          {here, fmt::format("{} names {}, which is no file server there is", here, id.substr(0, 300))});
      continue;
    }
    const std::string options = "," + text_at(exports[i], "mountOptions") + ",";
    mounts.push_back({at(exports[i]), MountKind::datastore, server->second,
                      trimmed(text_at(exports[i], "sourceDirectory")),
                      options.find(",ro,") != std::string::npos});
  }
  for (const Value& item : items_at(volumes, "unmanagedFileSystems"))
    mounts.push_back({at(item), MountKind::command, text_at(item, "mountCommand"), "", false});
  return mounts;
}

JobPaths job_paths(const Value& properties, const ResourceId& resource, std::string_view uuid,
                   Problems& problems) {
  JobPaths paths;
  const std::string root(mount_root);
  paths.temp = fmt::format("{}/jobs/{}/{}/{}", root, resource.workspace, resource.experiment, resource.name);
  paths.mounts = paths.temp + "/mounts";
  paths.shared = paths.temp + "/shared";
  paths.host_file = paths.temp + "/hostfile";
  paths.known = {{"AZ_BATCHAI_ROOT", root},
                 {"AZ_BATCHAI_MOUNT_ROOT", root + "/mounts"},
                 {"AZ_BATCHAI_JOB_MOUNT_ROOT", paths.mounts},
                 {"AZ_BATCHAI_JOB_TEMP", paths.temp},
                 {"AZ_BATCHAI_JOB_TEMP_DIR", paths.temp},
                 {"AZ_BATCHAI_SHARED_JOB_TEMP", paths.shared},
                 {"AZ_BATCHAI_MPI_HOST_FILE", paths.host_file}};
  const std::string segment = job_segment(resource, uuid);
  const Environment roots = paths.known;
  const auto absolute = [&](const std::string& text, const std::string& where) -> std::string {
    const Expanded expanded = expand(text, roots);
    if (!expanded.unknown.empty())
      problems.push_back({where, fmt::format("{} uses ${}, which is not known there; use {}", where,
                                             expanded.unknown.front(),
                                             "$AZ_BATCHAI_MOUNT_ROOT, $AZ_BATCHAI_JOB_MOUNT_ROOT, "
                                             "$AZ_BATCHAI_JOB_TEMP or $AZ_BATCHAI_SHARED_JOB_TEMP")});
    else if (!expanded.text.starts_with('/') || ("/" + expanded.text + "/").find("/../") != std::string::npos)
      problems.push_back({where, fmt::format("{} is '{}', which is not an absolute path without '..'; begin "
                                             "it with $AZ_BATCHAI_MOUNT_ROOT",
                                             where, expanded.text.substr(0, 200))});
    return normal(expanded.text);
  };
  // The core makes folders under the root only; of others it is given a way in.
  const auto reachable = [&](std::string path) -> std::string {
    if (lies_in(path, root)) return path;
    const std::string at = "host" + path;
    if (std::none_of(paths.outside.begin(), paths.outside.end(), [&](const Mount& m) { return m.at == at; }))
      paths.outside.push_back({at, MountKind::path, path, "", false});
    return root + "/" + at;
  };
  paths.logs = join_path(
      reachable(absolute(text_at(properties, "stdOutErrPathPrefix"), "properties.stdOutErrPathPrefix")),
      segment + "/stdouterr");
  paths.known["AZ_BATCHAI_STDOUTERR_DIR"] = paths.logs;
  const auto& outputs = items_at(properties, "outputDirectories");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string where = fmt::format("properties.outputDirectories[{}].pathPrefix", i);
    const std::string id = text_at(outputs[i], "id");
    const std::string suffix = expand(text_at(outputs[i], "pathSuffix"), roots).text;
    const std::string path = normal(join_path(
        join_path(reachable(absolute(text_at(outputs[i], "pathPrefix"), where)), segment + "/outputs"),
        suffix));
    paths.outputs.emplace_back(id, path);
    paths.known["AZ_BATCHAI_OUTPUT_" + id] = path;
  }
  for (const Value& input : items_at(properties, "inputDirectories")) {
    const std::string id = text_at(input, "id");
    // May be anything: a file, a folder that is not there, another variable.
    const std::string path = expand(text_at(input, "path"), paths.known).text;
    paths.inputs.emplace_back(id, path);
    paths.known["AZ_BATCHAI_INPUT_" + id] = path;
  }
  return paths;
}

std::optional<Found> find_mount(const std::vector<Mount>& mounts, std::string_view path) {
  if (!lies_in(path, mount_root)) return std::nullopt;
  path.remove_prefix(mount_root.size());
  const std::string inside = trimmed(path);
  std::optional<Found> found;
  for (const Mount& mount : mounts)
    if (lies_in(inside, mount.at) && (!found || mount.at.size() > found->mount->at.size()))
      found = Found{&mount, trimmed(std::string_view(inside).substr(mount.at.size()))};
  return found;
}

std::string format_mounts(const std::vector<Mount>& mounts) {
  Value list = list_value();
  for (const Mount& mount : mounts)
    list.items.push_back(list_value({text_value(mount.at), text_value(std::string(to_string(mount.kind))),
                                     text_value(mount.what), text_value(mount.folder)}));
  return format(object_value({{"mounts", std::move(list)}}));
}

std::vector<Mount> parse_mounts(std::string_view text) {
  std::vector<Mount> mounts;
  const Value stored = parse_stored(text);
  for (const Value& item : items_at(stored, "mounts")) {
    if (item.items.size() != 4) continue;
    if (const auto kind = parse_mount_kind(item.items[1].text))
      mounts.push_back({item.items[0].text, *kind, item.items[2].text, item.items[3].text, false});
  }
  return mounts;
}

}  // namespace slipway::batchai
