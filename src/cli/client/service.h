#pragma once
// The service as a command sees it: where it is, and requests whose failures are ready to be read by a user.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/client/settings.h"
#include "cli/output/failure.h"
#include "net/client.h"
#include "wire/value.h"

namespace slipway::cli {

using wire::Value;

// The folder of the service on this machine: --data, SLIPWAY_HOME, ~/.slipway.
std::string data_folder(const Settings& settings);

struct Endpoint {
  std::string url;
  std::string fingerprint;  // of its certificate, where it was given or is known
  std::string pinned_url() const { return fingerprint.empty() ? url : url + "#sha256:" + fingerprint; }
  std::string token_file;     // where the token is read from; it may be missing. Empty: no token is known
                              // for this service
  bool token_needed = false;  // the user named that file, so it has to be there
  bool is_login = false;      // it is that of a sign-in at this service
};
// --service or SLIPWAY_SERVICE, else what the service wrote into <data>/service.json, else the usual port.
Endpoint find_service(const Settings& settings);
bool is_on_loopback(const std::string& url);

// /v1/jobs/job_1/tasks/sweep%5B7%5D from {"jobs", "job_1", "tasks", "sweep[7]"}.
std::string resource(const std::vector<std::string>& parts);
// resource?job=job_1&limit=3; empty values are left out.
std::string with_query(const std::string& target,
                       const std::vector<std::pair<std::string, std::string>>& query);

// Looks for the service at the first request. Not thread-safe: each thread takes another().
class Service {
 public:
  explicit Service(Settings settings);
  Service another() const { return Service(settings_); }

  Outcome<Value> get(const std::string& target) { return send("GET", target, {}); }
  Outcome<Value> send(std::string_view method, const std::string& target, const std::string& json);
  // Makes a job. Repeated when the answer is lost: a key makes the service give the same job again instead of
  // a second one.
  Outcome<Value> create(const std::string& target, const std::string& json);
  // Every page of a list in turn, until `each` gives false.
  Outcome<void> pages(const std::string& target, const std::function<bool(const std::vector<Value>&)>& each,
                      std::uint32_t limit = 1000);
  // For bodies that are not JSON. Answers other than 2xx are failures.
  Outcome<net::Response> request(std::string_view method, const std::string& target,
                                 const net::Client::Options& options);

  const std::string& url();

 private:
  Outcome<net::Client*> client();

  Settings settings_;
  Endpoint endpoint_;
  bool has_token_ = false;
  std::string no_token_;  // why there is none
  std::unique_ptr<net::Client> client_;
};

}  // namespace slipway::cli
