#include "compat/batchai/service.h"

#include <fmt/format.h>

#include <charconv>

#include "base/random.h"
#include "base/sha256.h"
#include "compat/batchai/access.h"
#include "compat/batchai/links.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

// As the caller reached us: links must lead back the same way.
std::string base_of(const net::Request& request) {
  const std::string scheme = request.header("X-Forwarded-Proto").value_or("http");
  const std::string host =
      request.header("X-Forwarded-Host").value_or(request.header("Host").value_or("127.0.0.1"));
  std::string prefix = request.header("X-Forwarded-Prefix").value_or("");
  while (prefix.ends_with('/')) prefix.pop_back();
  return (scheme == "https" ? "https://" : "http://") + host + prefix;
}

// As the SDK sends it. None is taken for the newest.
Answer<std::string> version_of(const net::Request& request) {
  const std::string version = request.parameter("api-version").value_or("2018-05-01");
  for (const char* known : {"2018-05-01", "2018-03-01", "2017-09-01-preview"})
    if (version == known) return version;
  return refuse(
      400, "NoRegisteredProviderFound",
      fmt::format("No registered resource provider found for API version '{}'; the supported versions "
                  "are 2018-05-01, 2018-03-01 and 2017-09-01-preview",
                  version.substr(0, 50)));
}

net::Response with_common_headers(net::Response response) {
  if (!response.body.empty())
    response.headers.emplace_back("Content-Type", "application/json; charset=utf-8");
  response.headers.emplace_back("Cache-Control", "no-cache");
  response.headers.emplace_back("request-id", new_uuid());
  return response;
}

}  // namespace

std::string new_uuid() {
  const std::string hex = random_hex(16);
  return fmt::format("{}-{}-4{}-a{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(13, 3),
                     hex.substr(17, 3), hex.substr(20, 12));
}

Answer<std::uint32_t> number_of(const Asked& asked, const char* name, std::uint32_t low, std::uint32_t high,
                                std::uint32_t otherwise) {
  const auto text = asked.call.parameter(name);
  if (!text) return otherwise;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error == std::errc{} && end == text->data() + text->size() && number >= low && number <= high)
    return number;
  return refuse(400, "InvalidParameter",
                fmt::format("{} is '{}'; it is a number from {} to {}", name, text->substr(0, 50), low, high),
                name);
}

CloudError is_being_deleted(Noun noun, std::string_view name) {
  return {409,
          "OperationNotAllowed",
          fmt::format("the {} {} is being deleted; try again when it is gone", word_for(noun), name),
          "",
          {}};
}

CloudError method_unknown(const Asked& asked) {
  return {
      405,
      "MethodNotAllowed",
      fmt::format("{} cannot be asked of {}", asked.request().method, asked.request().path.substr(0, 300)),
      "",
      {}};
}

Service::Service(api::CompatApiContext context, Options options)
    : context_(std::move(context)), options_(std::move(options)) {
  // What a service before this one had begun to delete.
  context_.loop.post([this] { sweep_all(); });
}

bool Service::answers(std::string_view path) const { return is_ours(path) || is_link(path); }

Access Service::access(const net::Request& head) const {
  if (is_link(head.path)) return {Object::link, Verb::read};
  const auto target = parse_path(head.path);
  if (!target) return {Object::collection, Verb::read};  // there is no such thing, as handle() says
  return access_of(*target, head.method);
}

std::vector<api::CompatRoute> Service::routes() const { return batchai::routes(); }

net::Response Service::unauthorized() const {
  return with_common_headers(
      response_of({401,
                   "AuthenticationFailed",
                   "Authentication failed: send Authorization: Bearer TOKEN with a token of this service",
                   "",
                   {}}));
}

net::Response Service::denied(const Error& why) const {
  return with_common_headers(response_of(to_cloud_error(why)));
}

void Service::send(const api::Call& call, net::Response response) const {
  if (const auto id = call.request().header("x-ms-client-request-id"))
    response.headers.emplace_back("x-ms-client-request-id", *id);
  call.send(with_common_headers(std::move(response)));
}

void Service::handle(const api::Call& call) {
  if (is_link(call.request().path)) return download(call);
  auto target = parse_path(call.request().path);
  if (!target) return send(call, response_of(target.error()));
  auto version = version_of(call.request());
  if (!version) return send(call, response_of(version.error()));
  const Asked asked{call, std::move(*target), base_of(call.request()), std::move(*version)};
  dispatch(asked);
}

void Service::dispatch(const Asked& asked) {
  const std::string& method = asked.request().method;
  const Target& target = asked.target;
  const bool gets = method == "GET" || method == "HEAD";
  if (target.is_list && !gets) return send(asked.call, response_of(method_unknown(asked)));
  if (!target.action.empty() && method != "POST") return send(asked.call, response_of(method_unknown(asked)));
  if (target.action.empty() && !target.is_list && method == "DELETE") return remove(asked);
  switch (target.noun) {
    case Noun::operations:
      if (!gets) return send(asked.call, response_of(method_unknown(asked)));
      return finish(asked, Reply{200, render_operations(), {}});
    case Noun::usages:
      if (!gets) return send(asked.call, response_of(method_unknown(asked)));
      return read(asked, [](Registry& registry) -> Answer<Reply> {
        return Reply{200, render_usages(registry.source().pools()), {}};
      });
    case Noun::operation_result:
    case Noun::operation_status:
      if (!gets) return send(asked.call, response_of(method_unknown(asked)));
      return operation(asked);
    case Noun::workspace: return workspaces(asked);
    case Noun::experiment: return experiments(asked);
    case Noun::file_server: return file_servers(asked);
    case Noun::cluster: return clusters(asked);
    case Noun::job: return jobs(asked);
  }
}

void Service::read(const Asked& asked, Work work) {
  with_saved(
      asked.call.caller,
      [this, asked, work = std::move(work)](Registry& registry) {
        auto answer = work(registry);
        if (const auto problem = registry.source().problem()) answer = refuse(to_cloud_error(*problem));
        auto response = std::make_shared<net::Response>(render(answer));
        asked.call.loop().post([this, asked, response] { send(asked.call, std::move(*response)); });
      },
      refusal(asked.call));
}

void Service::with_saved(const control::Caller& caller, std::function<void(Registry&)> work,
                         std::function<void(const Error&)> failed) {
  context_.control.snapshot(
      [this, caller, work = std::move(work), failed](std::shared_ptr<const control::Snapshot> live) {
        context_.reads.post(
            [caller, work, live](control::ReadStore& store) {
              Registry registry(store, live, caller);
              work(registry);
            },
            failed);
      },
      failed);
}

std::function<void(const Error&)> Service::refusal(const api::Call& call) {
  return [this, call](const Error& error) {
    call.loop().post([this, call, error] { send(call, response_of(to_cloud_error(error))); });
  };
}

void Service::change(const Asked& asked, Work work) {
  context_.control.change(
      [this, asked, work = std::move(work)](Controller& controller) -> std::function<void()> {
        Registry registry(controller, asked.call.caller);
        auto answer = std::make_shared<Answer<Reply>>(work(registry));
        return [this, asked, answer] {
          asked.call.loop().post([this, asked, answer] { finish(asked, *answer); });
        };
      },
      refusal(asked.call));
}

void Service::finish(const Asked& asked, const Answer<Reply>& answer) {
  if (answer && answer->work) return wait_for(asked, *answer, context_.clock.now() + options_.accept_after);
  send(asked.call, render(answer));
}

net::Response Service::render(const Answer<Reply>& answer) {
  if (!answer) return response_of(answer.error());
  net::Response response;
  response.status = answer->status;
  if (answer->body) response.body = format(*answer->body);
  const bool is_resource = answer->body && answer->body->find("id") && answer->body->find("type");
  if (is_resource)
    response.headers.emplace_back("ETag", "\"0x" + upper(sha256_hex(response.body).substr(0, 15)) + "\"");
  return response;
}

std::string Service::next_link(const Asked& asked, const std::string& token) const {
  std::string link = asked.base + asked.request().path + "?";
  for (const auto& [name, value] : asked.request().query)
    if (name != "$skiptoken") link += net::percent_encode(name) + "=" + net::percent_encode(value) + "&";
  return link + "$skiptoken=" + net::percent_encode(token);
}

Answer<Reply> Service::list(const Asked& asked, Page page) const {
  const auto limit = number_of(asked, "maxresults", 1, 1000, 1000);
  if (!limit) return refuse(limit.error());
  const std::string after = asked.call.parameter("$skiptoken").value_or("");
  std::sort(page.items.begin(), page.items.end(),
            [](const Page::Item& a, const Page::Item& b) { return a.key < b.key; });
  Value shown = list_value();
  std::string last, next;
  for (const Page::Item& item : page.items) {
    if (!after.empty() && item.key <= after) continue;
    if (shown.items.size() == *limit) {
      next = last;
      break;
    }
    auto value = item.show();
    if (!value) return refuse(value.error());
    shown.items.push_back(std::move(*value));
    last = item.key;
  }
  Value body = object_value();
  set(body, "value", std::move(shown));  // a list in braces would be copied
  if (!next.empty()) set(body, "nextLink", text_value(next_link(asked, next)));
  return Reply{200, std::move(body), {}};
}

std::unique_ptr<api::CompatApi> make_batchai_api(api::CompatApiContext context, Options options) {
  return std::make_unique<Service>(std::move(context), std::move(options));
}

}  // namespace slipway::batchai
