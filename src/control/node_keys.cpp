#include "control/node_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/catalog.h"
#include "control/node.h"

namespace slipway::control {
namespace {

const TokenRecord* find_token(const State& state, const std::string& id) {
  const auto found = std::find_if(state.tokens.begin(), state.tokens.end(),
                                  [&](const TokenRecord& token) { return token.id == id; });
  return found == state.tokens.end() ? nullptr : &*found;
}

const TokenRecord* key_of(const State& state, const std::string& workspace, const std::string& node) {
  const auto found = std::find_if(state.tokens.begin(), state.tokens.end(), [&](const TokenRecord& token) {
    return token.node == node && token.workspace == workspace;
  });
  return found == state.tokens.end() ? nullptr : &*found;
}

Result<void> may_rejoin(const State& state, const Credential& credential, const Node& node,
                        const Hello& hello) {
  const TokenRecord* key = key_of(state, node.record.workspace, node.record.name);
  if (!key || key->hash == credential.key_hash) return {};
  if (node.session)
    return fail(ErrorCode::denied,
                fmt::format("a node called {} is already connected, from {} ({}), with a key that this agent "
                            "did not show",
                            hello.name, node.record.host, node.record.address));
  if (node.record.instance == hello.instance)
    return fail(ErrorCode::denied,
                fmt::format("node {} has a key that this agent did not show; if the key was lost, remove the "
                            "node first: slipway node delete {}",
                            hello.name, hello.name));
  return {};  // the machine was set up anew
}

}  // namespace

Result<void> may_join(const State& state, const Caller& caller, const Credential& credential,
                      const Node* node, const Hello& hello) {
  if (credential.token.empty()) return {};
  const TokenRecord* token = find_token(state, credential.token);
  if (!token)
    return fail(ErrorCode::denied, fmt::format("the token of {} was used up or revoked; make another: "
                                               "slipway token create NAME --role node",
                                               caller.name));
  if (!token->node.empty()) {
    if (token->node == hello.name) return {};
    return fail(ErrorCode::denied, fmt::format("the key of node {} lets in that node, not one called {}",
                                               token->node, hello.name));
  }
  if (hello.local && token->uses_left)
    return fail(ErrorCode::denied,
                "the service starts the nodes of its own machine itself; join without --local");
  return node ? may_rejoin(state, credential, *node, hello) : Result<void>();
}

void keep_key(Turn& turn, const Node& node, SessionId session, const Credential& credential) {
  const TokenRecord* found = find_token(turn.state, credential.token);
  if (!found || !found->node.empty() || credential.key_hash.empty()) return;
  TokenRecord token = *found;
  const TokenRecord* old = key_of(turn.state, node.record.workspace, node.record.name);
  std::string key_id = old ? old->id : "";
  if (!old || old->hash != credential.key_hash) {
    forget_key(turn, node.record);
    TokenRecord key;
    // Of the hash, for nothing here is random; it is as hard to guess as the key.
    key.id = key_id = "token_" + credential.key_hash.substr(0, 8);
    key.name = node.record.name;
    key.workspace = node.record.workspace;
    key.role = Role::node;
    key.hash = credential.key_hash;
    key.created_at = turn.now;
    key.author = token.name;
    key.node = node.record.name;
    put_token(turn, key);
  }
  turn.effects.outputs.keyed.emplace_back(session, key_id);
  if (!token.uses_left) return;
  if (--*token.uses_left > 0) return put_token(turn, token);
  record_event_in(
      turn, token.workspace, "token.used",
      fmt::format("join token {} of {} let in its last machine, {}", token.id, token.name, node.record.name),
      node.record.name, node.record.pool);
  drop_token(turn, token.id);
}

void forget_key(Turn& turn, const NodeRecord& node) {
  if (const TokenRecord* key = key_of(turn.state, node.workspace, node.name))
    drop_token(turn, std::string(key->id));
}

}  // namespace slipway::control
