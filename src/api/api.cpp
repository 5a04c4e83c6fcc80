#include "api/api.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "api/secrets.h"
#include "base/log.h"
#include "base/sha256.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

constexpr std::uint64_t body_max = 16u << 20;
constexpr std::uint64_t upload_max = std::uint64_t{1} << 42;  // 4 TiB; the disk is full before

bool is_upload(const net::Request& head) {
  return head.method == "PUT" && head.path.starts_with("/v1/datastores/") && head.path.ends_with("/content");
}

std::string_view role_needed(Role role) {
  return role == Role::admin ? "an admin" : role == Role::member ? "a member or admin" : "a";
}

net::Response problem_with(int status, const Error& error) {
  return {status, {{"Content-Type", "application/problem+json"}}, wire::format_problem(status, error) + "\n"};
}

net::Response unauthorized() {
  net::Response response = problem_with(401, {ErrorCode::denied, "this request needs a valid token",
                                              "send Authorization: Bearer TOKEN; the service's own token "
                                              "lies in the file 'token' of its data folder"});
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace

Api::Api(net::Loop& loop, control::Loop& control, const Clock& clock, ApiOptions options)
    : loop_(loop),
      control_(control),
      clock_(clock),
      options_(std::move(options)),
      sessions_(loop, control),
      blobs_(options_.data),
      watcher_(loop),
      reads_([&control] { return control.open_reader(); }) {
  add_service_routes();
  add_sharing_routes();
  add_pool_routes();
  add_node_routes();
  add_job_routes();
  add_log_routes();
  add_file_routes();
  add_event_routes();
  add_datastore_routes();
  if (auto prepared = blobs_.prepare(); !prepared)
    log::error("blobs.prepare", {{"why", prepared.error().what}});
}

std::optional<Api::Identity> Api::identify(const net::Request& request) const {
  const auto header = request.header("Authorization");
  if (!header || !header->starts_with("Bearer ")) return std::nullopt;
  const std::string hash = sha256_hex(header->substr(7));
  for (const TokenRecord& token : tokens_)
    if (token.hash == hash) return Identity{{token.name, token.workspace}, token.role};
  return std::nullopt;
}

CompatApi* Api::compat_api_of(const net::Request& request) const {
  for (const auto& compat : compat_apis_)
    if (compat->answers(request.path)) return compat.get();
  return nullptr;
}

CompatApiContext Api::compat_api_context() {
  return {loop_,
          control_,
          reads_,
          clock_,
          options_.data,
          *options_.sealer,
          [this](const std::string& folder) { return files_here(folder, watcher_); },
          [this](const std::string& workspace, const std::string& node, const std::string& folder) {
            return files_on_node(sessions_, workspace, node, folder);
          },
          [this](const Call& call, const std::shared_ptr<FileSource>& source, const std::string& path) {
            send_file(call, source, path, 0);
          }};
}

net::BodyPolicy Api::policy(const net::Request& head) {
  net::BodyPolicy policy;
  policy.size_max = body_max;
  const CompatApi* compat = compat_api_of(head);
  const bool is_open = compat ? compat->is_open(head.path) : head.path == "/healthz";
  const auto identity = identify(head);
  if (!is_open && !identity) {  // not a byte of a stranger's body is read
    ++unauthorized_;
    policy.refuse = compat ? compat->unauthorized() : unauthorized();
    return policy;
  }
  if (head.method == "PUT" && head.path.starts_with("/v1/blobs/")) {
    policy.size_max = snapshot_size_max;
    policy.spool_folder = blobs_.spool_folder();
  }
  // Of those who may not send files nothing is kept.
  if (is_upload(head) && identity && (identity->role == Role::member || identity->role == Role::admin)) {
    policy.size_max = upload_max;
    policy.spool_folder = blobs_.spool_folder();
  }
  return policy;
}

void Api::handle(std::shared_ptr<net::Exchange> exchange) {
  Call call(loop_, std::move(exchange));
  const net::Request& request = call.request();
  const auto identity = identify(request);
  if (CompatApi* compat = compat_api_of(request)) {
    if (!identity && !compat->is_open(request.path)) return call.send(compat->unauthorized());
    if (identity) {
      ++requests_;
      call.caller = identity->caller;
      call.role = identity->role;
    }
    return compat->handle(call);
  }
  if (!identity && request.path != "/healthz")
    return call.send(unauthorized());  // revoked while its body was read
  const Router::Match match = router_.find(request.method, request.path);
  if (!match.route) {
    if (!match.path_known)
      return call.send(
          problem({ErrorCode::not_found, fmt::format("there is nothing at {}", request.path.substr(0, 200)),
                   "docs/api/openapi.yaml lists the paths"}));
    return call.send(problem_with(
        405,
        {ErrorCode::invalid, fmt::format("{} cannot be asked of {}", request.method, request.path), ""}));
  }
  if (identity) {
    ++requests_;
    call.caller = identity->caller;
    call.role = identity->role;
    // A join token lets a machine in as a node and does nothing else.
    const bool allowed = identity->role == Role::node      ? match.route->role == Role::node
                         : match.route->role == Role::node ? identity->role != Role::viewer
                                                           : identity->role >= match.route->role;
    if (!allowed)
      return call.send(
          problem({ErrorCode::denied, fmt::format("a {} token may not do this", to_string(identity->role)),
                   fmt::format("it needs {} token", role_needed(match.route->role))}));
  }
  call.parts = std::make_shared<const std::map<std::string, std::string>>(match.parts);
  match.route->handle(call);
}

void Api::carry_out(control::Outputs outputs) {
  for (auto& [session, message] : outputs.messages) {
    if (auto* orders = std::get_if<Orders>(&message); orders && has_secrets(*orders))
      open_secrets(*options_.sealer, *orders);
    sessions_.send(session, message);
  }
  for (const auto& [session, why] : outputs.closed) sessions_.close(session, why);
  hub_.publish(outputs.events);
  for (const std::string& folder : outputs.folders_removed)
    worker_.post([path = options_.data + "/" + folder] {
      std::error_code error;
      std::filesystem::remove_all(path, error);
      if (error) log::error("job.files", {{"folder", path}, {"why", error.message()}});
    });
  if (outputs.sources_changed) remove_unused_blobs();
}

void Api::answer(const Call& call, Stored work) {
  reads_.post(
      [call, work = std::move(work)](control::ReadStore& store) {
        auto result = work(store);
        auto response =
            std::make_shared<net::Response>(result ? std::move(*result) : problem(result.error()));
        call.loop().post([call, response] { call.send(std::move(*response)); });
      },
      refusal(call));
}

void Api::answer_live(const Call& call, Live work) {
  control_.snapshot(
      [this, call, work = std::move(work)](std::shared_ptr<const control::Snapshot> live) {
        answer(call, [live, work](control::ReadStore& store) { return work(*live, store); });
      },
      refusal(call));
}

void Api::remove_unused_blobs() {
  reads_.post(
      [this](control::ReadStore& store) {
        auto sources = store.sources();
        if (!sources) return log::error("blobs.sources", {{"why", sources.error().what}});
        worker_.post([this, used = std::move(*sources)] { blobs_.remove_unused(used); });
      },
      [](const Error& error) {
        log::error("blobs.sources", {{"why", error.what}});
      });
}

Result<std::uint32_t> limit_of(const Call& call) {
  const auto text = call.parameter("limit");
  if (!text) return 100u;
  std::uint32_t limit = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (error != std::errc{} || end != text->data() + text->size() || limit < 1 || limit > 1000)
    return fail(ErrorCode::invalid,
                fmt::format("limit '{}' is not a number from 1 to 1000", text->substr(0, 50)));
  return limit;
}

}  // namespace slipway::api
