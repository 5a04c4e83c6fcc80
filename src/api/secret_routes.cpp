// Secrets by name: set, listed by their names, deleted. No answer has a value.
#include <fmt/format.h>

#include "api/api.h"
#include "api/list.h"
#include "wire/secret.h"

namespace slipway::api {
namespace {

using control::Controller;
using control::ReadStore;

// The caller's own; with ?scope=workspace that of the workspace, with ?user=NAME that of another user.
Result<SecretKey> key_of(const Call& call) {
  const std::string scope = call.parameter("scope").value_or("user");
  const auto user = call.parameter("user");
  if (scope != "user" && scope != "workspace")
    return fail(ErrorCode::invalid, fmt::format("there is no scope '{}'", scope.substr(0, 50)),
                "the scopes are user and workspace");
  if (scope == "workspace" && user)
    return fail(ErrorCode::invalid, "a secret of the workspace is no user's", "leave out scope, or user");
  if (user)
    if (auto named = validate_name("user", *user); !named) return fail(named.error());
  return SecretKey{call.caller.workspace, scope == "workspace" ? "" : user.value_or(call.caller.name),
                   call.part("name")};
}

}  // namespace

void Api::add_secret_routes() {
  router_.add("GET", "/v1/secrets", {Object::secret, Verb::read}, [this](const Call& call) {
    answer(call, [call](ReadStore& store) {
      return store.secrets(call.caller.workspace).map([](const std::vector<SecretRecord>& secrets) {
        return list_response(secrets);
      });
    });
  });
  router_.add("PUT", "/v1/secrets/{name}", {Object::secret, Verb::create}, [this](const Call& call) {
    const auto key = key_of(call);
    if (!key) return call.send(problem(key.error()));
    const auto value = wire::parse_secret_request(call.request().body);
    if (!value) return call.send(problem(value.error()));
    change<SecretRecord>(
        call,
        [call, key = *key, sealed = options_.sealer->seal(*value, secret_purpose(*key))](Controller& c) {
          return c.set_secret(call.caller, key, sealed);
        },
        [](const SecretRecord& secret) { return json(200, wire::format(secret)); });
  });
  router_.add("DELETE", "/v1/secrets/{name}", {Object::secret, Verb::remove}, [this](const Call& call) {
    const auto key = key_of(call);
    if (!key) return call.send(problem(key.error()));
    change<bool>(
        call,
        [call, key = *key](Controller& c) -> Result<bool> {
          return c.delete_secret(call.caller, key).map([] { return true; });
        },
        [](bool) { return net::Response{204}; });
  });
}

}  // namespace slipway::api
