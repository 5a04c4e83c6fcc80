#pragma once
// Sign-ins by a provider that are under way: begun, and not yet finished by who began them. At most 1,000,
// each for ten minutes. On the network's thread; the provider is asked on a thread of its own, one question
// at a time.
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "api/worker.h"
#include "net/loop.h"
#include "oidc/groups.h"
#include "oidc/provider.h"

namespace slipway::api {

class OidcSignIns {
 public:
  OidcSignIns(net::Loop& loop, const Clock& clock, oidc::Client client)
      : loop_(loop), clock_(clock), provider_(std::move(client), clock) {}

  struct Begun {
    std::string id;         // to finish it with
    std::string url;        // where the user goes
    std::string state;      // what comes back with the code
    std::string user_code;  // of the device flow: to type in there
    Duration interval{};    // likewise, between two questions
    TimePoint expires_at{};
  };
  // Only to this machine's own loopback: whoever began it there gets the code.
  void begin(const std::string& redirect_url, const std::string& challenge,
             std::function<void(Result<Begun>)> done);
  void begin_device(std::function<void(Result<Begun>)> done);
  // nullopt: the user has not finished at the device flow's address. What fails is over.
  void finish(const std::string& id, const std::string& code, const std::string& verifier,
              std::function<void(Result<std::optional<oidc::Identity>>)> done);

 private:
  struct Pending {
    TimePoint until{};
    std::string redirect_url{}, nonce{};  // of the code flow
    std::string device_code{};            // of the device flow
    bool is_asking = false;
  };
  // Runs `work` with the provider, then `done` with what it gave on the network's thread.
  template <class T>
  void ask(std::function<Result<T>(oidc::Provider&)> work, std::function<void(Result<T>)> done);
  std::string keep(Pending pending);

  net::Loop& loop_;
  const Clock& clock_;
  oidc::Provider provider_;  // on the worker's thread
  std::map<std::string, Pending> pending_;
  std::size_t asking_ = 0;
  Worker worker_;
};

}  // namespace slipway::api
