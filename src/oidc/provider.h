#pragma once
// A provider of OpenID Connect as the service asks it: where to send a user, and who came back. Every call
// may take seconds: not on a loop's thread. Not thread-safe.
//
// The authorization code flow with PKCE is the browser's; the device flow (RFC 8628) is for machines without
// one.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "oidc/id_token.h"

namespace slipway::oidc {

struct Client {
  std::string issuer;  // https://accounts.example.org
  std::string id;
  std::string secret{};  // empty: a public client
};

struct CodeRequest {
  std::string redirect_url;
  std::string state;
  std::string nonce;
  std::string challenge;  // of PKCE, S256
};
struct Code {
  std::string code;
  std::string redirect_url;
  std::string verifier;  // of PKCE
  std::string nonce;
};
struct DeviceCode {
  std::string device_code;  // to ask with
  std::string user_code;    // to type in
  std::string url;          // where
  Duration interval{};      // between two questions
  Duration expires_in{};
};

class Provider {
 public:
  Provider(Client client, const Clock& clock) : client_(std::move(client)), clock_(clock) {}

  Result<std::string> authorization_url(const CodeRequest& request);
  Result<Identity> exchange(const Code& code);

  Result<DeviceCode> start_device();
  Result<std::optional<Identity>> poll_device(const std::string& device_code);  // nullopt: not yet

 private:
  using Form = std::vector<std::pair<std::string, std::string>>;
  Result<Discovery> discover();
  Result<void> fetch_keys(const Discovery& discovery);
  struct Answer {
    int status = 0;
    std::string body;
  };
  Result<Answer> post(const std::string& address, Form form);
  Result<Identity> identify(const std::string& answer, const std::optional<std::string>& nonce);

  Client client_;
  const Clock& clock_;
  std::optional<Discovery> discovery_;
  TimePoint discovered_at_{};
  std::vector<SigningKey> keys_;
  TimePoint keys_at_{};
};

}  // namespace slipway::oidc
