// Workspaces, experiments and file servers: folders.
#include <fmt/format.h>

#include "compat/batchai/layout.h"
#include "compat/batchai/service.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

void add_tags(const Value& body, Tags& tags) {
  if (const Value* given = body.find("tags"))
    for (const auto& [name, value] : given->fields) tags[tag::user + name] = value.text;
}

FolderRecord make_folder(Registry& registry, Noun noun, const ResourceId& resource, Tags tags) {
  tags["noun"] = noun_word(noun);
  tags.emplace(tag::owner, registry.caller().name);
  tags[tag::resource_id] = format_resource_id(noun, resource);
  return registry.controller().put_folder(registry.caller(), folder_of(noun, resource), std::move(tags));
}

std::string address_of(const std::string& base) {
  std::string host = base.substr(base.find("://") + 3);
  host = host.substr(0, host.find('/'));
  const std::size_t colon = host.rfind(':');
  if (colon != std::string::npos && colon > host.rfind(']') + 1) host.resize(colon);
  return host.find_first_not_of("0123456789.") == std::string::npos ? host : "127.0.0.1";
}

}  // namespace

void Service::make_default(Registry& registry, const Asked& asked) {
  if (!asked.target.is_old_shape || asked.request().method != "PUT") return;
  const ResourceId& resource = asked.target.resource;
  if (!registry.folder(Noun::workspace, resource))
    make_folder(registry, Noun::workspace, resource, {{tag::location, "local"}});
  if (asked.target.noun == Noun::job && !registry.folder(Noun::experiment, resource))
    make_folder(registry, Noun::experiment, resource, {});
}

void Service::workspaces(const Asked& asked) {
  const std::string method = asked.request().method;
  const ResourceId resource = asked.target.resource;
  if (asked.target.is_list)
    return read(asked, [this, asked, resource](Registry& registry) -> Answer<Reply> {
      std::string prefix = "batchai/" + lower(resource.subscription) + "/";
      if (!resource.group.empty()) prefix += lower(resource.group) + "/";
      Page page;
      for (const FolderRecord& one : registry.folders(Noun::workspace, prefix))
        page.items.push_back({one.path, [one, &registry]() -> Answer<Value> {
                                const ResourceId inner =
                                    parse_resource_id(Noun::workspace, one.tags.at(tag::resource_id));
                                return render_workspace(one, registry.is_deleting(Noun::workspace, inner));
                              }});
      return list(asked, std::move(page));
    });
  if (method == "GET" || method == "HEAD")
    return read(asked, [resource](Registry& registry) -> Answer<Reply> {
      const FolderRecord* found = registry.folder(Noun::workspace, resource);
      if (!found) return refuse(not_found(Noun::workspace, resource.workspace));
      return Reply{200, render_workspace(*found, registry.is_deleting(Noun::workspace, resource)), {}};
    });
  if (method != "PUT" && method != "PATCH") return send(asked.call, response_of(method_unknown(asked)));
  const bool makes = method == "PUT";
  auto body = accept_body(makes ? Body::workspace : Body::workspace_change, asked.request().body);
  if (!body) return send(asked.call, response_of(body.error()));
  change(asked, [resource, makes, body = *body](Registry& registry) -> Answer<Reply> {
    if (registry.is_deleting(Noun::workspace, resource))
      return refuse(is_being_deleted(Noun::workspace, resource.workspace));
    const FolderRecord* known = registry.folder(Noun::workspace, resource);
    if (!known && !makes) return refuse(not_found(Noun::workspace, resource.workspace));
    Tags tags = known ? known->tags : Tags();
    if (!known) tags[tag::location] = text_at(body, "location", "local");
    if (body.find("tags")) {
      std::erase_if(tags, [](const auto& one) { return one.first.starts_with(tag::user); });
      add_tags(body, tags);
    }
    if (known && tags == known->tags) return Reply{200, render_workspace(*known, false), {}};
    const ResourceId stored =
        known ? parse_resource_id(Noun::workspace, known->tags.at(tag::resource_id)) : resource;
    return Reply{200, render_workspace(make_folder(registry, Noun::workspace, stored, tags), false), {}};
  });
}

void Service::experiments(const Asked& asked) {
  const std::string method = asked.request().method;
  const ResourceId resource = asked.target.resource;
  if (asked.target.is_list)
    return read(asked, [this, asked, resource](Registry& registry) -> Answer<Reply> {
      if (auto in = registry.in_workspace(resource); !in) return refuse(in.error());
      Page page;
      for (const FolderRecord& one :
           registry.folders(Noun::experiment, folder_of(Noun::workspace, resource) + "/experiments/"))
        page.items.push_back({one.path, [one, &registry]() -> Answer<Value> {
                                const ResourceId inner =
                                    parse_resource_id(Noun::experiment, one.tags.at(tag::resource_id));
                                return render_experiment(one, registry.is_deleting(Noun::experiment, inner));
                              }});
      return list(asked, std::move(page));
    });
  if (method == "GET" || method == "HEAD")
    return read(asked, [resource](Registry& registry) -> Answer<Reply> {
      if (auto in = registry.in_experiment(resource); !in) return refuse(in.error());
      return Reply{200,
                   render_experiment(*registry.folder(Noun::experiment, resource),
                                     registry.is_deleting(Noun::experiment, resource)),
                   {}};
    });
  if (method != "PUT") return send(asked.call, response_of(method_unknown(asked)));
  change(asked, [asked, resource](Registry& registry) -> Answer<Reply> {
    make_default(registry, asked);
    auto in = registry.in_workspace(resource);
    if (!in) return refuse(in.error());
    if (registry.is_deleting(Noun::workspace, resource))
      return refuse(is_being_deleted(Noun::workspace, resource.workspace));
    if (registry.is_deleting(Noun::experiment, resource))
      return refuse(is_being_deleted(Noun::experiment, resource.experiment));
    if (const FolderRecord* known = registry.folder(Noun::experiment, resource))
      return Reply{200, render_experiment(*known, false), {}};
    return Reply{200, render_experiment(make_folder(registry, Noun::experiment, *in, {}), false), {}};
  });
}

void Service::file_servers(const Asked& asked) {
  const std::string method = asked.request().method;
  const ResourceId resource = asked.target.resource;
  if (asked.target.is_list)
    return read(asked, [this, asked, resource](Registry& registry) -> Answer<Reply> {
      if (auto in = registry.in_workspace(resource); !in) return refuse(in.error());
      Page page;
      for (const FolderRecord& one :
           registry.folders(Noun::file_server, folder_of(Noun::workspace, resource) + "/fileservers/"))
        page.items.push_back({one.path, [one]() -> Answer<Value> { return render_file_server(one, false); }});
      return list(asked, std::move(page));
    });
  if (method == "GET" || method == "HEAD")
    return read(asked, [resource](Registry& registry) -> Answer<Reply> {
      if (auto in = registry.in_workspace(resource); !in) return refuse(in.error());
      const FolderRecord* found = registry.folder(Noun::file_server, resource);
      if (!found) return refuse(not_found(Noun::file_server, resource.name));
      return Reply{200, render_file_server(*found, false), {}};
    });
  if (method != "PUT") return send(asked.call, response_of(method_unknown(asked)));
  auto body = accept_body(Body::file_server, asked.request().body);
  if (!body) return send(asked.call, response_of(body.error()));
  change(asked, [this, asked, resource, body = *body](Registry& registry) -> Answer<Reply> {
    make_default(registry, asked);
    auto in = registry.in_workspace(resource);
    if (!in) return refuse(in.error());
    if (registry.is_deleting(Noun::workspace, resource))
      return refuse(is_being_deleted(Noun::workspace, resource.workspace));
    const std::string print = context_.sealer.sign("body:" + format(body));
    if (const FolderRecord* known = registry.folder(Noun::file_server, resource)) {
      if (context_.sealer.is_signature(known->tags.at(tag::print), "body:" + format(body)))
        return Reply{200, render_file_server(*known, false), Operation::Kind::create};
      return refuse(
          409, "FileServerAlreadyExists",
          fmt::format("the file server {} exists already, and was made otherwise; delete it first, or "
                      "choose another name",
                      resource.name));
    }
    DatastoreRecord store;
    store.name = registry.free_datastore_name(*in);
    auto made = registry.controller().put_datastore(registry.caller(), store);
    if (!made) return refuse(to_cloud_error(made.error()));
    const FolderRecord folder = make_folder(registry, Noun::file_server, *in,
                                            {{tag::body, format(without_secrets(Body::file_server, body))},
                                             {tag::print, print},
                                             {tag::datastore, store.name},
                                             {tag::address, address_of(asked.base)}});
    return Reply{200, render_file_server(folder, false), Operation::Kind::create};
  });
}

}  // namespace slipway::batchai
