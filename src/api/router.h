#pragma once
// Which handler answers which request, and what rule it is under (domain/access.h). Patterns have named
// parts: /v1/jobs/{job}/tasks/{task}.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/controller.h"
#include "domain/access.h"
#include "domain/records.h"
#include "net/server.h"

namespace slipway::api {

// A request on its way to an answer. May be held on any thread: the exchange itself is only used, and let go,
// on the network's thread.
class Call {
 public:
  Call(net::Loop& loop, std::shared_ptr<net::Exchange> exchange);

  const net::Request& request() const { return *request_; }
  net::Exchange& exchange() const { return *held_->exchange; }
  net::Loop& loop() const { return held_->loop; }
  const std::string& part(std::string_view name) const { return parts->at(std::string(name)); }
  std::optional<std::string> parameter(std::string_view name) const { return request_->parameter(name); }
  void send(net::Response response) const { held_->exchange->send(std::move(response)); }

  control::Caller caller;
  std::shared_ptr<const std::map<std::string, std::string>> parts;

 private:
  struct Held {
    net::Loop& loop;
    std::shared_ptr<net::Exchange> exchange;
    ~Held() {
      loop.post([exchange = std::move(exchange)] {});
    }
  };
  std::shared_ptr<Held> held_;
  const net::Request* request_;
};

struct Route {
  std::string method;
  std::string pattern;
  Access access;
  std::function<void(const Call&)> handle;
};

class Router {
 public:
  void add(std::string method, std::string pattern, Access access, std::function<void(const Call&)> handle);

  struct Match {
    const Route* route = nullptr;
    std::map<std::string, std::string> parts;
    std::string methods;  // that the path has, "GET, HEAD"; empty where nothing is there
  };
  Match find(std::string_view method, std::string_view path) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> parts_;  // of their patterns
};

net::Response json(int status, std::string body);
net::Response problem(const Error& error);
net::Response problem_with(int status, const Error& error);  // another status than that of its code
int status_of(ErrorCode code);

}  // namespace slipway::api
