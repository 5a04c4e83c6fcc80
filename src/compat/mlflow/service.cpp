#include "compat/mlflow/service.h"

#include <fmt/format.h>

#include "track/experiments.h"
#include "track/runs.h"
#include "wire/value.h"

namespace slipway::mlflow {
namespace {

constexpr std::uint64_t body_size_max = 4u << 20;
constexpr std::uint64_t artifact_size_max = std::uint64_t{1} << 42;  // the disk is full before
constexpr std::size_t task_runs_max = 100'000;
// What clients take it for decides what they dare to ask.
constexpr const char* speaks_version = "3.0.0";
constexpr const char* server_info =
    R"({"store_type":"SqlStore","workspaces_enabled":false,"trace_archival_enabled":false,)"
    R"("multipart_uploads_enabled":false,"multipart_downloads_enabled":false})";

net::Response endpoint_unknown(const net::Request& request) {
  return failure_response(
      {404, "ENDPOINT_NOT_FOUND"},
      fmt::format("there is nothing at {} {}", request.method, request.path.substr(0, 200)));
}

bool has_json_type(const net::Request& request) {
  if (request.body_size == 0 && request.body.empty()) return true;
  const auto given = request.header("Content-Type");
  return given && given->substr(0, given->find(';')).find("application/json") != std::string::npos;
}

// Sent from any thread.
void send_later(const api::Call& call, net::Response response) {
  call.loop().post([call, response = std::move(response)] { call.send(response); });
}

net::Response response_to(const Result<std::string>& result) {
  return result ? answer(*result) : response_of(result.error());
}

}  // namespace

Service::Service(api::CompatApiContext context, track::Tracker& tracker)
    : context_(std::move(context)), tracker_(tracker) {}

Access Service::access(const net::Request& head) const {
  return access_of(parse_target(head.method, head.path), head.method);
}

api::CompatBody Service::body(const net::Request& head) const {
  const bool is_artifact =
      head.method == "PUT" && parse_target(head.method, head.path).noun == Noun::artifact;
  return is_artifact ? api::CompatBody{artifact_size_max, true} : api::CompatBody{body_size_max, false};
}

net::Response Service::unauthorized() const {
  net::Response response = failure_response({401, "UNAUTHENTICATED"},
                                            "this request needs a valid token: set MLFLOW_TRACKING_TOKEN, or "
                                            "the token as MLFLOW_TRACKING_PASSWORD");
  response.headers.emplace_back("WWW-Authenticate", "Basic realm=\"mlflow\"");
  return response;
}

void Service::post(api::Worker& worker, const api::Call& call, std::function<void()> work) {
  if (!worker.post(std::move(work)))
    call.send(response_of({ErrorCode::unavailable, "too much waits to be tracked", "try again shortly"}));
}

// Everything else has the experiment Default to stand on.
void Service::handle(const api::Call& call) {
  const std::string& workspace = call.caller.workspace;
  if (!workspace.empty() && prepared_.contains(workspace)) {
    const auto task = api::task_of_token(workspace, call.caller.token);
    return task && !task_runs_.contains(task->run()) ? with_run(call, *task) : dispatch(call);
  }
  if (workspace.empty()) return dispatch(call);
  post(changes_, call, [this, call] {
    tracker_.change<bool>(
        {call.caller.workspace, call.caller.name},
        [](track::Change& change) -> Result<bool> {
          add_default_experiment(change);
          return true;
        },
        [this, call](const Result<bool>& done) {
          call.loop().post([this, call, done] {
            if (!done) return call.send(response_of(done.error()));
            prepared_.insert(call.caller.workspace);
            handle(call);
          });
        });
  });
}

void Service::with_run(const api::Call& call, const api::TrackedTask& task) {
  const auto refused = [call](const Error& error) { send_later(call, response_of(error)); };
  context_.reads.post(
      [this, call, task, refused](control::ReadStore& store) {
        auto job = store.job(task.job);
        if (!job) return refused(job.error());
        track::NewRun run;
        run.id = task.run();
        run.name = task.task;
        run.tags = {{"slipway.job", to_string(task.job)}, {"slipway.task", task.task}};
        if (*job) {
          run.user = (*job)->submitted_by;
          run.name = ((*job)->name.empty() ? to_string(task.job) : (*job)->name) + "/" + task.task;
          run.tags.push_back({"mlflow.user", (*job)->submitted_by});
          run.tags.push_back({"slipway.pool", (*job)->pool});
          if (!(*job)->source.empty()) run.tags.push_back({"slipway.source", (*job)->source});
        }
        tracker_.change<bool>(
            {call.caller.workspace, call.caller.name},
            [run](track::Change& change) -> Result<bool> {
              if (change.state().run(run.id)) return true;
              return create_run(change, run).map([](const track::Run*) { return true; });
            },
            [this, call, run](const Result<bool>& made) {
              call.loop().post([this, call, run, made] {
                if (!made) return call.send(response_of(made.error()));
                if (task_runs_.size() == task_runs_max) task_runs_.clear();
                task_runs_.insert(run.id);
                dispatch(call);
              });
            });
      },
      refused);
}

void Service::dispatch(const api::Call& call) {
  const net::Request& request = call.request();
  auto target = std::make_shared<const Target>(parse_target(request.method, request.path));
  switch (target->noun) {
    case Noun::health: return call.send({200, {{"Content-Type", "text/plain"}}, "OK"});
    case Noun::version: return call.send({200, {{"Content-Type", "text/plain"}}, speaks_version});
    case Noun::server_info: return call.send(answer(server_info));
    case Noun::unknown: return call.send(endpoint_unknown(request));
    case Noun::multipart:
      return call.send(failure_response(
          {501, "NOT_IMPLEMENTED"}, "Multipart upload is not supported for the current artifact repository"));
    case Noun::route: break;
    default: return call_artifact(call, *target);
  }
  if (request.method == "POST" && !has_json_type(request))
    return call.send(
        response_of({ErrorCode::invalid, "Bad Request. Content-Type must be 'application/json'.", ""}));
  const bool is_change = std::holds_alternative<ChangeHandler>(target->route->handler);
  post(is_change ? changes_ : reads_, call, [this, call, target] { call_route(call, target); });
}

void Service::call_route(const api::Call& call, const std::shared_ptr<const Target>& target) {
  const net::Request& request = call.request();
  const bool has_query = request.method == "GET" || request.method == "HEAD";
  auto input = has_query ? Input::of_query(request) : Input::of_body(request.body);
  if (!input) return send_later(call, response_of(input.error()));
  Asked asked{*input, call.caller, target->parts};
  if (const auto* read = std::get_if<ReadHandler>(&target->route->handler)) {
    const auto result = tracker_.read([&](const track::State& state) { return (*read)(state, asked); });
    return send_later(call, response_to(result));
  }
  if (const auto* read = std::get_if<SeriesHandler>(&target->route->handler)) {
    auto wanted = tracker_.read([&](const track::State& state) { return (*read)(state, asked); });
    return wanted ? read_series(call, std::move(*wanted)) : send_later(call, response_of(wanted.error()));
  }
  const ChangeHandler handler = std::get<ChangeHandler>(target->route->handler);
  tracker_.change<std::string>(
      {call.caller.workspace, call.caller.name},
      [&](track::Change& change) { return handler(change, asked); },
      [call](const Result<std::string>& result) { send_later(call, response_to(result)); });
}

void Service::read_series(const api::Call& call, SeriesAsked asked) {
  std::vector<std::pair<std::string, std::vector<track::Point>>> all;
  for (const auto& [run, series] : asked.series) {
    auto points = track::read_series(series);
    if (!points) return send_later(call, response_of(points.error()));
    all.emplace_back(run, std::move(*points));
  }
  send_later(call, response_to(asked.render(std::move(all))));
}

Result<void> check_owner(const Asked& asked, const std::string& owner, const std::string& thing) {
  if (asked.caller.role == Role::admin || asked.caller.name == owner) return {};
  return fail(ErrorCode::denied,
              fmt::format("{} is {}'s: {} may not delete it", thing, owner.empty() ? "nobody" : owner,
                          asked.caller.name),
              "its owner or an admin may");
}

std::unique_ptr<api::CompatApi> make_mlflow_api(api::CompatApiContext context, track::Tracker& tracker) {
  return std::make_unique<Service>(std::move(context), tracker);
}

}  // namespace slipway::mlflow
