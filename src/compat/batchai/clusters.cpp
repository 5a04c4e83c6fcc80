// Clusters: pools.
#include <fmt/format.h>

#include <charconv>

#include "compat/batchai/adopt.h"
#include "compat/batchai/layout.h"
#include "compat/batchai/service.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

// Batch AI had no such setting; a workspace's tag slipway.idleTimeoutSeconds is one.
Duration idle_timeout_of(const FolderRecord* workspace) {
  Duration timeout = 5min;
  if (!workspace) return timeout;
  const auto found = workspace->tags.find(std::string(tag::user) + "slipway.idleTimeoutSeconds");
  if (found == workspace->tags.end()) return timeout;
  std::uint32_t seconds = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return error == std::errc{} && end == text.data() + text.size() ? std::chrono::seconds(seconds) : timeout;
}

// A new size is taken also while the last one is being reached.
Result<PoolView> resize(Registry& registry, const std::string& pool, const PoolRequest& request) {
  auto& controller = registry.controller();
  auto view = controller.resize_pool(registry.caller(), pool, request);
  if (view || view.error().code != ErrorCode::conflict) return view;
  if (!controller.stop_resize(registry.caller(), pool)) return view;
  return controller.resize_pool(registry.caller(), pool, request);
}

Answer<Reply> change_cluster(Registry& registry, const ResourceId& resource, const Value& change) {
  if (auto in = registry.in_workspace(resource); !in) return refuse(in.error());
  const auto known = registry.cluster(resource);
  if (!known) return refuse(not_found(Noun::cluster, resource.name));
  if (known->pool.deleting) return refuse(is_being_deleted(Noun::cluster, resource.name));
  const Value* scale = find(change, "properties.scaleSettings");
  if (!scale) return Reply{200, registry.show(*known), {}};
  Tags tags = known->pool.tags;
  Value body = parse_stored(tags[tag::body]);
  if (Value* properties = body.find("properties")) set(*properties, "scaleSettings", *scale);
  tags[tag::body] = format(body);
  PoolRequest request = translate_scale(body, known->pool.target);
  request.tags = std::move(tags);
  auto view = resize(registry, known->pool.name, adopted_change(known->pool, std::move(request)));
  if (!view) return refuse(to_cloud_error(view.error()));
  return Reply{200, registry.show(*view), {}};
}

}  // namespace

Answer<Reply> Service::put_cluster(Registry& registry, const Asked& asked, const Value& body,
                                   const std::string& uuid) {
  const ResourceId& resource = asked.target.resource;
  make_default(registry, asked);
  auto in = registry.in_workspace(resource);
  if (!in) return refuse(in.error());
  if (registry.is_deleting(Noun::workspace, resource))
    return refuse(is_being_deleted(Noun::workspace, resource.workspace));
  if (const auto known = registry.cluster(resource)) {
    if (known->pool.deleting) return refuse(is_being_deleted(Noun::cluster, resource.name));
    if (context_.sealer.is_signature(known->pool.tags.at(tag::print), "body:" + format(body)))
      return Reply{200, registry.show(*known), Operation::Kind::create};
    return refuse(
        409, "ClusterAlreadyExists",
        fmt::format("the cluster {} exists already, and was made otherwise; PATCH changes its size, "
                    "for the rest delete it first",
                    resource.name));
  }
  const FileServers servers = registry.servers_of(find(body, "properties.nodeSetup.mountVolumes"));
  const ClusterContext context{*in,
                               uuid,
                               registry.free_pool_name(*in),
                               options_.machine,
                               idle_timeout_of(registry.folder(Noun::workspace, resource)),
                               servers,
                               context_.sealer};
  auto request = translate_cluster(body, context);
  if (!request) return refuse(request.error());
  if (const auto there = pool_of_size(registry.source().pools(), text_at(body, "properties.vmSize"))) {
    auto taken = adopt(registry, *there, *request);
    if (!taken) return refuse(taken.error());
    registry.make_datastores(taken->pool.mounts);
    return Reply{200, registry.show(*taken), Operation::Kind::create};
  }
  auto view = registry.controller().create_pool(registry.caller(), *request);
  if (!view) return refuse(to_cloud_error(view.error()));
  registry.make_datastores(view->pool.mounts);
  return Reply{200, registry.show(*view), Operation::Kind::create};
}

void Service::clusters(const Asked& asked) {
  const std::string method = asked.request().method;
  const ResourceId resource = asked.target.resource;
  if (asked.target.is_list)
    return read(asked, [this, asked, resource](Registry& registry) -> Answer<Reply> {
      if (auto in = registry.in_workspace(resource); !in) return refuse(in.error());
      Page page;
      for (const PoolView& one : registry.clusters(resource))
        page.items.push_back(
            {one.pool.tags.at(tag::id), [one, &registry]() -> Answer<Value> { return registry.show(one); }});
      return list(asked, std::move(page));
    });
  if (method == "GET" || method == "HEAD" || method == "POST")
    return read(asked, [this, asked, resource, method](Registry& registry) -> Answer<Reply> {
      if (auto in = registry.in_workspace(resource); !in) return refuse(in.error());
      const auto found = registry.cluster(resource);
      if (!found) return refuse(not_found(Noun::cluster, resource.name));
      if (asked.target.action.empty())
        return method == "POST" ? Answer<Reply>(refuse(method_unknown(asked)))
                                : Reply{200, registry.show(*found), {}};
      Page page;
      for (const NodeView& one : registry.source().nodes(found->pool.name))
        if (is_present(one.node) && one.node.state != NodeState::lost)
          page.items.push_back({one.node.name, [one]() -> Answer<Value> { return render_login(one.node); }});
      return list(asked, std::move(page));
    });
  if (method != "PUT" && method != "PATCH") return send(asked.call, response_of(method_unknown(asked)));
  const bool makes = method == "PUT";
  auto body = accept_body(makes ? Body::cluster : Body::cluster_change, asked.request().body);
  if (!body) return send(asked.call, response_of(body.error()));
  if (makes) complete_cluster(*body);
  change(asked, [this, asked, resource, makes, body = *body, uuid = new_uuid()](Registry& registry) {
    return makes ? put_cluster(registry, asked, body, uuid) : change_cluster(registry, resource, body);
  });
}

}  // namespace slipway::batchai
