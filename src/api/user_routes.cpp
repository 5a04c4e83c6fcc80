// Users, and the members of workspaces.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "api/api.h"
#include "api/list.h"
#include "base/password.h"
#include "base/random.h"
#include "base/sha256.h"
#include "domain/job.h"
#include "wire/records.h"
#include "wire/users.h"

namespace slipway::api {

using control::Controller;
using control::ReadStore;

namespace {

constexpr Duration invited_for = std::chrono::hours(24);

// Who runs the service sees all of them.
bool may_see(const Call& call, const std::string& workspace) {
  return call.caller.workspace == workspace ||
         (call.caller.workspace == "default" && call.caller.role == Role::admin);
}

Error no_workspace(const std::string& name) {
  return {ErrorCode::not_found, fmt::format("there is no workspace {}", name),
          "slipway workspace list shows those you may see"};
}

control::JobsLeft jobs_left(const Call& call) {
  return call.parameter("keep_jobs").value_or("false") == "true" ? control::JobsLeft::keep
                                                                 : control::JobsLeft::cancel;
}

net::Response show_cancelled(std::size_t jobs) {
  return json(200, wire::format_object({{"jobs_cancelled", std::to_string(jobs)}}));
}

}  // namespace

void Api::add_user(const Call& call, const wire::UserRequest& request, const std::string& password) {
  UserRecord user;
  user.name = request.name;
  user.is_service = request.is_service;
  user.password = password;
  change<UserRecord>(
      call,
      [call, user, member = request.member](Controller& c) { return c.add_user(call.caller, user, member); },
      [](const UserRecord& added) { return json(201, wire::format(added)); });
}

void Api::add_user_routes() {
  router_.add("GET", "/v1/users", {Object::user, Verb::read}, [this](const Call& call) {
    answer(call, [](ReadStore& store) { return store.users().map(list_response<UserRecord>); });
  });
  router_.add("GET", "/v1/users/{user}", {Object::user, Verb::read}, [this](const Call& call) {
    answer(call, [call](ReadStore& store) -> Result<net::Response> {
      auto user = store.user(call.part("user"));
      if (!user) return fail(user.error());
      if (!*user)
        return fail(ErrorCode::not_found, fmt::format("there is no user {}", call.part("user")),
                    "slipway user list shows the users");
      return json(200, wire::format(**user));
    });
  });
  router_.add("POST", "/v1/users", {Object::user, Verb::create}, [this](const Call& call) {
    auto request = wire::parse_user_request(call.request().body);
    if (!request) return call.send(problem(request.error()));
    if (auto named = validate_name("user", request->name); !named) return call.send(problem(named.error()));
    if (request->member) {
      const MemberRecord& member = *request->member;
      if (auto named = validate_name("workspace", member.workspace); !named)
        return call.send(problem(named.error()));
      if (auto may = may_let_in(call.caller, member.workspace, member.user, member.role); !may)
        return call.send(problem(may.error()));
    }
    if (request->password.empty()) return add_user(call, *request, {});
    const bool posted = passwords_.post([this, call, request = *request] {
      const auto hash = std::make_shared<Result<std::string>>(hash_password(request.password));
      call.loop().post([this, call, request, hash] {
        *hash ? add_user(call, request, **hash) : call.send(problem(hash->error()));
      });
    });
    if (!posted) call.send(problem({ErrorCode::unavailable, "too many passwords wait to be hashed", ""}));
  });
  router_.add("DELETE", "/v1/users/{user}", {Object::user, Verb::remove}, [this](const Call& call) {
    change<std::size_t>(
        call,
        [call](Controller& c) { return c.remove_user(call.caller, call.part("user"), jobs_left(call)); },
        show_cancelled);
  });
  router_.add("POST", "/v1/users/{user}/enable", {Object::user, Verb::update}, [this](const Call& call) {
    change<UserRecord>(
        call, [call](Controller& c) { return c.enable_user(call.caller, call.part("user")); },
        [](const UserRecord& user) { return json(200, wire::format(user)); });
  });
  router_.add("POST", "/v1/users/{user}/disable", {Object::user, Verb::update}, [this](const Call& call) {
    change<control::UserDisabled>(
        call,
        [call](Controller& c) { return c.disable_user(call.caller, call.part("user"), jobs_left(call)); },
        [](const control::UserDisabled& done) {
          return json(200, wire::format(done.user, done.jobs_cancelled));
        });
  });
  router_.add("POST", "/v1/users/{user}/invite", {Object::user, Verb::update}, [this](const Call& call) {
    const std::string code = random_hex(16);
    change<UserRecord>(
        call,
        [call, hash = sha256_hex(code)](Controller& c) {
          return c.invite_user(call.caller, call.part("user"), hash, invited_for);
        },
        [code](const UserRecord& user) {
          return json(201, wire::format_object({{"user", wire::quote(user.name)},
                                                {"code", wire::quote(code)},
                                                {"expires_at", wire::quote(format_time(*user.code_until))}}));
        });
  });
}

void Api::add_workspace_routes() {
  router_.add("GET", "/v1/workspaces", {Object::workspace, Verb::read}, [this](const Call& call) {
    answer(call, [call](ReadStore& store) -> Result<net::Response> {
      auto members = store.members();
      if (!members) return fail(members.error());
      std::map<std::string, std::size_t> counts{{call.caller.workspace, 0}};
      for (const MemberRecord& member : *members)
        if (may_see(call, member.workspace)) ++counts[member.workspace];
      std::vector<std::string> items;
      for (const auto& [name, count] : counts)
        items.push_back(
            wire::format_object({{"name", wire::quote(name)}, {"members", std::to_string(count)}}));
      return json(200, wire::format_list(items, std::nullopt));
    });
  });
  router_.add(
      "GET", "/v1/workspaces/{workspace}/members", {Object::workspace, Verb::read}, [this](const Call& call) {
        const std::string& workspace = call.part("workspace");
        if (!may_see(call, workspace)) return call.send(problem(no_workspace(workspace)));
        answer(call, [workspace](ReadStore& store) -> Result<net::Response> {
          auto members = store.members();
          if (!members) return fail(members.error());
          std::erase_if(*members, [&](const MemberRecord& member) { return member.workspace != workspace; });
          return list_response(*members);
        });
      });
  router_.add("PUT", "/v1/workspaces/{workspace}/members/{user}", {Object::workspace, Verb::update},
              [this](const Call& call) {
                auto role = wire::parse_member_request(call.request().body);
                if (!role) return call.send(problem(role.error()));
                const MemberRecord member{call.part("workspace"), call.part("user"), *role};
                if (!may_see(call, member.workspace))
                  return call.send(problem(no_workspace(member.workspace)));
                if (auto named = validate_name("workspace", member.workspace); !named)
                  return call.send(problem(named.error()));
                if (auto may = may_let_in(call.caller, member.workspace, member.user, member.role); !may)
                  return call.send(problem(may.error()));
                change<MemberRecord>(
                    call, [call, member](Controller& c) { return c.put_member(call.caller, member); },
                    [](const MemberRecord& put) { return json(200, wire::format(put)); });
              });
  router_.add("DELETE", "/v1/workspaces/{workspace}/members/{user}", {Object::workspace, Verb::update},
              [this](const Call& call) {
                change<std::size_t>(
                    call,
                    [call](Controller& c) {
                      return c.remove_member(call.caller, call.part("workspace"), call.part("user"),
                                             jobs_left(call));
                    },
                    show_cancelled);
              });
}

}  // namespace slipway::api
