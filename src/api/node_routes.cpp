// Nodes: what they are doing, and what is done with them.
#include <fmt/format.h>

#include "api/api.h"
#include "api/list.h"
#include "base/sha256.h"
#include "domain/layout.h"
#include "wire/pool.h"
#include "wire/records.h"

namespace slipway::api {

using control::Controller;
using control::ReadStore;
using control::Snapshot;

void Api::add_node_routes() {
  router_.add("GET", "/v1/nodes", {Object::node, Verb::read}, [this](const Call& call) {
    answer_live(call, [call](const Snapshot& live, ReadStore&) -> Result<net::Response> {
      const std::string pool = call.parameter("pool").value_or("");
      if (!pool.empty())
        if (auto known = live.pool(call.caller.workspace, pool); !known) return fail(known.error());
      return list_response(live.nodes_of(call.caller.workspace, pool));
    });
  });
  router_.add("GET", "/v1/nodes/connect", {Object::node, Verb::connect}, [this](const Call& call) {
    if (!call.exchange().wants_websocket())
      return call.send(problem({ErrorCode::invalid, "this is where agents connect, by WebSocket",
                                "join a machine with slipway node run"}));
    control::Credential credential;
    if (const TokenRecord* token = identify(call.request())) {
      credential.token = token->id;
      if (reach_.sign_node && !token->node.empty() && call.request().peer_name != token->id)
        return call.send(problem({ErrorCode::denied,
                                  fmt::format("node {} shows no certificate of this service", token->node),
                                  "its agent asks for one by itself: POST /v1/nodes/certificate"}));
    }
    if (const auto key = call.request().header(node_key_header); key && key->size() >= node_key_size_min)
      credential.key_hash = sha256_hex(*key);
    control::Caller caller = call.caller;
    if (const auto workspace = call.parameter("workspace"); workspace && *workspace != caller.workspace) {
      if (!is_own_agent(call))
        return call.send(
            problem({ErrorCode::denied,
                     fmt::format("{} joins nodes to workspace {} only", caller.name, caller.workspace),
                     "use a token of workspace " + workspace->substr(0, 100)}));
      caller.workspace = *workspace;
    }
    sessions_.accept(call.exchange(), caller, std::move(credential));
  });
  router_.add("POST", "/v1/nodes/certificate", {Object::node, Verb::connect}, [this](const Call& call) {
    auto request = wire::parse_certificate_request(call.request().body);
    if (!request) return call.send(problem(request.error()));
    const TokenRecord* token = identify(call.request());
    if (!token || token->node.empty())
      return call.send(problem({ErrorCode::denied, "only a node that has joined gets a certificate", ""}));
    if (!reach_.sign_node)
      return call.send(
          problem({ErrorCode::not_found, "this service signs no certificates: it has no TLS", ""}));
    // Its key's id: the certificate is good for as long as that key is.
    const auto certificate = reach_.sign_node(*request, token->id);
    if (!certificate) return call.send(problem(certificate.error()));
    call.send(json(200, wire::format_object({{"certificate", wire::quote(*certificate)}})));
  });
  router_.add("GET", "/v1/nodes/{node}", {Object::node, Verb::read}, [this](const Call& call) {
    answer_live(call, [call](const Snapshot& live, ReadStore&) {
      return live.node(call.caller.workspace, call.part("node")).map([](const NodeView& view) {
        return json(200, wire::format(view));
      });
    });
  });
  for (const bool drained : {true, false})
    router_.add("POST", drained ? "/v1/nodes/{node}/drain" : "/v1/nodes/{node}/resume",
                {Object::node, Verb::update}, [this, drained](const Call& call) {
                  change<NodeView>(
                      call,
                      [call, drained](Controller& c) {
                        return c.drain_node(call.caller, call.part("node"), drained);
                      },
                      [](const NodeView& view) { return json(200, wire::format(view)); });
                });
  router_.add("POST", "/v1/nodes/{node}/evict", {Object::node, Verb::remove}, [this](const Call& call) {
    auto request = wire::parse_evict_request(call.request().body);
    if (!request) return call.send(problem(request.error()));
    change<NodeView>(
        call,
        [call, request = *request](Controller& c) {
          return c.evict_node(call.caller, call.part("node"), request.notice, request.reason);
        },
        [](const NodeView& view) { return json(200, wire::format(view)); });
  });
  router_.add("POST", "/v1/nodes/{node}/remove", {Object::node, Verb::remove}, [this](const Call& call) {
    auto rule = wire::parse_deallocation_request(call.request().body);
    if (!rule) return call.send(problem(rule.error()));
    change<NodeView>(
        call,
        [call, rule = *rule](Controller& c) { return c.remove_node(call.caller, call.part("node"), rule); },
        [](const NodeView& view) { return json(200, wire::format(view)); });
  });
  router_.add("POST", "/v1/nodes/{node}/reset", {Object::node, Verb::update}, [this](const Call& call) {
    change<NodeView>(
        call, [call](Controller& c) { return c.reset_node(call.caller, call.part("node")); },
        [](const NodeView& view) { return json(200, wire::format(view)); });
  });
  router_.add(
      "GET", "/v1/nodes/{node}/start-task/{stream}", {Object::node, Verb::read}, [this](const Call& call) {
        const std::string stream = call.part("stream");
        if (stream != "stdout" && stream != "stderr")
          return call.send(problem({ErrorCode::not_found, fmt::format("a start task has no {}", stream),
                                    "it has stdout and stderr"}));
        read_live<NodeRecord>(
            call,
            [call](const Snapshot& live, ReadStore&) -> Result<NodeRecord> {
              auto view = live.node(call.caller.workspace, call.part("node"));
              if (!view) return fail(view.error());
              if (view->node.start.attempt == 0)
                return fail(ErrorCode::not_found,
                            fmt::format("node {} has run no start task", view->node.name),
                            "slipway pool create NAME --start-task FILE gives a pool one");
              return view->node;
            },
            [this, call, stream](const NodeRecord& node) {
              const std::string folder = start_folder(node.workspace, node.name, node.id, node.start.attempt);
              const auto source =
                  node.local || node.shares_storage
                      ? files_here(options_.data + "/" + folder, files_of_one_process(), loop_, watcher_,
                                   disk_reads_)
                      : files_on_node(sessions_, node.workspace, node.name, folder, files_of_one_process());
              send_file(call, source, stream + ".txt", node.start.attempt);
            });
      });
}

}  // namespace slipway::api
