// The web UI: its pages, its files, and the sign-in of a browser.
#include <fmt/format.h>

#include <algorithm>

#include "api/api.h"
#include "api/ui_files.h"
#include "base/log.h"
#include "base/sha256.h"
#include "wire/json.h"
#include "wire/records.h"
#include "wire/users.h"

namespace slipway::api {
namespace {

// Addresses of views. All of them are the same page, which reads its own address.
constexpr const char* views[] = {"/",
                                 "/login",
                                 "/jobs",
                                 "/jobs/{job}",
                                 "/jobs/{job}/tasks/{task}",
                                 "/jobs/{job}/tasks/{task}/logs",
                                 "/pools",
                                 "/pools/{pool}",
                                 "/nodes/{node}",
                                 "/new"};

// Nothing but the files of this service runs, is shown or is asked.
constexpr const char* content_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

net::Headers headers_of(std::string_view type, const char* caching) {
  return {{"Content-Type", std::string(type)},         {"Cache-Control", caching},
          {"Content-Security-Policy", content_policy}, {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "same-origin"},          {"Cross-Origin-Opener-Policy", "same-origin"}};
}

// Where the service's root is, seen from this address. A proxy may have put something before the path, which
// only the browser sees: so the way there is relative.
std::string way_to_root(std::string_view path) {
  std::string way;
  for (auto slashes = std::count(path.begin(), path.end(), '/'); slashes > 1; --slashes) way += "../";
  return way.empty() ? "./" : way;
}

net::Response page_for(const net::Request& request) {
  constexpr std::string_view marked = "<base href=\"./\"";
  std::string html(ui_page());
  if (const std::size_t at = html.find(marked); at != std::string::npos)
    html.replace(at, marked.size(), fmt::format("<base href=\"{}\"", way_to_root(request.path)));
  return {200, headers_of("text/html; charset=utf-8", "no-cache"), std::move(html)};
}

// The files are kept compressed; who names no coding takes any (RFC 9110, 12.5.3).
bool takes_gzip(const net::Request& request) {
  const auto codings = request.header("Accept-Encoding");
  return !codings || codings->find("gzip") != std::string::npos || codings->find('*') != std::string::npos;
}

net::Response file_named(const Call& call) {
  const std::string& name = call.part("file");
  const auto files = ui_files();
  const auto file = std::find_if(files.begin(), files.end(), [&](const UiFile& f) { return f.name == name; });
  if (file == files.end())
    return problem({ErrorCode::not_found, fmt::format("the web UI has no file {}", name.substr(0, 100)),
                    "the service was updated: reload the page"});
  if (!takes_gzip(call.request()))
    return problem_with(406, {ErrorCode::invalid, "this file is only sent compressed by gzip",
                              "ask with Accept-Encoding: gzip, as curl --compressed does"});
  net::Headers headers = headers_of(file->type, "public, max-age=31536000, immutable");
  headers.emplace_back("Content-Encoding", "gzip");
  headers.emplace_back("Vary", "Accept-Encoding");
  return {200, std::move(headers), std::string(file->bytes)};
}

}  // namespace

void Api::sign_in_browser(const Call& call, const wire::BrowserLogin& request) {
  const TimePoint now = clock_.now();
  const std::string peer = peer_network(call.request().peer);
  if (const Duration wait = failed_sign_ins_.wait(peer, now); wait > Duration(0))
    return call.send(too_many_failures(wait));
  failed_sign_ins_.begin(peer, now, sha256_hex(request.token + request.link_token).substr(0, 16));
  const std::string secret = request.link_token.empty()
                                 ? request.token
                                 : login_links_.take(request.link_token, now).value_or(std::string());
  const TokenRecord* token = secret.empty() ? nullptr : tokens_.find_secret(secret);
  if (!token || (token->expires_at && *token->expires_at <= now) || token->role == Role::node) {
    log::warning("login.failed", {{"from", call.request().peer}});
    return call.send(problem_with(
        401,
        {ErrorCode::denied,
         request.link_token.empty() ? "this is no valid token of a user"
                                    : "this link is not good: it is used up, or older than five minutes",
         "slipway ui makes a link that signs in; the service's own token lies in the file 'token' of its "
         "data folder"}));
  }
  failed_sign_ins_.succeeded(peer, now);
  net::Response response = json(201, wire::format(*token));
  response.headers.emplace_back("Set-Cookie", cookie_.set(secret, !reach_.fingerprint.empty()));
  response.headers.emplace_back("Cache-Control", "no-store");
  call.send(std::move(response));
}

void Api::add_ui_routes() {
  for (const char* view : views)
    router_.add("GET", view, {Object::page, Verb::read},
                [](const Call& call) { call.send(page_for(call.request())); });
  router_.add("GET", "/ui/{file}", {Object::page, Verb::read},
              [](const Call& call) { call.send(file_named(call)); });

  router_.add("POST", "/v1/login/browser", {Object::login, Verb::create}, [this](const Call& call) {
    auto request = wire::parse_browser_login(call.request().body);
    if (!request) return call.send(problem(request.error()));
    sign_in_browser(call, *request);
  });
  router_.add("DELETE", "/v1/login/browser", {Object::login, Verb::remove}, [this](const Call& call) {
    net::Response response{204};
    response.headers.emplace_back("Set-Cookie", cookie_.clear());
    call.send(std::move(response));
  });
  router_.add("POST", "/v1/login/links", {Object::login, Verb::use}, [this](const Call& call) {
    const auto secret = shown_token(call.request());
    if (!secret)
      return call.send(
          problem({ErrorCode::denied, "a link is made with a token, not with a node's key", ""}));
    const LoginLinks::Link link = login_links_.make(*secret, clock_.now());
    net::Response response =
        json(201, wire::format_object({{"link_token", wire::quote(link.token)},
                                       {"expires_at", wire::quote(format_time(link.expires_at))}}));
    response.headers.emplace_back("Cache-Control", "no-store");
    call.send(std::move(response));
  });
}

}  // namespace slipway::api
