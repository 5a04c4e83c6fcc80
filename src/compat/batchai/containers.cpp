#include "compat/batchai/containers.h"

#include <fmt/format.h>

#include "base/shell.h"
#include "compat/batchai/render.h"
#include "compat/batchai/tree.h"

namespace slipway::batchai {
namespace {

constexpr std::string_view where = "slipway.containers";
constexpr std::string_view images = "slipway.image.";
constexpr std::string_view rootfs_mark = "rootfs:";

const std::string* find_tag(const Tags& tags, const std::string& name) {
  const auto found = tags.find(std::string(tag::user) + name);
  return found == tags.end() ? nullptr : &found->second;
}

std::string cluster_tag(const std::string& cluster) { return fmt::format("{}.{}", where, lower(cluster)); }

// tensorflow/tensorflow of tensorflow/tensorflow:1.8.0-gpu, hub:5000/x of hub:5000/x.
std::string without_version(const std::string& image) {
  const std::size_t colon = image.rfind(':');
  const bool is_port = colon != std::string::npos && image.find('/', colon) != std::string::npos;
  return colon == std::string::npos || is_port ? image : image.substr(0, colon);
}

}  // namespace

ContainerRule container_rule(const Tags& tags, const std::string& cluster, const std::string& image) {
  ContainerRule rule;
  const std::string* said = find_tag(tags, cluster_tag(cluster));
  if (!said) said = find_tag(tags, std::string(where));
  rule.on_host = said && same_word(*said, "host");
  const std::string* named = find_tag(tags, std::string(images) + image);
  if (!named) named = find_tag(tags, std::string(images) + without_version(image));
  if (!named || named->empty()) return rule;
  rule.on_host = true;
  if (named->starts_with(rootfs_mark))
    rule.rootfs = named->substr(rootfs_mark.size());
  else
    rule.environment = *named;
  return rule;
}

Tags without_cluster(Tags tags, const std::string& cluster) {
  tags.erase(std::string(tag::user) + cluster_tag(cluster));
  return tags;
}

std::string activation(const std::string& environment) {
  if (environment.empty()) return {};
  const std::string folder = quote_for_shell(environment);
  return fmt::format("export VIRTUAL_ENV={0} PATH={0}/bin:\"$PATH\"\n", folder);
}

}  // namespace slipway::batchai
