#include "oidc/provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/encoding.h"
#include "net/client.h"
#include "wire/document.h"

namespace slipway::oidc {
namespace {

constexpr Duration answer_max = std::chrono::seconds(10);
constexpr Duration discovery_kept = std::chrono::hours(1);
constexpr Duration keys_kept = std::chrono::minutes(1);  // at least, when a token names one that is not there
constexpr const char* scopes = "openid profile email groups";

Error not_reachable(const std::string& address, const std::string& why) {
  return {ErrorCode::unavailable, fmt::format("the provider does not answer at {}: {}", address, why),
          "try again later"};
}

Result<net::Response> ask(const std::string& address, std::string_view method, net::Client::Options options) {
  // Without a query: its characters are not those of an address of a service.
  const std::size_t query = std::min(address.find('?'), address.size());
  auto url = net::parse_web_url(address.substr(0, query));
  if (!url) return fail(not_reachable(address, url.error().what));
  std::string target = std::exchange(url->path, "");  // the client would put it before each target
  if (target.empty()) target = "/";
  target += address.substr(query);
  options.deadline = answer_max;
  auto response = net::Client(std::move(*url)).request(method, target, options);
  if (!response) return fail(not_reachable(address, response.error().what));
  if (response->body.size() > document_size_max) return fail(not_reachable(address, "too long an answer"));
  return response;
}

std::string encode(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string text;
  for (const auto& [name, value] : fields)
    text += (text.empty() ? "" : "&") + name + "=" + net::percent_encode(value);
  return text;
}

Error refusal(const wire::Value& answer, int status) {
  const std::string error = answer.text_at("error"), why = answer.text_at("error_description");
  return {
      ErrorCode::denied,
      fmt::format("the provider refused the sign-in: {}", !why.empty()    ? why.substr(0, 300)
                                                          : error.empty() ? fmt::format("status {}", status)
                                                                          : error.substr(0, 100)),
      "sign in again"};
}

wire::Value read(const std::string& json) {
  auto value = wire::parse_json(json, "the answer of the provider");
  return value && value->kind == wire::Value::Kind::map ? std::move(*value) : wire::Value::map();
}

}  // namespace

Result<Discovery> Provider::discover() {
  if (discovery_ && clock_.now() - discovered_at_ < discovery_kept) return *discovery_;
  std::string address = client_.issuer;
  while (address.ends_with('/')) address.pop_back();
  auto answer = ask(address + "/.well-known/openid-configuration", "GET", {});
  if (!answer) return fail(answer.error());
  if (answer->status != 200)
    return fail(not_reachable(client_.issuer, fmt::format("status {}", answer->status)));
  auto discovery = parse_discovery(answer->body, client_.issuer);
  if (!discovery) return discovery;
  discovery_ = *discovery;
  discovered_at_ = clock_.now();
  return discovery;
}

Result<void> Provider::fetch_keys(const Discovery& discovery) {
  auto answer = ask(discovery.keys_endpoint, "GET", {});
  if (!answer) return fail(answer.error());
  auto keys = parse_keys(answer->body);
  if (!keys) return fail(keys.error());
  keys_ = std::move(*keys);
  keys_at_ = clock_.now();
  return {};
}

Result<Provider::Answer> Provider::post(const std::string& address, Form form) {
  net::Client::Options options;
  options.headers = {{"Content-Type", "application/x-www-form-urlencoded"}, {"Accept", "application/json"}};
  if (client_.secret.empty())
    form.emplace_back("client_id", client_.id);
  else  // RFC 6749, 2.3.1
    options.headers.emplace_back("Authorization",
                                 "Basic " + format_base64(net::percent_encode(client_.id) + ":" +
                                                          net::percent_encode(client_.secret)));
  options.body = encode(form);
  return ask(address, "POST", std::move(options)).map([](net::Response response) {
    return Answer{response.status, std::move(response.body)};
  });
}

Result<Identity> Provider::identify(const std::string& answer, const std::optional<std::string>& nonce) {
  auto discovery = discover();
  if (!discovery) return fail(discovery.error());
  const std::string token = read(answer).text_at("id_token");
  const auto check = [&] {
    return check_id_token(token, keys_, {client_.issuer, client_.id, nonce, clock_.now()});
  };
  auto identity = keys_.empty() ? fail(ErrorCode::not_found, "") : check();
  // Providers change their keys now and then.
  if (identity || identity.error().code != ErrorCode::not_found ||
      (!keys_.empty() && clock_.now() - keys_at_ < keys_kept))
    return identity;
  if (auto fetched = fetch_keys(*discovery); !fetched) return fail(fetched.error());
  return check();
}

Result<std::string> Provider::authorization_url(const CodeRequest& request) {
  return discover().map([&](const Discovery& discovery) {
    const std::string& endpoint = discovery.authorization_endpoint;
    return endpoint + (endpoint.find('?') == std::string::npos ? "?" : "&") +
           encode({{"response_type", "code"},
                   {"client_id", client_.id},
                   {"redirect_uri", request.redirect_url},
                   {"scope", scopes},
                   {"state", request.state},
                   {"nonce", request.nonce},
                   {"code_challenge", request.challenge},
                   {"code_challenge_method", "S256"}});
  });
}

Result<Identity> Provider::exchange(const Code& code) {
  auto discovery = discover();
  if (!discovery) return fail(discovery.error());
  auto answer = post(discovery->token_endpoint, {{"grant_type", "authorization_code"},
                                                 {"code", code.code},
                                                 {"redirect_uri", code.redirect_url},
                                                 {"code_verifier", code.verifier}});
  if (!answer) return fail(answer.error());
  if (answer->status != 200) return fail(refusal(read(answer->body), answer->status));
  return identify(answer->body, code.nonce);
}

Result<DeviceCode> Provider::start_device() {
  auto discovery = discover();
  if (!discovery) return fail(discovery.error());
  if (discovery->device_endpoint.empty())
    return fail(ErrorCode::conflict, fmt::format("{} has no sign-in for devices", client_.issuer),
                "sign in with a browser: slipway login --oidc");
  auto answer = post(discovery->device_endpoint, {{"scope", scopes}});
  if (!answer) return fail(answer.error());
  const wire::Value said = read(answer->body);
  if (answer->status != 200) return fail(refusal(said, answer->status));
  DeviceCode device{said.text_at("device_code"),
                    said.text_at("user_code"),
                    said.text_at("verification_uri_complete"),
                    {},
                    {}};
  if (device.url.empty()) device.url = said.text_at("verification_uri");
  const auto seconds = [&](const char* name, double otherwise) {
    return std::chrono::seconds(
        static_cast<std::int64_t>(std::clamp(said.number_at(name).value_or(otherwise), 1.0, 3600.0)));
  };
  device.interval = seconds("interval", 5);
  device.expires_in = seconds("expires_in", 600);
  if (device.device_code.empty() || device.user_code.empty() || device.url.empty())
    return fail(not_reachable(discovery->device_endpoint, "its answer has no codes"));
  return device;
}

Result<std::optional<Identity>> Provider::poll_device(const std::string& device_code) {
  auto discovery = discover();
  if (!discovery) return fail(discovery.error());
  auto answer =
      post(discovery->token_endpoint,
           {{"grant_type", "urn:ietf:params:oauth:grant-type:device_code"}, {"device_code", device_code}});
  if (!answer) return fail(answer.error());
  if (answer->status == 200)
    return identify(answer->body, std::nullopt).map([](Identity identity) {
      return std::optional(identity);
    });
  const wire::Value said = read(answer->body);
  const std::string error = said.text_at("error");
  if (error == "authorization_pending" || error == "slow_down") return std::nullopt;
  return fail(refusal(said, answer->status));
}

}  // namespace slipway::oidc
