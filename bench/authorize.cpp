// What it costs to find out which rule a request is under and whether a role may: over the routes that the
// service has, of all its APIs.
//
//   authorize [ROUNDS]      prints the microseconds of CPU a request: on average, and of the dearest route,
//   with
//                           its name
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "api/service.h"
#include "base/check.h"
#include "cpu_time.h"

using namespace slipway;

namespace {

struct Asked {
  std::string method, path;
  const api::CompatApi* compat = nullptr;
};

// A path that the pattern fits, with names as long as people give them.
std::string path_of(std::string pattern) {
  for (std::size_t at = 0; (at = pattern.find('{', at)) != std::string::npos;)
    pattern.replace(at, pattern.find('}', at) + 1 - at, "a-name-of-twenty-two-c");
  return pattern;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20'000;
  test::Service service;
  const api::Router& router = service.api().router();
  std::vector<Asked> all;
  for (const api::Route& route : router.routes()) all.push_back({route.method, path_of(route.pattern)});
  for (const auto& compat : service.api().compat_apis())
    for (const api::CompatRoute& route : compat->routes())
      all.push_back({route.method, path_of(route.path), compat.get()});
  double whole = 0;
  double most = 0;
  const Asked* dearest = nullptr;
  std::size_t allowed = 0;
  for (const Asked& asked : all) {
    net::Request request;
    request.method = asked.method;
    request.path = asked.path;
    const double begin = cpu_seconds();
    for (int i = 0; i < rounds; ++i) {
      std::optional<Access> access;
      if (asked.compat)
        access = asked.compat->access(request);
      else if (const auto match = router.find(request.method, request.path); match.route)
        access = match.route->access;
      SLIPWAY_CHECK(access.has_value());
      allowed += access->allows(Role::member, "default") ? 1 : 0;
    }
    const double took = (cpu_seconds() - begin) / rounds * 1e6;
    whole += took;
    if (took > most) {
      most = took;
      dearest = &asked;
    }
  }
  SLIPWAY_CHECK(dearest != nullptr && allowed > 0);
  std::printf("%.3f %.3f %s %s\n", whole / static_cast<double>(all.size()), most, dearest->method.c_str(),
              dearest->path.c_str());
  return 0;
}
