#include "api/router.h"

#include <cstdint>

#include "wire/records.h"

namespace slipway::api {
namespace {

std::vector<std::string_view> split(std::string_view pattern) {
  std::vector<std::string_view> parts;
  while (!pattern.empty()) {
    pattern.remove_prefix(1);
    const std::size_t slash = std::min(pattern.find('/'), pattern.size());
    parts.push_back(pattern.substr(0, slash));
    pattern.remove_prefix(slash);
  }
  return parts;
}

}  // namespace

Call::Call(net::Loop& loop, std::shared_ptr<net::Exchange> exchange)
    : held_(std::make_shared<Held>(loop, std::move(exchange))), request_(&held_->exchange->request()) {}

void Router::add(std::string method, std::string pattern, Role role,
                 std::function<void(const Call&)> handle) {
  routes_.push_back({std::move(method), std::move(pattern), role, std::move(handle)});
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  const auto given = net::split_path(path);
  if (!given) return match;
  std::size_t named_fewest =
      SIZE_MAX;  // of several patterns that fit, the one with fewer named parts is meant
  for (const Route& route : routes_) {
    const auto wanted = split(route.pattern);
    if (wanted.size() != given->size()) continue;
    std::map<std::string, std::string> parts;
    bool same = true;
    for (std::size_t i = 0; i < wanted.size() && same; ++i) {
      if (wanted[i].starts_with('{'))
        parts[std::string(wanted[i].substr(1, wanted[i].size() - 2))] = (*given)[i];
      else
        same = wanted[i] == (*given)[i];
    }
    if (!same || parts.size() > named_fewest) continue;
    if (parts.size() < named_fewest) match = {};
    named_fewest = parts.size();
    match.path_known = true;
    if (route.method == method || (method == "HEAD" && route.method == "GET")) {
      match.route = &route;
      match.parts = std::move(parts);
    }
  }
  return match;
}

net::Response json(int status, std::string body) {
  return {status, {{"Content-Type", "application/json"}}, std::move(body) + "\n"};
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid: return 400;
    case ErrorCode::not_found: return 404;
    case ErrorCode::conflict: return 409;
    case ErrorCode::denied: return 403;
    case ErrorCode::unavailable: return 503;
    case ErrorCode::too_large: return 413;
    case ErrorCode::internal: return 500;
  }
  return 500;
}

net::Response problem(const Error& error) {
  const int status = status_of(error.code);
  net::Response response{
      status, {{"Content-Type", "application/problem+json"}}, wire::format_problem(status, error) + "\n"};
  if (error.code == ErrorCode::unavailable) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace slipway::api
