#include "compat/batchai/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compat/batchai/tree.h"
#include "net/http.h"

namespace slipway::batchai {
namespace {

constexpr std::string_view provider = "Microsoft.BatchAI";

bool is_plain(std::string_view name, bool dots) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || (dots && c == '.');
  });
}

CloudError nothing_there(std::string_view path) {
  return {404,
          "ResourceNotFound",
          fmt::format("there is nothing at {}; the resources are workspaces, clusters, experiments, jobs and "
                      "fileServers of Microsoft.BatchAI",
                      path.substr(0, 300)),
          "",
          {}};
}

std::optional<Noun> collection(std::string_view word) {
  if (same_word(word, "clusters")) return Noun::cluster;
  if (same_word(word, "experiments")) return Noun::experiment;
  if (same_word(word, "fileServers")) return Noun::file_server;
  return std::nullopt;
}

class PathReader {
 public:
  PathReader(std::vector<std::string> parts, std::string_view path) : parts_(std::move(parts)), path_(path) {}

  Answer<Target> read() {
    if (!parts_.empty() && parts_.back().empty()) parts_.pop_back();  // a slash at the end
    Target target;
    if (takes("providers")) {
      if (!takes(provider) || !takes("operations") || !is_over()) return refuse(nothing_there(path_));
      target.noun = Noun::operations;
      return target;
    }
    if (!takes("subscriptions") || is_over()) return refuse(nothing_there(path_));
    target.resource.subscription = next();
    if (target.resource.subscription.empty() || target.resource.subscription.find('/') != std::string::npos)
      return refuse(nothing_there(path_));
    if (takes("resourceGroups")) {
      target.resource.group = next();
      if (!is_plain(target.resource.group, true))
        return refuse(400, "InvalidResourceName",
                      fmt::format("the resource group '{}' has characters other than letters, digits, '-', "
                                  "'_' and '.'",
                                  target.resource.group.substr(0, 100)),
                      "resourceGroupName");
    }
    if (!takes("providers") || !takes(provider)) return refuse(nothing_there(path_));
    if (target.resource.group.empty() && takes("locations")) return location(std::move(target));
    if (takes("workspaces")) {
      target.noun = Noun::workspace;
      if (is_over()) {
        target.is_list = true;
        return target;
      }
      if (target.resource.group.empty()) return refuse(nothing_there(path_));
      if (auto named = name(target.resource.workspace, "workspaceName"); !named) return refuse(named.error());
      return is_over() ? Answer<Target>(std::move(target)) : in_workspace(std::move(target));
    }
    // As before there were workspaces.
    target.resource.workspace = "default";
    target.is_old_shape = true;
    if (!target.resource.group.empty() && takes("jobs")) {
      target.resource.experiment = "default";
      return of_collection(std::move(target), Noun::job);
    }
    return in_workspace(std::move(target));
  }

 private:
  bool is_over() const { return at_ >= parts_.size(); }
  std::string next() { return is_over() ? std::string() : parts_[at_++]; }
  bool takes(std::string_view word) {
    if (is_over() || !same_word(parts_[at_], word)) return false;
    ++at_;
    return true;
  }
  Answer<bool> name(std::string& into, const char* field) {
    into = next();
    if (is_plain(into, false) && into.size() <= 64) return true;
    return refuse(
        400, "InvalidResourceName",
        fmt::format("'{}' cannot be a name: use 1 to 64 letters, digits, '-' and '_'", into.substr(0, 100)),
        field);
  }
  Answer<Target> location(Target target) {
    target.location = next();
    if (!is_plain(target.location, true))
      return refuse(400, "NoRegisteredProviderFound",
                    fmt::format("'{}' is no location; any name of letters, digits, '-', '_' and '.' is",
                                target.location.substr(0, 100)),
                    "location");
    if (takes("usages")) {
      target.noun = Noun::usages;
    } else if (takes("operationresults") || takes("operationstatuses")) {
      target.noun =
          same_word(parts_[at_ - 1], "operationresults") ? Noun::operation_result : Noun::operation_status;
      target.operation = lower(next());
      if (!is_plain(target.operation, false)) return refuse(nothing_there(path_));
    } else {
      return refuse(nothing_there(path_));
    }
    if (!is_over()) return refuse(nothing_there(path_));
    return target;
  }
  Answer<Target> in_workspace(Target target) {
    const auto noun = collection(next());
    if (!noun || target.resource.group.empty()) return refuse(nothing_there(path_));
    if (*noun != Noun::experiment) return of_collection(std::move(target), *noun);
    target.noun = Noun::experiment;
    if (is_over()) {
      target.is_list = true;
      return target;
    }
    if (auto named = name(target.resource.experiment, "experimentName"); !named) return refuse(named.error());
    if (is_over()) return target;
    if (!takes("jobs")) return refuse(nothing_there(path_));
    return of_collection(std::move(target), Noun::job);
  }
  Answer<Target> of_collection(Target target, Noun noun) {
    target.noun = noun;
    if (is_over()) {
      target.is_list = true;
      return target;
    }
    const char* field = noun == Noun::job       ? "jobName"
                        : noun == Noun::cluster ? "clusterName"
                                                : "fileServerName";
    if (auto named = name(target.resource.name, field); !named) return refuse(named.error());
    if (is_over()) return target;
    for (const char* action : {"terminate", "listOutputFiles", "listRemoteLoginInformation"})
      if (same_word(parts_[at_], action)) target.action = action;
    const bool fits =
        noun == Noun::job || (noun == Noun::cluster && target.action == "listRemoteLoginInformation");
    next();
    if (target.action.empty() || !fits || !is_over()) return refuse(nothing_there(path_));
    return target;
  }

  std::vector<std::string> parts_;
  std::string_view path_;
  std::size_t at_ = 0;
};

}  // namespace

bool is_ours(std::string_view path) {
  const std::string start = lower(path.substr(0, std::string_view("/subscriptions/").size()));
  return start == "/subscriptions/" || start.starts_with("/providers/");
}

Answer<Target> parse_path(std::string_view path) {
  auto parts = net::split_path(path);
  if (!parts) return refuse(nothing_there(path));
  return PathReader(std::move(*parts), path).read();
}

std::optional<Target> parse_id(std::string_view id) {
  auto target = parse_path(id);
  if (!target || target->is_list || !target->action.empty()) return std::nullopt;
  return std::move(*target);
}

std::string id_of(Noun noun, const ResourceId& resource) {
  std::string id = fmt::format("/subscriptions/{}/resourceGroups/{}/providers/{}/workspaces/{}",
                               resource.subscription, resource.group, provider, resource.workspace);
  switch (noun) {
    case Noun::cluster: return id + "/clusters/" + resource.name;
    case Noun::file_server: return id + "/fileservers/" + resource.name;
    case Noun::experiment: return id + "/experiments/" + resource.experiment;
    case Noun::job: return id + "/experiments/" + resource.experiment + "/jobs/" + resource.name;
    default: return id;
  }
}

std::string_view type_of(Noun noun) {
  switch (noun) {
    case Noun::cluster: return "Microsoft.BatchAI/workspaces/clusters";
    case Noun::file_server: return "Microsoft.BatchAI/workspaces/fileservers";
    case Noun::experiment: return "Microsoft.BatchAI/workspaces/experiments";
    case Noun::job: return "Microsoft.BatchAI/workspaces/experiments/jobs";
    default: return "Microsoft.BatchAI/workspaces";
  }
}

std::string_view word_for(Noun noun) {
  switch (noun) {
    case Noun::cluster: return "cluster";
    case Noun::file_server: return "file server";
    case Noun::experiment: return "experiment";
    case Noun::job: return "job";
    default: return "workspace";
  }
}

CloudError not_found(Noun noun, std::string_view name) {
  const char* code = noun == Noun::cluster       ? "ClusterNotFound"
                     : noun == Noun::file_server ? "FileServerNotFound"
                     : noun == Noun::experiment  ? "ExperimentNotFound"
                     : noun == Noun::job         ? "JobNotFound"
                                                 : "WorkspaceNotFound";
  return {404, code, fmt::format("The specified {} {} is not found", word_for(noun), name), "", {}};
}

std::string key_of(Noun noun, const ResourceId& resource) {
  std::string key = resource.subscription + "/" + resource.group + "/" + resource.workspace;
  if (noun == Noun::experiment || noun == Noun::job) key += "/" + resource.experiment;
  if (noun == Noun::cluster || noun == Noun::file_server || noun == Noun::job) key += "/" + resource.name;
  return lower(key);
}

std::string folder_of(Noun noun, const ResourceId& resource) {
  const std::string workspace = "batchai/" + key_of(Noun::workspace, resource);
  if (noun == Noun::experiment) return workspace + "/experiments/" + lower(resource.experiment);
  if (noun == Noun::file_server) return workspace + "/fileservers/" + lower(resource.name);
  return workspace;
}

std::string dollar_id(Noun noun, const ResourceId& resource) {
  std::string id = resource.subscription + "$" + resource.group + "$" + resource.workspace;
  if (noun == Noun::experiment || noun == Noun::job) id += "$" + resource.experiment;
  if (noun == Noun::cluster || noun == Noun::file_server || noun == Noun::job) id += "$" + resource.name;
  return id;
}

}  // namespace slipway::batchai
