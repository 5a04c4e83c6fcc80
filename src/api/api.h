#pragma once
// The native REST API: parse, call, render. Runs on the network's thread and keeps no state that matters.
//
// A read never runs on the control thread. What was saved is read and rendered on the threads of the
// ReadPool; live state comes as copies that the control loop makes: its snapshot, or a LiveView for
// explanations and trial evaluations.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/audit_log.h"
#include "api/blobs.h"
#include "api/browser_cookie.h"
#include "api/compat_api.h"
#include "api/disk_quotas.h"
#include "api/events.h"
#include "api/exposed_folders.h"
#include "api/failed_sign_ins.h"
#include "api/file_source.h"
#include "api/folder_workers.h"
#include "api/login_links.h"
#include "api/node_sessions.h"
#include "api/oidc_sign_ins.h"
#include "api/output_mask.h"
#include "api/read_pool.h"
#include "api/request_guard.h"
#include "api/request_limits.h"
#include "api/router.h"
#include "api/task_tokens.h"
#include "api/token_table.h"
#include "api/worker.h"
#include "base/seal.h"
#include "control/live.h"
#include "control/loop.h"
#include "domain/gang.h"
#include "domain/records.h"
#include "net/server.h"
#include "net/tail.h"
#include "wire/users.h"

namespace slipway::api {

class StoredFiles;

struct ApiOptions {
  std::string data;   // the data folder, absolute
  std::string probe;  // a file in it, by which agents see whether they share it
  std::string nonce;  // content of that file
  TimePoint started_at{};
  std::function<void(bool keep_running)> stop;  // asked for over the API
  // Cuts what was opened with a token that is revoked: its streams, and answers under way.
  std::function<void(const std::string& token)> cut_opened_with = [](const std::string&) {};
  // Of the data folder.
  std::shared_ptr<const Sealer> sealer = std::make_shared<const Sealer>(Sealer::for_now());
  std::vector<std::string> datastore_roots{};  // folders that datastores may lie in, beside the service's own
  bool trust_members = true;  // tokens of other users are given out though all jobs run as the service does
  std::shared_ptr<AuditLog> audit{};   // none: nothing is kept
  bool audit_reads = false;            // what was read, too
  std::optional<oidc::Client> oidc{};  // the provider by which users sign in, if there is one
  oidc::GroupRules oidc_groups{};
  bool mask_secrets = false;              // in the output of processes, where it is read
  std::vector<std::string> host_names{};  // by which the service is asked, beside localhost and addresses
  std::string local_nodes_hash{};  // SHA-256 of the token of this service's agents, who join every workspace
  std::string own_admin_hash{};    // and of the one in the data folder
};

class Api {
 public:
  Api(net::Loop& loop, control::Loop& control, const Clock& clock, ApiOptions options);

  void handle(std::shared_ptr<net::Exchange> exchange);
  net::BodyPolicy policy(const net::Request& head);

  // After a turn of the control loop; on the network's thread.
  void carry_out(control::Outputs outputs);
  void cut_all_sessions(const std::string& why) { sessions_.close_all(why); }
  void resume_sessions(const std::vector<SessionId>& sessions) { sessions_.resume(sessions); }
  void set_tokens(const std::vector<TokenRecord>& tokens);  // at the start; changes come with a turn
  void set_quotas(const std::vector<QuotaRecord>& quotas);  // likewise
  void set_live_jobs(const std::vector<JobId>& jobs);       // likewise: their tasks may go on tracking
  void set_disk_used(const std::vector<DiskUse>& sums);     // likewise
  void set_url(std::string url) { url_ = std::move(url); }
  // How the service is reached by others, and what it signs.
  struct Reach {
    std::string fingerprint{};  // of TLS, which clients pin; empty without it
    std::string join_url{};     // for other machines, with the fingerprint; empty: there is none
    std::function<Result<std::string>(const std::string& request, const std::string& name)> sign_node{};
  };
  void set_reach(Reach reach) { reach_ = std::move(reach); }

  // What a compatibility API is built on. Its paths come before the routes here.
  CompatApiContext compat_api_context();
  void add_compat_api(std::unique_ptr<CompatApi> compat) {
    reserved_tags_.push_back(compat->reserved_tags());
    compat_apis_.push_back(std::move(compat));
  }

  const Router& router() const { return router_; }
  const std::vector<std::unique_ptr<CompatApi>>& compat_apis() const { return compat_apis_; }
  Worker& worker() { return worker_; }
  void remove_unused_blobs();

 private:
  void remove_files(const std::string& folder);
  void remove_unused_folders(std::vector<std::pair<std::string, JobId>> jobs);
  // One *_routes.cpp each; files.cpp has those of files.
  void add_event_routes();
  void add_job_routes();
  void add_job_read_routes();
  void add_task_state_routes();
  void submit(const Call& call, Result<JobSpec> spec);  // (job_routes.cpp)
  void plan(const Call& call, JobSpec spec);
  void add_rerun_routes();
  void change_job(const Call& call, std::function<Result<JobRecord>(control::Controller&, JobId)> work);
  void rerun(const Call& call, const Rerun& asked);
  void add_log_routes();
  void add_log_time_routes();
  void add_pool_routes();
  void add_node_routes();
  void add_quota_routes();
  void add_secret_routes();
  void add_service_routes();
  void add_sharing_routes();
  void add_token_routes();
  void add_login_routes();
  void add_ui_routes();  // (ui_routes.cpp)
  void add_oidc_routes();
  void add_user_routes();  // (user_routes.cpp)
  void add_workspace_routes();
  void add_file_routes();
  void add_datastore_routes();  // (datastore_routes.cpp)
  void add_datastore_file_routes();
  std::string folder_of(const DatastoreRecord& datastore) const;
  // `work` runs on the worker and gives what is to be done on the network's thread.
  void with_files(const Call& call, std::function<std::function<void()>(const StoredFiles&)> work);

  // What a request shows: in its head, or by the cookie of a browser.
  std::optional<std::string> shown_token(const net::Request& request) const;
  void sign_in_browser(const Call& call, const wire::BrowserLogin& request);

  // (login_routes.cpp)
  void sign_in(const Call& call, const wire::LoginRequest& request);
  Result<control::SignIn> check_sign_in(const wire::LoginRequest& request, const UserRecord& known) const;
  void finish_sign_in(const Call& call, const Result<control::SignIn>& checked);
  void finish_oidc(const Call& call, const wire::OidcFinish& request, const oidc::Identity& who);
  // Who shows tokens that nobody has has to wait, after a few.
  std::optional<net::Response> refuse_guess(const net::Request& head);
  void add_user(const Call& call, const wire::UserRequest& request, const std::string& password);

  // Its token was used: kept at most a minute before it is saved.
  void note_use(const std::string& token);
  void save_token_use();

  // Where nodes reach the service with a client that cannot pin a certificate; empty: nowhere.
  std::string tracking_url() const;
  // The token a request shows, unless it has expired; of an agent with a key of its own: that key.
  const TokenRecord* identify(const net::Request& request) const;
  bool is_own_agent(const Call& call) const;
  // Whether somebody who can run jobs may be let in beside the caller.
  Result<void> may_let_in(const control::Caller& caller, const std::string& workspace,
                          const std::string& user, Role role) const;
  // The rule this request is under, and what is answered where its caller may not: decided from the head
  // alone.
  struct Admission {
    std::optional<control::Caller> caller;
    std::string token{};  // its id
    Router::Match match;
    CompatApi* compat = nullptr;
    bool is_open = false;  // to anyone
    std::optional<Access> access;
    std::optional<net::Response> refusal;
  };
  Admission admit(const net::Request& head) const;
  std::optional<RequestRefusal> check_request(const net::Request& head, const Admission& admission) const;
  std::optional<net::Response> over_request_limit(const Admission& admission);
  void dispatch(Call call, Admission admission);

  // (audit.cpp)
  bool is_audited(const Admission& admission) const;
  bool is_unauthorized_flood() const;
  std::string degraded() const;  // empty, or why requests that change something are refused
  void audit_refusal(const net::Request& head, const Admission& admission) const;
  std::shared_ptr<net::Exchange> audited(std::shared_ptr<net::Exchange> exchange, const Admission& admission,
                                         std::shared_ptr<std::string> before) const;
  void read_before(const Call& call, const Admission& admission, std::function<void(std::string)> then);
  CompatApi* compat_api_of(const net::Request& request) const;

  // Runs `work` as a change of the control state; its result is rendered and sent once it is saved.
  template <class T>
  void change(const Call& call, std::function<Result<T>(control::Controller&)> work,
              std::function<net::Response(const T&)> render) {
    control_.change(
        [this, call, work = std::move(work),
         render = std::move(render)](control::Controller& controller) -> std::function<void()> {
          auto result = std::make_shared<Result<T>>(work(controller));
          return [this, call, result, render] {
            call.loop().post([call, result, render, turn = control_.saved()] {
              net::Response response = *result ? render(**result) : problem(result->error());
              response.headers.emplace_back("X-Slipway-Turn", std::to_string(turn.number));
              call.send(std::move(response));
            });
          };
        },
        refusal(call));
  }
  // Runs `work` on a read thread, with everything it reads of one saved turn; what it gives is sent.
  using Stored = std::function<Result<net::Response>(control::ReadStore&)>;
  void answer(const Call& call, Stored work);
  // The same with live state. The saved turn is that of the snapshot, or a later one.
  using Live = std::function<Result<net::Response>(const control::Snapshot&, control::ReadStore&)>;
  void answer_live(const Call& call, Live work);
  // As these, but what is read is handed to `then` on the network's thread.
  template <class T>
  void read(const Call& call, std::function<Result<T>(control::ReadStore&)> work,
            std::function<void(const T&)> then) {
    reads_.post(
        [call, work = std::move(work), then = std::move(then)](control::ReadStore& store) {
          auto result = std::make_shared<Result<T>>(work(store));
          call.loop().post(
              [call, result, then] { *result ? then(**result) : call.send(problem(result->error())); });
        },
        refusal(call));
  }
  template <class T>
  void read_live(const Call& call,
                 std::function<Result<T>(const control::Snapshot&, control::ReadStore&)> work,
                 std::function<void(const T&)> then) {
    control_.snapshot(
        [this, call, work = std::move(work),
         then = std::move(then)](std::shared_ptr<const control::Snapshot> live) {
          read<T>(
              call, [live, work](control::ReadStore& store) { return work(*live, store); }, then);
        },
        refusal(call));
  }
  // As answer(), with a copy of what explanations need.
  using Explain = std::function<Result<net::Response>(const control::LiveView&, control::ReadStore&)>;
  void explain(const Call& call, control::LiveQuery query, Explain work);
  // The same for the job that the call names. A job that has ended needs no live state.
  using ExplainJob =
      std::function<Result<net::Response>(const JobRecord&, const control::LiveView*, control::ReadStore&)>;
  void explain_job(const Call& call, bool only_job, ExplainJob work);
  // Sends the problem, from any thread.
  static std::function<void(const Error&)> refusal(const Call& call) {
    return [call](const Error& error) { call.loop().post([call, error] { call.send(problem(error)); }); };
  }

  // Where the files of an attempt lie. (files.cpp)
  struct AttemptFiles {
    JobRecord job;
    TaskRecord task;
    std::uint32_t attempt = 0;  // 0: there is none yet
    bool ended = false;
    std::vector<Member> members;
    bool is_named = false;  // its processes, and so their files
    std::vector<std::string> nodes;
    std::vector<bool> here;   // by node: its files lie in our data folder
    std::string checkpoints;  // folder of the task's checkpoints
    std::optional<TimePoint> started_at;
    bool has_wd = false;  // working folders of its own
    Masker masker{{}};
  };
  // On a read thread.
  Result<AttemptFiles> find_attempt_files(const control::Snapshot& live, control::ReadStore& store,
                                          const control::Caller& caller, const std::string& job,
                                          const std::string& task,
                                          std::optional<std::uint32_t> attempt) const;
  // Where the streams of a process lie, or all that lies where those of the first one do.
  std::shared_ptr<FileSource> source_of(const AttemptFiles& files, std::uint32_t rank);
  std::shared_ptr<FileSource> source_of_all(const AttemptFiles& files);
  static void add_own_files(const AttemptFiles& files, std::uint32_t rank, OwnFiles& own);
  std::shared_ptr<FileSource> source_of(const AttemptFiles& files, std::uint32_t rank, OwnFiles own);
  // A process by its rank or its name.
  static Result<std::uint32_t> rank_of(const AttemptFiles& files, const std::string& process);
  void send_page(const Call& call, FilePage page);
  void send_file(const Call& call, const std::shared_ptr<FileSource>& source, const std::string& path,
                 std::uint32_t attempt);
  struct Tail {  // the last lines of a file
    std::uint64_t begin = 0;
    bool is_cut = false;  // see TailSearch
  };
  void find_tail(const std::shared_ptr<FileSource>& source, const std::string& path, std::uint64_t size,
                 std::uint64_t lines, std::function<void(Result<Tail>)> done);
  struct Part {  // of a body, as a request asks for it
    int status = 200;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  static std::optional<Part> part_of(const Call& call, std::uint64_t size, net::Headers& headers);
  void stream_file(const Call& call, std::shared_ptr<FileSource> source, const std::string& path,
                   std::uint64_t offset, std::uint64_t end, int status, net::Headers headers);

  net::Loop& loop_;
  control::Loop& control_;
  const Clock& clock_;
  ApiOptions options_;
  std::string url_;
  Reach reach_;
  Router router_;
  std::vector<std::unique_ptr<CompatApi>> compat_apis_;
  std::vector<ReservedTags> reserved_tags_;  // theirs; complete before the first request
  EventHub hub_;
  NodeSessions sessions_;
  BlobStore blobs_;
  RequestGuard guard_;
  ExposedFolders exposed_;
  OutputMask output_mask_;
  net::FileWatcher watcher_;
  TokenTable tokens_;
  mutable TaskTokens task_tokens_;  // what was checked once is remembered
  std::shared_ptr<net::Loop::Timer> saving_token_use_;
  FailedSignIns failed_sign_ins_;
  std::size_t signing_in_ = 0;
  std::unique_ptr<OidcSignIns> oidc_;  // none: there is no provider
  BrowserCookie cookie_;
  LoginLinks login_links_;
  RequestLimits request_limits_;
  std::uint64_t requests_ = 0;
  std::uint64_t unauthorized_ = 0;
  mutable std::size_t unauthorized_audited_ = 0;  // of the audit log, since then
  mutable TimePoint audited_since_{};
  DiskQuotas disk_;
  FolderWorkers folders_;  // of datastores
  Worker passwords_;       // one at a time: each takes 19 MiB
  Worker parser_;          // these last: their work may use everything above
  Worker worker_;
  Worker disk_reads_;  // lists of folders, tails of logs: none of them waits for what is deleted or copied
  ReadPool reads_;

  friend class LogFollower;
};

// The attempt a request names with ?attempt=N. (files.cpp)
Result<std::optional<std::uint32_t>> attempt_of(const Call& call);
// A page's limit: 1 to 1000, 100 unless asked.
Result<std::uint32_t> limit_of(const Call& call, std::uint32_t usual = 100);
// What means the same wherever it is given, also where the route takes no notice of it.
Result<void> check_parameters(const Call& call);
// The `next` of the page before; an empty one asks for the first page, as none does.
std::optional<std::string> after_of(const Call& call);

}  // namespace slipway::api
