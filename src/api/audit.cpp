// Which requests are written into the audit log, and what of them.
#include <algorithm>

#include "api/api.h"
#include "api/audited_exchange.h"

namespace slipway::api {
namespace {

constexpr std::size_t unauthorized_max =
    20;  // requests without a known token, a second: they could fill the disk

wire::AuditEntry entry_of(const net::Request& request, const std::optional<control::Caller>& caller,
                          const std::optional<Access>& access, TimePoint now) {
  wire::AuditEntry entry;
  entry.time = now;
  if (caller) {
    entry.user = caller->name;
    entry.role = to_string(caller->role);
    entry.workspace = caller->workspace;
  }
  entry.from = request.peer;
  entry.method = request.method.substr(0, 20);
  entry.path = request.path.substr(0, 500);
  if (access) {
    entry.object = to_string(access->object());
    entry.verb = to_string(access->verb());
  }
  return entry;
}

}  // namespace

bool Api::is_audited(const Admission& admission) const {
  if (!options_.audit) return false;
  const bool is_read = !admission.access || admission.access->verb() == Verb::read;
  if (admission.refusal) {
    const bool is_denied = admission.refusal->status == 401 || admission.refusal->status == 403;
    return is_denied && (admission.caller || !is_unauthorized_flood());
  }
  if (!admission.access) return false;
  // Of the open paths only sign-ins, and of these no more than of other requests without a token.
  if (admission.is_open) return admission.access->object() == Object::login && !is_unauthorized_flood();
  if (is_read) return options_.audit_reads;
  if (admission.access->object() == Object::source)
    return false;  // contents of code, before a job is made of it
  // What runs log: points by the thousand.
  if (admission.access->object() == Object::run && admission.access->verb() == Verb::use) return false;
  return admission.access->verb() != Verb::connect || admission.access->object() == Object::node;
}

std::string Api::degraded() const {
  std::string why = control_.degraded();
  if (!why.empty() || !options_.audit) return why;
  why = options_.audit->problem();
  return why.empty() ? why : "the audit log cannot be written: " + why;
}

bool Api::is_unauthorized_flood() const {
  const TimePoint now = clock_.now();
  if (now >= audited_since_ + 1s) {
    audited_since_ = now;
    unauthorized_audited_ = 0;
  }
  return ++unauthorized_audited_ > unauthorized_max;
}

void Api::audit_refusal(const net::Request& head, const Admission& admission) const {
  if (!is_audited(admission)) return;
  wire::AuditEntry entry = entry_of(head, admission.caller, admission.access, clock_.now());
  entry.status = admission.refusal->status;
  options_.audit->add(std::move(entry));
}

std::shared_ptr<net::Exchange> Api::audited(std::shared_ptr<net::Exchange> exchange,
                                            const Admission& admission,
                                            std::shared_ptr<std::string> before) const {
  const bool is_made = admission.access->verb() == Verb::create;
  const bool is_shown = !(is_made && admission.access->object() == Object::job);  // its spec says all
  auto entry = entry_of(exchange->request(), admission.caller, admission.access, clock_.now());
  return make_audited(std::move(exchange),
                      [audit = options_.audit, entry = std::move(entry), before, is_shown](
                          int status, const net::Headers& headers, const std::string& body) mutable {
                        entry.status = status;
                        entry.is_allowed = status != 401 && status != 403;
                        entry.made = net::find_header(headers, "Location").value_or("");
                        if (status >= 200 && status < 300) {
                          entry.before = std::move(*before);
                          if (is_shown && entry.verb != "read") entry.after = body;
                        }
                        audit->add(std::move(entry));
                      });
}

// What a change is made to, as the one who makes it would read it: at the same address, or for an action of a
// thing (POST /v1/jobs/{job}/cancel) at that of the thing.
void Api::read_before(const Call& call, const Admission& admission, std::function<void(std::string)> then) {
  const net::Request& request = call.request();
  const Access& access = *admission.access;
  const bool is_new = request.path == "/v1/jobs" || request.path == "/v1/pools" ||
                      request.path == "/v1/tokens" ||
                      (admission.compat && access.object() == Object::job && access.verb() == Verb::create);
  if (is_new || request.method == "GET" || access.verb() == Verb::read || access.object() == Object::data)
    return then({});
  net::Request read;
  read.method = "GET";
  read.path = request.path;
  const bool is_action = request.method == "POST" && access.verb() != Verb::create;
  const std::string above = request.path.substr(0, request.path.rfind('/'));
  if (admission.compat) {
    if (is_action) read.path = above;
    read.query = request.query;  // with the version of the API
    read.headers = request.headers;
    if (!admission.compat->access(read).allows(call.caller.role, call.caller.workspace)) return then({});
    read.target = read.path;
    Call inner(loop_, make_inner(std::move(read), std::move(then)));
    inner.caller = call.caller;
    return admission.compat->handle(inner);
  }
  Router::Match match = router_.find("GET", read.path);
  if (!match.route && is_action) match = router_.find("GET", read.path = above);
  if (!match.route || !match.route->access.allows(call.caller.role, call.caller.workspace)) return then({});
  read.target = read.path;
  Call inner(loop_, make_inner(std::move(read), std::move(then)));
  inner.caller = call.caller;
  inner.parts = std::make_shared<const std::map<std::string, std::string>>(std::move(match.parts));
  match.route->handle(inner);
}

}  // namespace slipway::api
