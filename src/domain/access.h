#pragma once
// Who may do what: the one table that every route of every API consults, docs/security.md shows and a test
// asks.
//
// A route names an object and a verb, `Access{Object::job, Verb::create}`; a pair the table has no row for
// does not compile. Roles are ordered: what a viewer may, a member and an admin may, too. Everything is seen
// and changed within the caller's workspace only; what belongs to another is not there.
//
// `owner` is asked twice: by the route, whether this role could own such a thing; and where the thing was
// found, whether it is the caller's (control/permit.h).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace slipway {

enum class Role : std::uint8_t { viewer, member, admin, node };
std::string_view to_string(Role role);
std::optional<Role> parse_role(std::string_view text);

// What a token is for, which lowers its role: `read` to a viewer's, `submit` to a member's.
enum class TokenScope : std::uint8_t { read, submit, admin };
std::string_view to_string(TokenScope scope);
std::optional<TokenScope> parse_token_scope(std::string_view text);
constexpr Role lowered(Role role, TokenScope scope) {
  if (role == Role::node || scope == TokenScope::admin) return role;
  return std::min(role, scope == TokenScope::read ? Role::viewer : Role::member);
}

enum class Object : std::uint8_t {
  service,     // the service itself: its health, metrics, storage
  login,       // a sign-in by password or code, and its end
  user,        // a person or a service account
  workspace,   // with its members
  token,       // of users and nodes
  quota,       // what users and the workspace may have; the workspace's own is changed by service admins
  secret,      // a value kept by name for jobs; owned by the user whose it is, a workspace's by nobody
  pool,        // with its size, policy and start task
  node,        // of a pool; owned by the pool's owner
  job,         // with its tasks, logs and files
  source,      // stored code that jobs run
  event,       // what happened, and what waits
  datastore,   // its record: where the data is
  data,        // the files in a datastore
  collection,  // named folders that jobs and pools are filed under: Batch AI's workspaces and experiments,
               // experiments
  run,         // of an experiment: parameters, metrics, artifacts
  model,       // a registered model and its versions
  endpoint,    // a served model
  session,     // an interactive process: a shell, a notebook
  link,        // a signed address: whoever has it may read what it names, for a while
  page,        // the web UI itself: its pages are the same for everyone and hold no data
};
std::string_view to_string(Object object);

enum class Verb : std::uint8_t {
  read,     // list and show
  create,   // make one
  update,   // change one
  remove,   // cancel or delete one
  use,      // a prediction, an attached session, a metric written to a run
  expose,   // a datastore over a folder or an account of its own
  connect,  // as a node
  probe,    // whether it answers
  stop,     // the service
};
std::string_view to_string(Verb verb);

enum class Least : std::uint8_t {
  anyone,  // no token is needed
  viewer,
  member,
  owner,          // who made it, or an admin
  admin,          // of the workspace
  service_admin,  // an admin of the workspace `default`: those run the service
};
std::string_view to_string(Least least);

struct AccessRule {
  Object object;
  Verb verb;
  Least least;
  bool nodes = false;  // nodes may, too
};

inline constexpr AccessRule access_rules[] = {
    {Object::service, Verb::probe, Least::anyone},
    {Object::service, Verb::read, Least::viewer},
    {Object::service, Verb::connect, Least::admin, true},
    {Object::service, Verb::stop, Least::service_admin},

    {Object::login, Verb::create, Least::anyone},
    {Object::login, Verb::remove, Least::viewer},
    {Object::login, Verb::use, Least::viewer},  // a link by which a browser signs in as the caller

    {Object::user, Verb::read, Least::admin},
    {Object::user, Verb::create, Least::service_admin},
    {Object::user, Verb::update, Least::service_admin},
    {Object::user, Verb::remove, Least::service_admin},

    {Object::workspace, Verb::read, Least::viewer},
    {Object::workspace, Verb::update, Least::admin},

    {Object::token, Verb::read, Least::viewer},    // their own; admins those of others, too
    {Object::token, Verb::create, Least::member},  // likewise
    {Object::token, Verb::update, Least::owner},
    {Object::token, Verb::remove, Least::owner},

    {Object::quota, Verb::read, Least::viewer},
    {Object::quota, Verb::create, Least::service_admin},  // that of a workspace as a whole
    {Object::quota, Verb::update, Least::admin},

    {Object::secret, Verb::read, Least::viewer},  // names: values never
    {Object::secret, Verb::create, Least::member},
    {Object::secret, Verb::update, Least::owner},
    {Object::secret, Verb::remove, Least::owner},

    {Object::pool, Verb::read, Least::viewer},
    {Object::pool, Verb::create, Least::member},
    {Object::pool, Verb::update, Least::owner},
    {Object::pool, Verb::remove, Least::owner},

    {Object::node, Verb::read, Least::viewer},
    {Object::node, Verb::connect, Least::admin, true},
    {Object::node, Verb::update, Least::owner},
    {Object::node, Verb::remove, Least::owner},

    {Object::job, Verb::read, Least::viewer},
    {Object::job, Verb::create, Least::member},
    {Object::job, Verb::use, Least::owner},  // the secrets it was submitted with
    {Object::job, Verb::update, Least::owner},
    {Object::job, Verb::remove, Least::owner},

    {Object::source, Verb::read, Least::member, true},
    {Object::source, Verb::create, Least::member},

    {Object::event, Verb::read, Least::viewer},

    {Object::datastore, Verb::read, Least::viewer},
    {Object::datastore, Verb::create, Least::member},
    {Object::datastore, Verb::update, Least::owner},
    {Object::datastore, Verb::remove, Least::owner},
    {Object::datastore, Verb::expose, Least::admin},
    {Object::data, Verb::read, Least::viewer},
    {Object::data, Verb::update, Least::member},

    {Object::collection, Verb::read, Least::viewer},
    {Object::collection, Verb::create, Least::member},
    {Object::collection, Verb::update, Least::member},
    {Object::collection, Verb::remove, Least::owner},

    {Object::run, Verb::read, Least::viewer},
    {Object::run, Verb::create, Least::member},
    {Object::run, Verb::use, Least::member},
    {Object::run, Verb::remove, Least::owner},

    {Object::model, Verb::read, Least::viewer},
    {Object::model, Verb::create, Least::member},
    {Object::model, Verb::update, Least::member},
    {Object::model, Verb::remove, Least::owner},

    {Object::endpoint, Verb::read, Least::viewer},
    {Object::endpoint, Verb::use, Least::viewer},
    {Object::endpoint, Verb::create, Least::member},
    {Object::endpoint, Verb::update, Least::owner},
    {Object::endpoint, Verb::remove, Least::owner},

    {Object::session, Verb::read, Least::viewer},
    {Object::session, Verb::create, Least::member},
    {Object::session, Verb::use, Least::owner},
    {Object::session, Verb::remove, Least::owner},

    {Object::link, Verb::read, Least::anyone},
    {Object::page, Verb::read, Least::anyone},
};

// A row of the table.
class Access {
 public:
  consteval Access(Object object, Verb verb) : rule_(find(object, verb)) {}
  // For those who ask every row.
  constexpr explicit Access(const AccessRule& rule) : rule_(rule) {}

  constexpr Object object() const { return rule_.object; }
  constexpr Verb verb() const { return rule_.verb; }
  constexpr Least least() const { return rule_.least; }
  constexpr bool is_open() const { return rule_.least == Least::anyone; }

  // Whether this role may; of a thing that has an owner: whether it could own one.
  constexpr bool allows(Role role, std::string_view workspace) const {
    if (role == Role::node) return rule_.nodes || is_open();
    switch (rule_.least) {
      case Least::anyone:
      case Least::viewer: return true;
      case Least::member:
      case Least::owner: return role >= Role::member;
      case Least::admin: return role == Role::admin;
      case Least::service_admin: return role == Role::admin && workspace == "default";
    }
    return false;
  }
  // Whether this role may with a thing that is, or is not, its own.
  constexpr bool allows(Role role, std::string_view workspace, bool is_own) const {
    return allows(role, workspace) && (rule_.least != Least::owner || is_own || role == Role::admin);
  }
  // Whether a token for one pool may at all: it reads, and it works with jobs. What else there is to change
  // is not a pool's alone.
  constexpr bool allows_token_of_pool() const {
    return is_open() || rule_.verb == Verb::read || rule_.object == Object::job ||
           rule_.object == Object::source || rule_.object == Object::login;
  }

 private:
  static consteval AccessRule find(Object object, Verb verb) {
    for (const AccessRule& rule : access_rules)
      if (rule.object == object && rule.verb == verb) return rule;
    throw "the table has no row for this object and verb";
  }
  AccessRule rule_;
};

}  // namespace slipway
