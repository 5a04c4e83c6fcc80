#include "cli/client/service.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/random.h"
#include "cli/client/login.h"

namespace slipway::cli {
namespace {

constexpr Duration answer_max = 90s;

constexpr const char* usual_url = "http://127.0.0.1:8470";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Failure not_reachable(const std::string& url, const Error& error) {
  Failure failure{ExitCode::unreachable, "no service answers at " + url, error.what, "slipway up"};
  if (!is_on_loopback(url)) failure.hint = "check --service, or run slipway up on that machine";
  return failure;
}

// What a refusal says: our own form, MLflow's {"message"}, or Azure's {"error": {"message", "details"}}.
std::string problem_text(const Value& problem) {
  const Value& error = problem.at("error");
  if (error.is_null()) {
    const std::string detail = problem.text_at("detail");
    return detail.empty() ? problem.text_at("message") : detail;  // the MLflow API's
  }
  std::string text = error.text_at("message");
  if (text.empty()) text = error.text_at("code");
  for (const Value& detail : error.items_at("details")) {
    const std::string target = detail.text_at("target");
    text += "\n" + (target.empty() ? "" : target + ": ") + detail.text_at("message");
  }
  return text;
}

bool is_same_address(const std::string& one, const std::string& other) {
  const Result<net::Url> a = net::parse_url(one);
  const Result<net::Url> b = net::parse_url(other);
  return a && b && a->is_secure == b->is_secure && a->host == b->host && a->port == b->port;
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

}  // namespace

std::string data_folder(const Settings& settings) {
  if (!settings.data.empty()) return settings.data;
  if (std::string home = environment("SLIPWAY_HOME"); !home.empty()) return home;
  return environment("HOME") + "/.slipway";
}

Endpoint find_service(const Settings& settings) {
  Endpoint endpoint;
  endpoint.url = settings.service.empty() ? environment("SLIPWAY_SERVICE") : settings.service;
  endpoint.token_file = settings.token_file.empty() ? environment("SLIPWAY_TOKEN_FILE") : settings.token_file;
  endpoint.token_needed = !endpoint.token_file.empty();
  const std::string data = data_folder(settings);
  // A missing or broken file is not an error: the default address is used.
  const Result<std::string> text = read_file(data + "/service.json");
  const Value written = text ? wire::parse_answer(*text).value_or(Value()) : Value();
  const std::string local_url = written.text_at("url");
  if (endpoint.url.empty()) endpoint.url = local_url.empty() ? usual_url : local_url;
  constexpr std::string_view mark = "#sha256:";
  const bool is_local = is_same_address(endpoint.url, local_url.empty() ? usual_url : local_url);
  if (is_local && !local_url.empty() && endpoint.url.find('#') == std::string::npos) endpoint.url = local_url;
  if (const std::size_t at = endpoint.url.find(mark); at != std::string::npos) {
    endpoint.fingerprint = endpoint.url.substr(at + mark.size());
    endpoint.url.resize(at);
  }
  if (const std::string file = login_file(settings, endpoint.url);
      endpoint.token_file.empty() && ::access(file.c_str(), F_OK) == 0) {
    endpoint.token_file = file;
    endpoint.is_login = true;
  }
  // The token of the service on this machine is an admin's: it is not sent to another service.
  if (endpoint.token_file.empty() && is_local)
    endpoint.token_file =
        written.text_at("token_file").empty() ? data + "/token" : written.text_at("token_file");
  if (endpoint.token_file == "-") endpoint.token_file = "/dev/stdin";
  return endpoint;
}

bool is_on_loopback(const std::string& url) {
  const Result<net::Url> parsed = net::parse_url(url);
  return parsed && (parsed->host.starts_with("127.") || parsed->host == "localhost" || parsed->host == "::1");
}

std::string resource(const std::vector<std::string>& parts) {
  std::string path = "/v1";
  for (const std::string& part : parts) path += "/" + net::percent_encode(part);
  return path;
}

std::string with_query(const std::string& target,
                       const std::vector<std::pair<std::string, std::string>>& query) {
  std::string text = target;
  char separator = target.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [name, value] : query) {
    if (value.empty()) continue;
    text += separator + name + "=" + net::percent_encode(value);
    separator = '&';
  }
  return text;
}

Service::Service(Settings settings) : settings_(std::move(settings)), endpoint_(find_service(settings_)) {}

const std::string& Service::url() { return endpoint_.url; }

Outcome<net::Client*> Service::client() {
  if (client_) return client_.get();
  Result<net::Url> url = net::parse_url(endpoint_.pinned_url());
  if (!url) return misuse(url.error().what, "an address like " + std::string(usual_url));
  net::Headers headers{{"User-Agent", "slipway/" SLIPWAY_VERSION}};
  const Result<std::string> token = endpoint_.token_file.empty() ? fail(ErrorCode::not_found, "there is none")
                                                                 : read_file(endpoint_.token_file);
  if (!token && endpoint_.token_needed)
    return refuse("the token file cannot be used", token.error().what,
                  "slipway token create NAME makes a token");
  if (token) headers.emplace_back("Authorization", "Bearer " + trimmed(*token));
  has_token_ = token.has_value();
  if (!token && token.error().code == ErrorCode::not_found)
    no_token_ = "there is no file " + endpoint_.token_file;
  else if (!token)
    no_token_ = token.error().what;
  client_ = std::make_unique<net::Client>(std::move(*url), std::move(headers));
  return client_.get();
}

Outcome<net::Response> Service::request(std::string_view method, const std::string& target,
                                        const net::Client::Options& options) {
  Outcome<net::Client*> connected = client();
  if (!connected) return give_up(connected);
  net::Client::Options bounded = options;
  // The service answers everything but streams and uploads within a minute; what does not is not a service
  // that works.
  if (!bounded.on_piece && bounded.body_file.empty() && bounded.deadline == Duration(0))
    bounded.deadline = answer_max;
  Result<net::Response> response = (*connected)->request(method, target, bounded);
  if (!response && response.error().code == ErrorCode::unavailable)
    return give_up(not_reachable(endpoint_.url, response.error()));
  if (!response) return give_up(response);
  if (response->status >= 200 && response->status < 300) return std::move(*response);

  const Value problem = wire::parse_answer(response->body).value_or(Value());
  std::string what = problem_text(problem);
  if (what.empty()) what = fmt::format("{} {} was answered with {}", method, target, response->status);
  Failure failure = to_failure(Error{ErrorCode::internal, what, problem.text_at("hint")});
  if (response->status == 401 && !has_token_) {
    failure.why =
        "no token was sent: " +
        (endpoint_.token_file.empty() ? "the one in the data folder belongs to another service" : no_token_);
    failure.hint = "sign in: slipway login --user NAME; or pass --token-file FILE, or set SLIPWAY_TOKEN_FILE";
  }
  if (response->status == 401 && endpoint_.is_login)
    failure.hint = "sign in again: slipway login --user NAME";
  else if (response->status == 401 && has_token_)
    failure.hint = "pass --token-file FILE with a valid token";
  failure.status = response->status;
  return give_up(std::move(failure));
}

Outcome<Value> Service::send(std::string_view method, const std::string& target, const std::string& json) {
  net::Client::Options options;
  if (!json.empty()) {
    options.body = json;
    options.headers = {{"Content-Type", "application/json"}};
  }
  Outcome<net::Response> response = request(method, target, options);
  if (!response) return give_up(response);
  if (response->body.empty()) return Value();  // 202 and 204 have nothing more to say
  std::optional<Value> value = wire::parse_answer(response->body);
  if (!value)
    return refuse(fmt::format("the answer to {} {} is not JSON", method, target),
                  "something else than a Slipway service listens at " + endpoint_.url, "check --service");
  return std::move(*value);
}

Outcome<Value> Service::create(const std::string& target, const std::string& json) {
  net::Client::Options options;
  options.body = json;
  options.headers = {{"Content-Type", "application/json"}, {"Idempotency-Key", random_hex(16)}};
  Outcome<net::Response> response = request("POST", target, options);
  // The connection may break after the service has written the thing down but before its answer came.
  if (!response && response.error().exit_code == ExitCode::unreachable)
    response = request("POST", target, options);
  if (!response) return give_up(response);
  return wire::parse_answer(response->body).value_or(Value());
}

Outcome<void> Service::pages(const std::string& target,
                             const std::function<bool(const std::vector<Value>&)>& each,
                             std::uint32_t limit) {
  std::string after;
  do {
    const Outcome<Value> page = get(with_query(target, {{"after", after}, {"limit", std::to_string(limit)}}));
    if (!page) return give_up(page);
    if (!each(page->items_at("items"))) return {};
    after = page->text_at("next");
  } while (!after.empty());
  return {};
}

}  // namespace slipway::cli
