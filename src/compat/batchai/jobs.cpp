// Jobs.
#include <fmt/format.h>

#include "compat/batchai/layout.h"
#include "compat/batchai/service.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

Answer<JobRecord> existing(const Registry& registry, const ResourceId& resource) {
  if (auto in = registry.in_experiment(resource); !in) return refuse(in.error());
  auto found = registry.job(resource);
  if (!found) return refuse(found.error());
  if (!*found) return refuse(not_found(Noun::job, resource.name));
  return **found;
}

Answer<Reply> shown(const Registry& registry, const JobRecord& job,
                    std::optional<Operation::Kind> work = {}) {
  auto view = registry.view(job);
  if (!view) return refuse(view.error());
  return Reply{200, render_job(*view), work};
}

std::string why_no_engine(const Error& refused, const ResourceId& cluster) {
  return fmt::format(
      "{}{}; or let its jobs run on the nodes themselves, where their packages have to be: slipway batchai "
      "cluster update -g {} -w {} -n {} --containers host",
      refused.what, refused.hint.empty() ? "" : "; " + refused.hint, cluster.group, cluster.workspace,
      cluster.name);
}

Answer<Reply> terminate(Registry& registry, const ResourceId& resource) {
  auto job = existing(registry, resource);
  if (!job) return refuse(job.error());
  if (is_terminal(job->state)) return Reply{200, {}, {}};
  if (auto ended = registry.controller().cancel(registry.caller(), job->id, "it was terminated by its user");
      !ended)
    return refuse(to_cloud_error(ended.error()));
  return Reply{200, {}, Operation::Kind::terminate};
}

}  // namespace

Answer<Reply> Service::put_job(Registry& registry, const Asked& asked, const Value& body,
                               const std::string& uuid) {
  const ResourceId& resource = asked.target.resource;
  make_default(registry, asked);
  auto in = registry.in_experiment(resource);
  if (!in) return refuse(in.error());
  if (registry.is_deleting(Noun::workspace, resource))
    return refuse(is_being_deleted(Noun::workspace, resource.workspace));
  if (registry.is_deleting(Noun::experiment, resource))
    return refuse(is_being_deleted(Noun::experiment, resource.experiment));
  if (registry.is_deleting(Noun::job, resource)) return refuse(is_being_deleted(Noun::job, resource.name));
  auto known = registry.job(resource);
  if (!known) return refuse(known.error());
  if (*known) {
    if (context_.sealer.is_signature((*known)->tags.at(tag::print), "body:" + format(body)))
      return shown(registry, **known, Operation::Kind::create);
    return refuse(
        409, "JobAlreadyExists",
        fmt::format("the job {} exists already, and asks for something else; delete it first, or choose "
                    "another name",
                    resource.name));
  }
  const std::string cluster_id = text_at(body, "properties.cluster.id");
  const auto target = parse_id(cluster_id);
  const auto cluster =
      target && target->noun == Noun::cluster ? registry.cluster(target->resource) : std::nullopt;
  if (!cluster) {
    CloudError error = not_found(Noun::cluster, target ? target->resource.name : cluster_id.substr(0, 300));
    error.target = "properties.cluster.id";
    return refuse(error);
  }
  if (cluster->pool.deleting) return refuse(is_being_deleted(Noun::cluster, target->resource.name));
  const FileServers servers = registry.servers_of(find(body, "properties.mountVolumes"));
  JobContext context{*in, uuid, cluster->pool, false, servers, context_.sealer};
  auto spec = translate_job(body, context);
  if (!spec) return refuse(spec.error());
  auto& controller = registry.controller();
  auto submitted = controller.submit(registry.caller(), *spec, "");
  const std::string image = spec->tasks.front().container.image;
  if (!submitted && !image.empty() && submitted.error().code == ErrorCode::invalid) {
    // Where it can be taken without its container, that no engine is there was what stood in the way.
    const Error why = submitted.error();
    if (const FolderRecord* workspace = registry.folder(Noun::workspace, target->resource))
      context.host = container_rule(workspace->tags, target->resource.name, image);
    context.on_host = true;
    auto on_host = translate_job(body, context);
    if (!on_host) return refuse(on_host.error());
    const bool allowed = options_.containers_on_host || context.host.on_host;
    submitted = controller.submit(
        registry.caller(),
        allowed ? *on_host : without_engine(*on_host, image, why_no_engine(why, target->resource)), "");
  }
  if (!submitted) return refuse(to_cloud_error(submitted.error()));
  registry.make_datastores(spec->tasks.front().mounts);
  return shown(registry, submitted->job, Operation::Kind::create);
}

Answer<Reply> Service::list_jobs(Registry& registry, const Asked& asked, std::uint32_t limit) {
  const ResourceId& resource = asked.target.resource;
  if (auto in = registry.in_experiment(resource); !in) return refuse(in.error());
  std::optional<JobId> after;
  if (const auto token = asked.call.parameter("$skiptoken")) after = parse_job_id(*token);
  auto jobs =
      registry.source().jobs_by_tag(tag::experiment, key_of(Noun::experiment, resource), after, limit + 1);
  if (!jobs) return refuse(to_cloud_error(jobs.error()));
  const bool has_more = jobs->size() > limit;
  if (has_more) jobs->resize(limit);
  auto views = registry.views(std::move(*jobs));
  if (!views) return refuse(views.error());
  Value items = list_value();
  items.items.reserve(views->size());
  for (const JobView& view : *views) items.items.push_back(written_value(format_job(view)));
  Value body = object_value();
  set(body, "value", std::move(items));  // a list in braces would be copied
  if (has_more) set(body, "nextLink", text_value(next_link(asked, to_string(views->back().job.id))));
  return Reply{200, std::move(body), {}};
}

void Service::jobs(const Asked& asked) {
  const std::string method = asked.request().method;
  const ResourceId resource = asked.target.resource;
  const std::string& action = asked.target.action;
  if (asked.target.is_list) {
    const auto limit = number_of(asked, "maxresults", 1, 1000, 1000);
    if (!limit) return send(asked.call, response_of(limit.error()));
    return read(asked, [this, asked, limit = *limit](Registry& registry) {
      return list_jobs(registry, asked, limit);
    });
  }
  if (action == "terminate")
    return change(asked, [resource](Registry& registry) { return terminate(registry, resource); });
  if (action == "listOutputFiles") return list_outputs(asked);
  if (action == "listRemoteLoginInformation")
    return read(asked, [this, asked, resource](Registry& registry) -> Answer<Reply> {
      auto job = existing(registry, resource);
      if (!job) return refuse(job.error());
      auto view = registry.view(*job);
      if (!view) return refuse(view.error());
      Page page;
      if (!view->attempts.empty())
        for (const std::string& name : view->attempts.back().node_names())
          if (auto node = registry.source().node(name); node && is_present(node->node))
            page.items.push_back({name, [one = node->node]() -> Answer<Value> { return render_login(one); }});
      return list(asked, std::move(page));
    });
  if (method == "GET" || method == "HEAD")
    return read(asked, [resource](Registry& registry) -> Answer<Reply> {
      auto job = existing(registry, resource);
      if (!job) return refuse(job.error());
      return shown(registry, *job);
    });
  if (method != "PUT") return send(asked.call, response_of(method_unknown(asked)));
  auto body = accept_body(Body::job, asked.request().body);
  if (!body) return send(asked.call, response_of(body.error()));
  complete_job(*body);
  change(asked, [this, asked, body = *body, uuid = new_uuid()](Registry& registry) {
    return put_job(registry, asked, body, uuid);
  });
}

}  // namespace slipway::batchai
