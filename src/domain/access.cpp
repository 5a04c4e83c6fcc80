#include "domain/access.h"

#include "domain/names.h"

namespace slipway {
namespace {

constexpr Names<Role, 4> roles{"viewer", "member", "admin", "node"};
constexpr Names<TokenScope, 3> scopes{"read", "submit", "admin"};
constexpr Names<Object, 21> objects{"service",   "login", "user",       "workspace", "token",  "quota",
                                    "secret",    "pool",  "node",       "job",       "source", "event",
                                    "datastore", "data",  "collection", "run",       "model",  "endpoint",
                                    "session",   "link",  "page"};
constexpr Names<Verb, 9> verbs{"read",   "create",  "update", "remove", "use",
                               "expose", "connect", "probe",  "stop"};
constexpr Names<Least, 6> leasts{"anyone", "viewer", "member", "owner", "admin", "service_admin"};

}  // namespace

std::string_view to_string(Role role) { return roles.of(role); }
std::optional<Role> parse_role(std::string_view text) { return roles.find(text); }
std::string_view to_string(TokenScope scope) { return scopes.of(scope); }
std::optional<TokenScope> parse_token_scope(std::string_view text) { return scopes.find(text); }
std::string_view to_string(Object object) { return objects.of(object); }
std::string_view to_string(Verb verb) { return verbs.of(verb); }
std::string_view to_string(Least least) { return leasts.of(least); }

}  // namespace slipway
