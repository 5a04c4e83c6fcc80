#include "api/router.h"

#include <cstdint>

#include "wire/records.h"

namespace slipway::api {
namespace {

std::vector<std::string> split(std::string_view pattern) {
  std::vector<std::string> parts;
  while (pattern.size() > 1) {  // "/" alone has no parts
    pattern.remove_prefix(1);
    const std::size_t slash = std::min(pattern.find('/'), pattern.size());
    parts.emplace_back(pattern.substr(0, slash));
    pattern.remove_prefix(slash);
  }
  return parts;
}

}  // namespace

Call::Call(net::Loop& loop, std::shared_ptr<net::Exchange> exchange)
    : held_(std::make_shared<Held>(loop, std::move(exchange))), request_(&held_->exchange->request()) {}

void Router::add(std::string method, std::string pattern, Access access,
                 std::function<void(const Call&)> handle) {
  parts_.push_back(split(pattern));
  routes_.push_back({std::move(method), std::move(pattern), access, std::move(handle)});
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  const auto given = net::split_path(path);
  if (!given) return match;
  std::size_t named_fewest =
      SIZE_MAX;  // of several patterns that fit, the one with fewer named parts is meant
  for (std::size_t r = 0; r < routes_.size(); ++r) {
    const Route& route = routes_[r];
    const std::vector<std::string>& wanted = parts_[r];
    if (wanted.size() != given->size()) continue;
    std::size_t named = 0;
    const auto fits = [&](std::size_t i) {
      if (!wanted[i].starts_with('{')) return wanted[i] == (*given)[i];
      ++named;
      return true;
    };
    bool same = true;
    for (std::size_t i = 0; i < wanted.size() && same; ++i) same = fits(i);
    if (!same || named > named_fewest) continue;
    if (named < named_fewest) match = {};
    named_fewest = named;
    if (match.methods.find(route.method) == std::string::npos) {
      match.methods += (match.methods.empty() ? "" : ", ") + route.method;
      if (route.method == "GET") match.methods += ", HEAD";
    }
    if (route.method == method || (method == "HEAD" && route.method == "GET")) match.route = &route;
  }
  if (!match.route) return match;
  const std::vector<std::string>& wanted = parts_[static_cast<std::size_t>(match.route - routes_.data())];
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i].starts_with('{')) match.parts[wanted[i].substr(1, wanted[i].size() - 2)] = (*given)[i];
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

net::Response problem_with(int status, const Error& error) {
  return {status, {{"Content-Type", "application/problem+json"}}, wire::format_problem(status, error) + "\n"};
}

net::Response problem(const Error& error) {
  const int status = status_of(error.code);
  net::Response response = problem_with(status, error);
  if (error.code == ErrorCode::unavailable) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace slipway::api
