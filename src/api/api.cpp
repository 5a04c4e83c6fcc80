#include "api/api.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "api/secrets.h"
#include "base/encoding.h"
#include "base/folder_removal.h"
#include "base/log.h"
#include "base/sha256.h"
#include "control/find_job.h"
#include "domain/layout.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

constexpr std::uint64_t body_max = 1u << 20;         // parsed on the network's thread
constexpr std::uint64_t login_body_max = 16u << 10;  // of somebody who is not known yet
constexpr std::uint64_t large_body_max = 16u << 20;  // parsed on a worker
constexpr std::size_t removed_at_once = 1'000;  // files of a deleted folder, between other work for the disk
constexpr std::uint64_t upload_max = std::uint64_t{1} << 42;  // 4 TiB; the disk is full before

bool is_upload(const net::Request& head) {
  return head.method == "PUT" && head.path.starts_with("/v1/datastores/") && head.path.ends_with("/content");
}

// As far as its sender says.
std::uint64_t length_of(const net::Request& head) {
  const std::string text = head.header("Content-Length").value_or("");
  std::uint64_t length = 0;
  std::from_chars(text.data(), text.data() + text.size(), length);
  return length;
}

bool is_login(const net::Request& head) {
  return head.method == "POST" && (head.path == "/v1/login" || head.path.starts_with("/v1/login/"));
}

bool is_parsed_on_worker(const net::Request& head) {
  return head.method == "POST" && (head.path == "/v1/jobs" || head.path == "/v1/blobs/missing");
}

// The token in the head of a request.
std::optional<std::string> secret_of(const net::Request& request, bool takes_basic) {
  const auto header = request.header("Authorization");
  if (!header) return std::nullopt;
  if (header->starts_with("Bearer ")) return header->substr(7);
  if (!takes_basic || !header->starts_with("Basic ")) return std::nullopt;
  const auto pair = parse_base64(std::string_view(*header).substr(6));
  const std::size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return pair->substr(colon + 1);
}

std::string who_may(const Access& access) {
  switch (access.least()) {
    case Least::anyone:
    case Least::viewer: return "a viewer, member or admin";
    case Least::member: return "a member or admin";
    case Least::owner: return "its owner or an admin";
    case Least::admin: return "an admin";
    case Least::service_admin: return "an admin of workspace default";
  }
  return "an admin";
}

Error denied(const control::Caller& caller, const Access& access) {
  if (caller.role == Role::node) {
    return {
        ErrorCode::denied,
        fmt::format("{} is a node token: it lets machines join and may not {} this {}", caller.name,
                    to_string(access.verb()), to_string(access.object())),
        access.least() >= Least::admin ? "this needs an admin token" : "this needs a member or admin token"};
  }
  return {ErrorCode::denied,
          fmt::format("{}, a {} of workspace {}, may not {} this {}", caller.name, to_string(caller.role),
                      caller.workspace, to_string(access.verb()), to_string(access.object())),
          fmt::format("{} may", who_may(access))};
}

Error denied_to_pool(const control::Caller& caller) {
  return {ErrorCode::denied,
          fmt::format("this token of {} is for the jobs of pool {}: it changes nothing else", caller.name,
                      caller.pool),
          "use a token without a pool"};
}

net::Response unauthorized() {
  net::Response response = problem_with(401, {ErrorCode::denied, "this request needs a valid token",
                                              "send Authorization: Bearer TOKEN; the service's own token "
                                              "lies in the file 'token' of its data folder"});
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

net::Response nothing_there(const net::Request& request, const Router::Match& match) {
  if (!match.methods.empty()) {
    net::Response response = problem_with(
        405, {ErrorCode::invalid, fmt::format("{} cannot be asked of {}", request.method, request.path),
              "it takes " + match.methods});
    response.headers.emplace_back("Allow", match.methods);
    return response;
  }
  return problem({ErrorCode::not_found, fmt::format("there is nothing at {}", request.path.substr(0, 200)),
                  "docs/api/openapi.yaml lists the paths"});
}

}  // namespace

Api::Api(net::Loop& loop, control::Loop& control, const Clock& clock, ApiOptions options)
    : loop_(loop),
      control_(control),
      clock_(clock),
      options_(std::move(options)),
      sessions_(loop, control),
      blobs_(options_.data),
      guard_(options_.host_names),
      exposed_(options_.datastore_roots, options_.data),
      output_mask_(options_.mask_secrets ? options_.sealer : nullptr),
      watcher_(loop),
      task_tokens_(*options_.sealer),
      cookie_(options_.data),
      disk_(loop, control, reads_, blobs_, options_.data),
      folders_(loop),
      reads_([&control] { return control.open_reader(); }) {
  add_service_routes();
  add_sharing_routes();
  add_token_routes();
  add_quota_routes();
  add_secret_routes();
  add_login_routes();
  add_ui_routes();
  add_oidc_routes();
  add_user_routes();
  add_workspace_routes();
  add_pool_routes();
  add_node_routes();
  add_job_routes();
  add_log_routes();
  add_log_time_routes();
  add_file_routes();
  add_event_routes();
  add_datastore_routes();
  if (auto prepared = blobs_.prepare(); !prepared)
    log::error("blobs.prepare", {{"why", prepared.error().what}});
}

std::optional<std::string> Api::shown_token(const net::Request& request) const {
  if (!request.header("Authorization")) return cookie_.token_of(request);
  const CompatApi* compat = compat_api_of(request);
  return secret_of(request, compat && compat->takes_basic());
}

const TokenRecord* Api::identify(const net::Request& request) const {
  if (const auto key = request.header(node_key_header))
    if (const TokenRecord* token = tokens_.find_secret(*key); token && !token->node.empty()) return token;
  const auto shown = shown_token(request);
  if (!shown) return nullptr;
  if (const CompatApi* compat = compat_api_of(request); compat && compat->takes_basic())
    if (const TokenRecord* of_task = task_tokens_.find(*shown)) return of_task;
  const TokenRecord* token = tokens_.find_secret(*shown);
  // The control thread drops it with the turn that is due now.
  return token && token->expires_at && *token->expires_at <= clock_.now() ? nullptr : token;
}

Result<void> Api::may_let_in(const control::Caller& caller, const std::string& workspace,
                             const std::string& user, Role role) const {
  const bool runs_jobs = role == Role::member || role == Role::admin;
  const bool is_caller = caller.name == user && caller.workspace == workspace;
  if (options_.trust_members || !runs_jobs || is_caller) return {};
  return fail(
      ErrorCode::denied,
      fmt::format("{} is not let in as {}: every job runs as the user of the service, so it could read "
                  "the admin's token, the secrets and the files of all others",
                  user, to_string(role)),
      "start the service with slipway up --run-as USER=UID for each user; or with --trust-members, "
      "where all of them may do that");
}

bool Api::is_own_agent(const Call& call) const {
  const auto header = call.request().header("Authorization");
  return header && header->starts_with("Bearer ") && !options_.local_nodes_hash.empty() &&
         sha256_hex(header->substr(7)) == options_.local_nodes_hash;
}

void Api::set_tokens(const std::vector<TokenRecord>& tokens) {
  for (const TokenRecord& token : tokens) tokens_.put(token);
}

void Api::set_quotas(const std::vector<QuotaRecord>& quotas) {
  for (const QuotaRecord& quota : quotas) {
    request_limits_.change(quota);
    disk_.change(quota);
  }
}

void Api::set_disk_used(const std::vector<DiskUse>& sums) {
  std::map<QuotaKey, std::uint64_t> used;
  for (const DiskUse& sum : sums) {
    used[{sum.key.workspace, {}}] += sum.bytes;
    if (!sum.key.user.empty()) used[sum.key] += sum.bytes;
  }
  for (const auto& [key, bytes] : used) disk_.set_used(key, bytes);
}

void Api::set_live_jobs(const std::vector<JobId>& jobs) {
  for (const JobId job : jobs) task_tokens_.job_lives(job);
}

std::string Api::tracking_url() const {
  const std::string& url = reach_.join_url.empty() ? url_ : reach_.join_url;
  return url.starts_with("http://") ? url : std::string();
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
          [this](const std::string& folder) {
            return files_here(folder, files_of_one_process(), loop_, watcher_, disk_reads_);
          },
          [this](const std::string& workspace, const std::string& node, const std::string& folder) {
            return files_on_node(sessions_, workspace, node, folder, files_of_one_process());
          },
          [this](const Call& call, const std::shared_ptr<FileSource>& source, const std::string& path) {
            send_file(call, source, path, 0);
          }};
}

// By its head alone.
std::optional<RequestRefusal> Api::check_request(const net::Request& head, const Admission& admission) const {
  if (auto refused = guard_.check_origin(head)) return refused;
  if (!head.header("Authorization") && cookie_.token_of(head))
    if (auto refused = RequestGuard::check_cookie(head)) return refused;
  if (admission.refusal) return std::nullopt;
  // Artifacts have the types of their files; no page of another site can send a PUT without being asked.
  if (admission.compat && head.method == "PUT" && admission.compat->body(head).is_file) return std::nullopt;
  const bool is_file = head.method == "PUT" && (head.path.starts_with("/v1/blobs/") || is_upload(head));
  return guard_.check_body(head, {.takes_any = is_file});
}

Api::Admission Api::admit(const net::Request& head) const {
  Admission admission;
  admission.compat = compat_api_of(head);
  std::optional<Access>& access = admission.access;
  if (admission.compat) {
    access = admission.compat->access(head);
  } else {
    admission.match = router_.find(head.method, head.path);
    if (admission.match.route) access = admission.match.route->access;
  }
  admission.is_open = access && access->is_open();
  if (const TokenRecord* token = identify(head)) {
    admission.caller = {token->holder(), token->workspace, lowered(token->role, token->scope), token->pool,
                        token->id};
    admission.token = token->id;
  }
  if (!admission.caller && !admission.is_open)
    admission.refusal = admission.compat ? admission.compat->unauthorized() : unauthorized();
  else if (!access)
    admission.refusal = nothing_there(head, admission.match);
  else if (admission.caller && !access->allows(admission.caller->role, admission.caller->workspace))
    admission.refusal = admission.compat ? admission.compat->denied(denied(*admission.caller, *access))
                                         : problem(denied(*admission.caller, *access));
  else if (admission.caller && !admission.caller->pool.empty() && !access->allows_token_of_pool())
    admission.refusal = admission.compat ? admission.compat->denied(denied_to_pool(*admission.caller))
                                         : problem(denied_to_pool(*admission.caller));
  if (const auto refused = check_request(head, admission))
    admission.refusal = problem_with(refused->status, refused->error);
  return admission;
}

// Not a byte is read of a body whose sender may not send it, and none where anyone may ask.
net::BodyPolicy Api::policy(const net::Request& head) {
  net::BodyPolicy policy;
  Admission admission = admit(head);
  if (admission.refusal) {
    unauthorized_ += admission.caller ? 0 : 1;
    audit_refusal(head, admission);
    if (!admission.caller)
      if (auto wait = refuse_guess(head)) admission.refusal = std::move(wait);
    policy.refuse = std::move(admission.refusal);
    return policy;
  }
  policy.size_max = is_login(head)              ? login_body_max
                    : admission.is_open         ? 0
                    : is_parsed_on_worker(head) ? large_body_max
                                                : body_max;
  if (admission.compat && !admission.is_open) {
    const CompatBody body = admission.compat->body(head);
    policy.size_max = body.size_max;
    if (body.is_file) policy.spool_folder = blobs_.spool_folder();
  }
  if (head.method == "PUT" && head.path.starts_with("/v1/blobs/")) {
    policy.size_max = snapshot_size_max;
    policy.spool_folder = blobs_.spool_folder();
  }
  if (is_upload(head)) {
    policy.size_max = upload_max;
    policy.spool_folder = blobs_.spool_folder();
  }
  if (!policy.spool_folder.empty())
    if (auto full = disk_.refuse(admission.caller->workspace, admission.caller->name, length_of(head)))
      policy.refuse = problem(*full);
  return policy;
}

// Counted once, where it is answered. Nodes have none: their work is counted as that of jobs.
std::optional<net::Response> Api::over_request_limit(const Admission& admission) {
  if (!admission.caller || admission.caller->role == Role::node) return std::nullopt;
  const control::Caller& caller = *admission.caller;
  const auto wait = request_limits_.take(caller.workspace, caller.name, clock_.now());
  if (!wait) return std::nullopt;
  const auto own = request_limits_.limit_of({caller.workspace, caller.name});
  const auto all = request_limits_.limit_of({caller.workspace, {}});
  std::string limits;
  if (own) limits += fmt::format("{} may send {} requests a second", caller.name, *own);
  if (all) limits += fmt::format("{}workspace {} {}", limits.empty() ? "" : ", and ", caller.workspace, *all);
  net::Response response =
      problem_with(429, {ErrorCode::unavailable, "too many requests: " + limits,
                         "wait, or have an admin raise it: slipway quota set --requests N"});
  const auto whole = std::chrono::ceil<std::chrono::seconds>(*wait).count();
  response.headers.emplace_back("Retry-After", std::to_string(whole));
  return response;
}

void Api::handle(std::shared_ptr<net::Exchange> exchange) {
  Admission admission = admit(exchange->request());  // again: a token may be revoked while a body is read
  if (admission.refusal) {
    audit_refusal(exchange->request(), admission);
    return Call(loop_, std::move(exchange)).send(std::move(*admission.refusal));
  }
  if (auto busy = over_request_limit(admission))
    return Call(loop_, std::move(exchange)).send(std::move(*busy));
  if (!is_audited(admission)) return dispatch(Call(loop_, std::move(exchange)), std::move(admission));
  const Verb verb = admission.access->verb();
  // A service whose disk is full can still be stopped.
  if (std::string why = options_.audit->problem(); !why.empty() && verb != Verb::read && verb != Verb::stop)
    return Call(loop_, std::move(exchange))
        .send(
            problem({ErrorCode::unavailable, "the audit log cannot be written, so nothing is changed: " + why,
                     "free some space where the data folder lies"}));
  auto before = std::make_shared<std::string>();
  Call call(loop_, audited(std::move(exchange), admission, before));
  if (admission.caller) call.caller = *admission.caller;
  auto kept = std::make_shared<Admission>(std::move(admission));
  read_before(call, *kept, [this, call, kept, before](std::string value) {
    *before = std::move(value);
    dispatch(call, std::move(*kept));
  });
}

void Api::dispatch(Call call, Admission admission) {
  if (admission.caller) {
    ++requests_;
    call.exchange().opened_with(admission.token);
    if (tokens_.knows(admission.token)) note_use(admission.token);
    call.caller = std::move(*admission.caller);
  }
  if (admission.compat) return admission.compat->handle(call);
  call.parts = std::make_shared<const std::map<std::string, std::string>>(std::move(admission.match.parts));
  if (auto sound = check_parameters(call); !sound) return call.send(problem(sound.error()));
  admission.match.route->handle(call);
}

void Api::carry_out(control::Outputs outputs) {
  for (const auto& [session, token] : outputs.keyed) sessions_.set_token(session, token);
  for (const TokenRecord& token : outputs.tokens) tokens_.put(token);
  for (const auto& [key, bytes] : outputs.disk) disk_.set_used(key, bytes);
  set_quotas(outputs.quotas);
  disk_.jobs_ended(outputs.jobs_ended);
  for (const auto& [workspace, job] : outputs.jobs_ended) task_tokens_.job_ended(job);
  for (const std::string& id : outputs.tokens_removed) tokens_.remove(id);
  for (auto& [session, message] : outputs.messages) {
    if (auto* orders = std::get_if<Orders>(&message)) {
      if (has_secrets(*orders)) open_secrets(*options_.sealer, *orders);
      task_tokens_.give(*orders, tracking_url());
    }
    sessions_.send(session, message);
  }
  for (const auto& [session, why] : outputs.closed) sessions_.close(session, why);
  for (const std::string& id : outputs.tokens_removed) {
    sessions_.close_of(id, "its token was revoked");
    options_.cut_opened_with(id);
  }
  hub_.publish(outputs.events);
  for (const std::string& folder : outputs.folders_removed) remove_files(folder);
  if (!outputs.jobs_ended.empty()) remove_unused_folders(std::move(outputs.jobs_ended));
  if (outputs.sources_changed) {
    remove_unused_blobs();
    disk_.jobs_removed();
  }
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

void Api::explain(const Call& call, control::LiveQuery query, Explain work) {
  control_.live(
      std::move(query),
      [this, call, work = std::move(work)](std::shared_ptr<const control::LiveView> live) {
        answer(call, [live, work](control::ReadStore& store) { return work(*live, store); });
      },
      refusal(call));
}

void Api::explain_job(const Call& call, bool only_job, ExplainJob work) {
  const auto find = [call](control::ReadStore& store) {
    return control::find_job(store, call.caller.workspace, call.part("job"));
  };
  read<JobRecord>(call, find, [this, call, only_job, find, work](const JobRecord& job) {
    if (is_terminal(job.state))
      return answer(call, [job, work](control::ReadStore& store) { return work(job, nullptr, store); });
    explain(
        call, {.job = job.id, .only_job = only_job},
        [find, work](const control::LiveView& live, control::ReadStore& store) -> Result<net::Response> {
          if (live.job) return work(live.job->record, &live, store);
          // It has ended since.
          return find(store).and_then([&](const JobRecord& ended) { return work(ended, nullptr, store); });
        });
  });
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

std::optional<std::string> after_of(const Call& call) {
  auto after = call.parameter("after");
  if (after && after->empty()) after.reset();
  return after;
}

Result<void> check_parameters(const Call& call) {
  if (auto limit = limit_of(call); !limit) return fail(limit.error());
  for (const char* name : {"force", "deleted", "follow", "keep_jobs"}) {
    const auto value = call.parameter(name);
    if (value && !value->empty() && *value != "true" && *value != "false")
      return fail(ErrorCode::invalid,
                  fmt::format("{} '{}' is not true or false", name, value->substr(0, 50)));
  }
  return {};
}

// Step by step, each after what else the worker has to do. What is not finished is tried again by
// the next service: it is on record until it is done.
void Api::remove_files(const std::string& folder) {
  const auto next_step = [this, folder] {
    const auto more = remove_some(options_.data + "/" + folder, removed_at_once);
    if (!more) return log::error("folder.removal", {{"folder", folder}, {"why", more.error().what}});
    if (*more) return remove_files(folder);
    control_.change(
        [folder](control::Controller& controller) {
          controller.files_removed(folder);
          return [] {};
        },
        [folder](const Error& error) {
          log::warning("folder.removal", {{"folder", folder}, {"why", error.what}});
        });
  };
  if (!worker_.post(next_step))
    log::warning("folder.removal", {{"folder", folder}, {"why", "too much waits"}});
}

// What was made for the tasks of a job to share and to save checkpoints in, where none did. Before the job
// has ended any of them still may.
void Api::remove_unused_folders(std::vector<std::pair<std::string, JobId>> jobs) {
  const bool posted = worker_.post([data = options_.data + "/", jobs = std::move(jobs)] {
    for (const auto& [workspace, job] : jobs) {
      remove_empty_folders(data + checkpoints_folder(workspace, job));
      ::rmdir((data + shared_folder(workspace, job)).c_str());
      ::rmdir((data + job_folder(workspace, job)).c_str());
    }
  });
  if (!posted) log::warning("folder.removal", {{"why", "too much waits"}});
}

Result<std::uint32_t> limit_of(const Call& call, std::uint32_t usual) {
  const auto text = call.parameter("limit");
  if (!text) return usual;
  std::uint32_t limit = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (error != std::errc{} || end != text->data() + text->size() || limit < 1 || limit > 1000)
    return fail(ErrorCode::invalid,
                fmt::format("limit '{}' is not a number from 1 to 1000", text->substr(0, 50)),
                "write it like limit=100");
  return limit;
}

}  // namespace slipway::api
