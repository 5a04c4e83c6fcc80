#include "cli/az/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/client/retry.h"
#include "net/http.h"

namespace slipway::cli::az {
namespace {

constexpr const char* api_version = "2018-05-01";
constexpr const char* provider = "/providers/Microsoft.BatchAI";

std::string encoded(const std::string& part) { return net::percent_encode(part); }

}  // namespace

Command& add_common(Command& command, Common& common) {
  return command
      .text("-g,--resource-group NAME", common.group, "the resource group (default: the configured one)")
      .text("--subscription NAME", common.subscription, "the subscription (or AZURE_SUBSCRIPTION_ID)")
      .text("--query EXPRESSION", common.query, "print what this JMESPath expression makes of the answer")
      .flag("--debug", common.debug, "show every request")
      .flag("--verbose", common.verbose, "show requests that change something");
}

Command& add_workspace(Command& command, Scope& scope) {
  return add_common(command, scope)
      .text("-w,--workspace,--workspace-name NAME", scope.workspace, "the workspace (default: default)")
      .text("-l,--location NAME", scope.location, "the location, where the workspace is made with it");
}

Command& add_experiment(Command& command, Scope& scope) {
  return add_workspace(command, scope)
      .text("-e,--experiment,--experiment-name NAME", scope.experiment, "the experiment (default: default)");
}

std::string target_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) return url;
  const std::size_t path = url.find('/', scheme + 3);
  return path == std::string::npos ? "/" : url.substr(path);
}

Outcome<Value> parse_answer(const net::Response& response, const std::string& target) {
  if (response.body.empty()) return Value();
  std::optional<Value> value = wire::parse_answer(response.body);
  if (!value)
    return refuse("the answer to " + target + " is not JSON",
                  "something else than a Slipway service may listen there", "check --service");
  return std::move(*value);
}

std::string part_of_id(const std::string& id, std::string_view kind) {
  std::size_t begin = 0;
  bool next = false;
  while (begin <= id.size()) {
    const std::size_t end = std::min(id.find('/', begin), id.size());
    std::string part = id.substr(begin, end - begin);
    if (next) return part;
    next = same_word(part, kind);
    begin = end + 1;
  }
  return {};
}

const Value& value_at(const Value& json, std::initializer_list<const char*> keys) {
  const Value* at = &json;
  for (const char* key : keys) at = &at->at(key);
  return *at;
}

std::string text_at(const Value& json, std::initializer_list<const char*> keys) {
  return value_at(json, keys).scalar();
}

Outcome<Arm> Arm::open(Context& context, const Common& common) {
  Outcome<Defaults> defaults = Defaults::load(context.settings());
  if (!defaults) return give_up(defaults);
  return Arm(context, common, std::move(*defaults));
}

std::string Arm::pick(const std::string& given, const char* name, const std::string& otherwise) const {
  if (!given.empty()) return given;
  const std::string configured = defaults_.value(name);
  return configured.empty() ? otherwise : configured;
}

std::string Arm::subscription() const {
  if (!common_->subscription.empty()) return common_->subscription;
  if (std::string set = environment("AZURE_SUBSCRIPTION_ID"); !set.empty()) return set;
  return pick({}, "subscription", "default");
}

std::string Arm::group() const { return pick(common_->group, "group", "default"); }

std::string Arm::location(const std::string& given) const {
  const std::optional<Group> label = defaults_.group(group());
  return pick(given, "location", label && !label->location.empty() ? label->location : "local");
}

std::string Arm::known_account(const std::string& given) const {
  if (!given.empty()) return given;
  for (const char* name : {"AZURE_STORAGE_ACCOUNT", "AZURE_BATCHAI_STORAGE_ACCOUNT"})
    if (std::string set = environment(name); !set.empty()) return set;
  return defaults_.value("storage_account");
}

std::string Arm::account(const std::string& given) const {
  const std::string known = known_account(given);
  return known.empty() ? "default" : known;
}

std::string Arm::workspaces() const {
  return fmt::format("/subscriptions/{}/resourceGroups/{}{}/workspaces", encoded(subscription()),
                     encoded(group()), provider);
}

std::string Arm::workspace(const Scope& scope) const {
  return workspaces() + "/" + encoded(pick(scope.workspace, "workspace", "default"));
}

std::string Arm::cluster(const Scope& scope, const std::string& name) const {
  return name.starts_with("/") ? name : workspace(scope) + "/clusters/" + encoded(name);
}

std::string Arm::file_server(const Scope& scope, const std::string& name) const {
  return name.starts_with("/") ? name : workspace(scope) + "/fileServers/" + encoded(name);
}

std::string Arm::experiment(const Scope& scope) const {
  return workspace(scope) + "/experiments/" + encoded(pick(scope.experiment, "experiment", "default"));
}

std::string Arm::job(const Scope& scope, const std::string& name) const {
  return experiment(scope) + "/jobs/" + encoded(name);
}

Outcome<void> Arm::make_when_absent(const std::string& path, const Value& body, const std::string& name_given,
                                    const std::string& described) {
  const Outcome<Value> found = find(path);
  if (!found) return give_up(found);
  if (!found->is_null()) return {};
  const Outcome<Value> made = put(path, body);
  if (!made) return give_up(made);
  if (!name_given.empty())
    context_->say(fmt::format("{} {} was not there: it is made", described, name_given));
  return {};
}

Outcome<void> Arm::ensure(const Scope& scope, Depth depth) {
  const Value body{{"location", location(scope.location)}};
  if (auto made = make_when_absent(workspace(scope), body, scope.workspace, "workspace"); !made) return made;
  if (depth == Depth::workspace) return {};
  return make_when_absent(experiment(scope), Value(), scope.experiment, "experiment");
}

Outcome<net::Response> Arm::send(const char* method, const std::string& target, const std::string& body) {
  net::Client::Options options;
  options.headers = {{"Accept", "application/json"}};
  if (!body.empty()) {
    options.body = body;
    options.headers.emplace_back("Content-Type", "application/json; charset=utf-8");
  }
  const std::string versioned = target.find("api-version=") == std::string::npos
                                    ? with_query(target, {{"api-version", api_version}})
                                    : target;
  Outcome<net::Response> response = context_->service().request(method, versioned, options);
  if (common_->debug || (common_->verbose && std::string_view(method) != "GET"))
    std::fputs(
        fmt::format("{} {} {}\n", method, versioned, response ? response->status : response.error().status)
            .c_str(),
        stderr);
  return response;
}

Outcome<Value> Arm::get(const std::string& path) {
  const Outcome<net::Response> response = send("GET", path);
  if (!response) return give_up(response);
  return parse_answer(*response, path);
}

Outcome<Value> Arm::find(const std::string& path) {
  Outcome<Value> found = get(path);
  if (!found && found.error().status == 404) return Value();
  return found;
}

Outcome<Value> Arm::show(const std::string& path) {
  Outcome<Value> found = get(path);
  if (found || found.error().status != 404) return found;
  Failure failure = found.error();
  failure.exit_code = 3;
  return give_up(std::move(failure));
}

Outcome<void> Arm::poll_operation(const std::string& target) {
  for (auto pause = 50ms;; pause = std::min<std::chrono::milliseconds>(pause * 2, 1s)) {
    const Outcome<Value> seen = with_retry([&] { return get(target); });
    if (!seen) return give_up(seen);
    const std::string status = text_at(*seen, {"status"});
    if (same_word(status, "succeeded")) return {};
    if (same_word(status, "failed") || same_word(status, "canceled") || same_word(status, "cancelled")) {
      const std::string message = text_at(*seen, {"error", "message"});
      return refuse(message.empty() ? "the operation ended as " + status : message);
    }
    std::this_thread::sleep_for(pause);
  }
}

// Until what was accepted is done: by the operation, or by the resource itself where no operation is named.
Outcome<void> Arm::wait_for(const net::Response& accepted, const std::string& path) {
  const auto operation = net::find_header(accepted.headers, "Azure-AsyncOperation");
  if (operation) return poll_operation(target_of(*operation));
  for (auto pause = 50ms;; pause = std::min<std::chrono::milliseconds>(pause * 2, 1s)) {
    const Outcome<Value> seen = with_retry([&] { return get(path); });
    if (!seen) return give_up(seen);
    const std::string state = text_at(*seen, {"properties", "provisioningState"});
    if (same_word(state, "failed")) return refuse(path + " could not be made");
    if (state.empty() || same_word(state, "succeeded")) return {};
    std::this_thread::sleep_for(pause);
  }
}

Outcome<Value> Arm::put(const std::string& path, const Value& body, Waiting waiting) {
  const Outcome<net::Response> response =
      send("PUT", path, body.is_null() ? std::string() : wire::format_json(body));
  if (!response) return give_up(response);
  Outcome<Value> answered = parse_answer(*response, path);
  if (!answered || waiting == Waiting::not_at_all) return answered;
  const std::string state = text_at(*answered, {"properties", "provisioningState"});
  const bool is_done = response->status != 202 && !same_word(state, "creating");
  if (is_done) return answered;
  if (const auto done = wait_for(*response, path); !done) return give_up(done);
  return get(path);
}

Outcome<Value> Arm::patch(const std::string& path, const Value& body) {
  const Outcome<net::Response> response = send("PATCH", path, wire::format_json(body));
  if (!response) return give_up(response);
  return parse_answer(*response, path);
}

Outcome<Value> Arm::remove(const std::string& path, Waiting waiting) {
  const Outcome<net::Response> response = send("DELETE", path);
  if (!response) return give_up(response);
  if (response->status == 204)
    context_->say(fmt::format("note:  there is no {}: nothing was deleted",
                              net::percent_decode(path.substr(path.rfind('/') + 1)).value_or(path)));
  const auto operation = net::find_header(response->headers, "Azure-AsyncOperation");
  if (response->status == 202 && operation && waiting == Waiting::until_done)
    if (const auto done = poll_operation(target_of(*operation)); !done) return give_up(done);
  return Value();
}

Outcome<Value> Arm::post(const std::string& path, Waiting waiting) {
  const Outcome<net::Response> response = send("POST", path);
  if (!response) return give_up(response);
  const auto operation = net::find_header(response->headers, "Azure-AsyncOperation");
  if (response->status == 202 && operation && waiting == Waiting::until_done)
    if (const auto done = poll_operation(target_of(*operation)); !done) return give_up(done);
  return Value();
}

Outcome<Value> Arm::list(const std::string& path,
                         const std::vector<std::pair<std::string, std::string>>& query, const char* method) {
  Value all = Value::list();
  std::string target = with_query(path, query);
  while (!target.empty()) {
    const Outcome<net::Response> response = send(method, target);
    if (!response) return give_up(response);
    Outcome<Value> page = parse_answer(*response, target);
    if (!page) return page;
    for (Value& item : (*page)["value"].items) all.items.push_back(std::move(item));
    const std::string next = text_at(*page, {"nextLink"});
    target = next.empty() ? "" : target_of(next);
  }
  return all;
}

}  // namespace slipway::cli::az
