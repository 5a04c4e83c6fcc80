#include "apps/service.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "agent/agent_setup.h"
#include "agent/machine.h"
#include "api/api.h"
#include "api/seal_anew.h"
#include "apps/backups.h"
#include "apps/detach.h"
#include "apps/listen.h"
#include "apps/sealing_key.h"
#include "apps/service_tls.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/sha256.h"
#include "compat/batchai/batchai.h"
#include "compat/mlflow/mlflow.h"
#include "container/engines.h"
#include "container/run_as.h"
#include "control/loop.h"
#include "net/client.h"
#include "net/server.h"
#include "provision/local.h"
#include "store/sqlite.h"
#include "store/track_image.h"
#include "wire/records.h"

namespace slipway {
namespace {

constexpr const char* probe_name = "storage-probe";

int complain(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what.c_str());
  if (!error.hint.empty()) std::fprintf(stderr, "try:   %s\n", error.hint.c_str());
  return 1;
}

// What a turn wants done, handed from the control thread to the network's.
class ServiceEffects final : public control::OutputHandler {
 public:
  ServiceEffects(net::Loop& loop, const Clock& clock) : clock_(clock), loop_(loop) {}
  api::Api* api = nullptr;
  provision::LocalProvisioner* local = nullptr;
  control::Loop* control = nullptr;

  void carry_out(control::Outputs outputs, const control::Controller& controller) override {
    const bool changed = outputs.local_nodes_changed;
    auto nodes = changed ? controller.local_nodes() : std::vector<NodeRecord>();
    if (outputs.checks_nodes) loop_.post([this] { read_what_waits(); });
    if (!changed && outputs.messages.empty() && outputs.closed.empty() && outputs.events.empty() &&
        outputs.tokens.empty() && outputs.tokens_removed.empty() && outputs.folders_removed.empty() &&
        outputs.agents_stuck.empty())
      return;
    loop_.post([this, changed, nodes = std::move(nodes),
                outputs = std::make_shared<control::Outputs>(std::move(outputs))] {
      const auto stuck = std::move(outputs->agents_stuck);
      api->carry_out(std::move(*outputs));
      if (changed) local->want(nodes);
      for (const auto& [workspace, node] : stuck) local->restart(workspace, node);
    });
  }
  void cut_all_sessions(const std::string& why) override {
    loop_.post([this, why] { api->cut_all_sessions(why); });
  }
  void resume_sessions(std::vector<SessionId> sessions) override {
    loop_.post([this, sessions = std::move(sessions)] { api->resume_sessions(sessions); });
  }

 private:
  // What had arrived by now has been read once the loop has gone round for a while.
  void read_what_waits() {
    const TimePoint now = clock_.now();
    reading_ = loop_.after(reading_takes, [this, now] { control->all_received(now); });
  }

  static constexpr Duration reading_takes = 100ms;
  const Clock& clock_;
  std::shared_ptr<net::Loop::Timer> reading_;
  net::Loop& loop_;
};

// The admin's token and the local agents' join token, made at the first start and kept in files only their
// owner can read. Its hash.
Result<std::string> ensure_token(const std::string& file, const TokenRecord& wanted,
                                 std::vector<TokenRecord>& known, std::vector<TokenRecord>& added) {
  std::string secret;
  if (auto text = read_file(file)) {
    secret = *text;
    while (!secret.empty() && secret.back() == '\n') secret.pop_back();
  }
  if (secret.empty()) {
    secret = "slipway_" + random_hex(24);
    if (auto written = write_file_durably(file, secret + "\n", 0600); !written) return fail(written.error());
  }
  const std::string hash = sha256_hex(secret);
  for (const TokenRecord& token : known)
    if (token.hash == hash) return hash;
  TokenRecord token = wanted;
  token.id = "token_" + random_hex(4);
  token.hash = hash;
  known.push_back(token);
  added.push_back(token);
  return hash;
}

bool is_set(const char* name, std::string_view value) {
  const char* found = std::getenv(name);
  return found && value == found;
}

batchai::Options batchai_options(const Resources& machine) {
  batchai::Options options;
  options.machine = machine;
  options.containers_on_host = is_set("SLIPWAY_BATCHAI_CONTAINERS", "host");
  options.always_accepts = is_set("SLIPWAY_BATCHAI_FORCE_202", "1");
  return options;
}

// Jobs that run as users reach their folders only where every folder on the way lets them through.
Result<void> check_reached(const std::string& data) {
  if (::geteuid() != 0) return {};
  const std::string closed = container::closed_on_the_way(data);
  if (closed.empty()) return {};
  return fail(
      ErrorCode::invalid,
      fmt::format("--run-as: users cannot go through {}, and so not reach the folders of their jobs below {}",
                  closed, data),
      "use another --data folder, like /var/lib/slipway, or: chmod o+x " + closed);
}

class Service {
 public:
  explicit Service(const cli::UpOptions& options) : options_(options), effects_(loop_, clock_) {}

  // `ready` gets the address once requests are answered.
  Result<void> run(const std::function<void(const std::string& url)>& ready) {
    return prepare_folder()
        .and_then([&] { return open_store(); })
        .and_then([&] { return listen(); })
        .and_then([&] { return start(); })
        .map([&] {
          ready(url_);
          loop_.run();
          control_->join();
        });
  }

 private:
  Result<void> prepare_folder() {
    std::error_code error;
    data_ = std::filesystem::absolute(options_.data, error).lexically_normal().string();
    while (data_.size() > 1 && data_.back() == '/') data_.pop_back();
    if (auto made = make_folders(data_, 0700); !made) return made;
    auto lock = FileLock::take(data_ + "/service.lock");
    if (!lock) {
      const int holder = FileLock::holder(data_ + "/service.lock");
      return fail(ErrorCode::conflict,
                  fmt::format("a service already runs on {} (process {})", data_, holder),
                  "use it, stop it with slipway down, or give this one another --data folder");
    }
    lock_.emplace(std::move(*lock));
    if (auto closed = close_folders(); !closed) return closed;
    nonce_ = random_hex(16);
    auto written = write_file_durably(data_ + "/" + probe_name, nonce_, 0644);
    if (written || written.error().code != ErrorCode::unavailable) return written;
    // A full disk: what is there can still be read. Nodes know the folder by what an earlier start wrote.
    degraded_ = written.error().what;
    if (auto before = read_file(data_ + "/" + probe_name)) nonce_ = *before;
    return {};
  }

  // They may have been made before, by others. Users that jobs run as go through the data folder, and see no
  // names in it.
  Result<void> close_folders() {
    if (::chmod(data_.c_str(), options_.run_as.empty() ? 0700 : 0711) != 0)
      return fail(system_error("cannot close " + data_ + " to other users", errno));
    for (const char* closed : {"/nodes", "/blobs"}) {
      if (auto made = make_folders(data_ + closed, 0700); !made) return made;
      if (::chmod((data_ + closed).c_str(), 0700) != 0)
        return fail(system_error("cannot close " + data_ + closed + " to other users", errno));
    }
    if (!options_.run_as.empty()) {
      if (auto reached = check_reached(data_); !reached) return reached;
      return agent::close_workspaces(data_);
    }
    return {};
  }

  Result<void> open_store() {
    auto store = store::open_sqlite(data_ + "/slipway.db", options_.is_new         ? store::OpenAs::made_anew
                                                           : options_.accepts_loss ? store::OpenAs::with_loss
                                                                                   : store::OpenAs::usual);
    if (!store) return fail(store.error());
    store_ = std::move(*store);
    auto loaded = store_->load();
    if (!loaded)
      return fail(loaded.error().code,
                  fmt::format("{}/slipway.db cannot be used: {}", data_, loaded.error().what),
                  "nothing was changed; restore it from a copy, or start with another --data folder");
    tokens_ = loaded->tokens;
    quotas_ = loaded->quotas;
    disk_used_ = loaded->disk;
    for (const control::LiveJob& job : loaded->jobs) live_jobs_.push_back(job.job.id);
    control::Changes changes;
    const TokenRecord admin{"", "admin", "default", Role::admin, "", clock_.now()};
    const TokenRecord joining{"", "local-nodes", "default", Role::node, "", clock_.now()};
    auto own_admin = ensure_token(data_ + "/token", admin, tokens_, changes.tokens);
    if (!own_admin) return fail(own_admin.error());
    own_admin_hash_ = *own_admin;
    auto own_agents = ensure_token(data_ + "/node-token", joining, tokens_, changes.tokens);
    if (!own_agents) return fail(own_agents.error());
    local_nodes_hash_ = *own_agents;
    if (auto probed = store_->probe(); !probed && degraded_.empty()) degraded_ = probed.error().what;
    if (auto tracked = open_tracker(); !tracked) return tracked;
    if (!degraded_.empty()) log::warning("store.degraded", {{"why", degraded_}});
    if (changes.tokens.empty()) return {};
    return store_->save(changes);
  }

  Result<void> open_tracker() {
    auto image = store::open_track_image(data_ + "/track.db");
    if (!image) return fail(image.error());
    track_image_ = std::move(*image);
    auto tracker = track::Tracker::open({data_ + "/track"}, *track_image_, clock_);
    if (!tracker) return fail(tracker.error());
    tracker_ = std::move(*tracker);
    return {};
  }

  Result<void> listen() {
    auto parsed = parse_listen(options_.listen);
    if (!parsed) return fail(parsed.error());
    const std::string& host = parsed->host;
    net::ServerOptions server;
    // Beyond this machine nothing goes in the clear unless it was said.
    if (parsed->with_tls || (!is_loopback(host) && !options_.insecure)) {
      auto tls = ServiceTls::open({data_ + "/tls", parsed->certificate, parsed->key, host}, clock_.now());
      if (!tls) return fail(tls.error());
      tls_ = std::move(*tls);
      server.tls = tls_->server();
    }
    server.address = host == "localhost" ? "127.0.0.1" : host;
    server.port = parsed->port;
    auto listening = net::Server::listen(
        loop_, server, [this](const net::Request& head) { return api_->policy(head); },
        [this](std::shared_ptr<net::Exchange> exchange) { api_->handle(std::move(exchange)); });
    if (!listening) return fail(listening.error());
    server_ = std::move(*listening);
    host_ = host;
    name_addresses();
    return {};
  }

  void name_addresses() {
    url_ = url_of(host_ == "0.0.0.0" ? "127.0.0.1" : host_ == "::" ? "::1" : host_);
    if (!is_loopback(host_))
      reach_.join_url = url_of(host_ == "0.0.0.0" || host_ == "::" ? own_address() : host_);
    if (tls_) reach_.fingerprint = tls_->fingerprint();
  }

  // With TLS the fingerprint goes with the address, wherever that goes.
  std::string url_of(const std::string& host) const {
    const std::string at =
        fmt::format("{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", server_->port());
    return tls_ ? fmt::format("https://{}#sha256:{}", at, tls_->fingerprint()) : "http://" + at;
  }

  void use_tls() {
    if (!tls_) return;
    reach_.sign_node = [this](const std::string& request, const std::string& name) {
      return tls_->sign_node(request, name);
    };
    tls_->keep_fresh(loop_, clock_, [this] {
      name_addresses();
      api_->set_url(url_);
      api_->set_reach(reach_);
      if (auto written = write_address(); !written)
        log::error("service.address", {{"why", written.error().what}});
    });
    loop_.on_signals({SIGHUP}, [this](int) { tls_->reload(); });
  }

  Result<void> start() {
    control::Settings settings;
    auto audit = api::AuditLog::open(data_ + "/audit.jsonl");
    if (!audit) return fail(audit.error());
    audit_ = std::move(*audit);
    settings.machine = {agent::detect_resources(), container::engines};
    auto run_as = RunAsRules::parse(options_.run_as);
    if (!run_as) return fail(run_as.error());
    settings.run_as = std::move(*run_as);
    settings.retain = {options_.retain, options_.retain_in};
    control_ = std::make_unique<control::Loop>(*store_, settings, clock_, effects_);
    auto sealer = open_sealer(data_, options_);
    if (!sealer) return fail(sealer.error());
    if (options_.new_secret_key)
      if (auto sealed = api::seal_anew(*store_, *sealer); !sealed) return sealed;
    api::ApiOptions api_options{data_,
                                probe_name,
                                nonce_,
                                clock_.now(),
                                [this](bool keep_running) { stop(keep_running); },
                                [this](const std::string& token) { server_->cut_opened_with(token); },
                                std::make_shared<const Sealer>(std::move(*sealer))};
    api_options.datastore_roots = options_.datastore_roots;
    api_options.trust_members = options_.trust_members || !settings.run_as.is_empty();
    api_options.host_names = options_.host_names;
    api_options.host_names.insert(api_options.host_names.end(), {host_, agent::host_name()});
    api_options.local_nodes_hash = local_nodes_hash_;
    api_options.own_admin_hash = own_admin_hash_;
    api_options.audit = audit_;
    api_options.audit_reads = options_.audit_reads;
    if (auto provider = use_provider(api_options); !provider) return provider;
    api_options.mask_secrets = options_.mask_secrets;
    api_ = std::make_unique<api::Api>(loop_, *control_, clock_, std::move(api_options));
    api_->add_compat_api(
        batchai::make_batchai_api(api_->compat_api_context(), batchai_options(settings.machine.total)));
    api_->add_compat_api(mlflow::make_mlflow_api(api_->compat_api_context(), *tracker_));
    api_->set_tokens(tokens_);
    api_->set_live_jobs(live_jobs_);
    api_->set_disk_used(disk_used_);
    api_->set_quotas(quotas_);
    api_->set_url(url_);
    use_tls();
    api_->set_reach(reach_);
    local_ = std::make_unique<provision::LocalProvisioner>(
        loop_, provision::LocalOptions{std::filesystem::read_symlink("/proc/self/exe").string(), data_, url_,
                                       data_ + "/node-token"});
    effects_.api = api_.get();
    effects_.control = control_.get();
    effects_.local = local_.get();
    loop_.on_signals({SIGTERM, SIGINT}, [this](int) { stop(false); });
    if (auto started = control_->start(degraded_); !started) return started;
    api_->remove_unused_blobs();
    if (auto backups = start_backups(); !backups) return backups;
    return write_address();
  }

  Result<void> use_provider(api::ApiOptions& api_options) const {
    if (options_.oidc.issuer.empty()) return {};
    oidc::Client client{options_.oidc.issuer, options_.oidc.client};
    if (!options_.oidc.secret_file.empty()) {
      auto secret = read_file(options_.oidc.secret_file);
      if (!secret) return fail(secret.error());
      client.secret = secret->substr(0, secret->find_first_of("\r\n"));
    }
    if (!options_.oidc.groups_file.empty()) {
      auto text = read_file(options_.oidc.groups_file);
      if (!text) return fail(text.error());
      auto rules = oidc::GroupRules::parse(*text);
      if (!rules) return fail(rules.error());
      api_options.oidc_groups = std::move(*rules);
    }
    api_options.oidc = std::move(client);
    return {};
  }

  Result<void> write_address() {
    const std::string about = wire::format_object({{"url", wire::quote(url_)},
                                                   {"pid", std::to_string(::getpid())},
                                                   {"token_file", wire::quote(data_ + "/token")}});
    // For people and the command line; and, as plain text, for the agents of this machine.
    return announce_in("service.json", about + "\n").and_then([&] {
      return announce_in("service.url", url_);
    });
  }

  Result<void> start_backups() {
    if (options_.backup_folder.empty()) return {};
    auto started = Backups::start(data_ + "/slipway.db", options_.backup_folder, options_.backups_kept);
    if (!started) return fail(started.error());
    backups_ = std::move(*started);
    return {};
  }

  // Where there is no space for a new file, the one of an earlier start is written over.
  Result<void> announce_in(const std::string& name, const std::string& text) {
    const std::string path = data_ + "/" + name;
    auto written = write_file_durably(path, text, 0644);
    if (written || written.error().code != ErrorCode::unavailable) return written;
    ::rename((path + ".last").c_str(), path.c_str());
    return write_file_over(path, text);
  }

  void stop(bool keep_running) {
    if (std::exchange(stopping_, true)) return;
    log::info("service.stopping", {{"keep_running", keep_running}});
    if (!keep_running) local_->start_no_more();
    control_->stop_in_order(keep_running);
    // The control thread ends when nothing runs any more; waited for beside the loop, which still carries its
    // messages.
    waiter_ = std::jthread([this, keep_running] {
      control_->join();
      loop_.post([this, keep_running] {
        if (keep_running) return finish();
        local_->wait_until_gone(5s, [this] { finish(); });
      });
    });
  }

  void finish() {
    const std::string about = data_ + "/service.json";
    ::rename(about.c_str(), (about + ".last").c_str());
    server_->stop();
    loop_.stop();
  }

  cli::UpOptions options_;
  SystemClock clock_;
  std::string data_, host_, url_, nonce_, local_nodes_hash_, own_admin_hash_;
  std::string degraded_;  // why nothing can be saved at the start; empty: it can
  std::optional<FileLock> lock_;
  std::vector<TokenRecord> tokens_;
  std::vector<QuotaRecord> quotas_;
  std::vector<DiskUse> disk_used_;
  std::vector<JobId> live_jobs_;
  net::Loop loop_;
  ServiceEffects effects_;
  std::unique_ptr<control::Store> store_;
  std::unique_ptr<track::Image> track_image_;
  std::unique_ptr<track::Tracker> tracker_;  // outlives the API, whose requests it answers
  std::unique_ptr<control::Loop> control_;
  std::shared_ptr<api::AuditLog> audit_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<provision::LocalProvisioner> local_;
  std::unique_ptr<net::Server> server_;
  api::Api::Reach reach_;
  std::unique_ptr<ServiceTls> tls_;  // after the loop, which outlives it
  std::unique_ptr<Backups> backups_;
  bool stopping_ = false;
  std::jthread waiter_;
};

void announce(const std::string& data, const std::string& url) {
  const std::size_t pin = std::min(url.find('#'), url.size());
  std::printf("slipway is up at %s\nToken: %s/token\n", url.substr(0, pin).c_str(), data.c_str());
  if (pin < url.size()) std::printf("Fingerprint: %s\n", url.substr(pin + 1).c_str());
  std::fflush(stdout);
}

int serve(const cli::UpOptions& options, const std::function<void(const std::string&)>& ready) {
  // Else the first large body that is freed makes those after it come from the heap, which does not shrink.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  Service service(options);
  const auto ran = service.run(ready);
  return ran ? 0 : complain(ran.error());
}

}  // namespace

int run_service(const cli::UpOptions& options) {
  const std::string data = std::filesystem::absolute(options.data).lexically_normal().string();
  if (!options.detach) return serve(options, [&](const std::string& url) { announce(data, url); });
  if (auto made = make_folders(options.data, 0700); !made) return complain(made.error());
  const auto url =
      serve_detached(options.data + "/service.log", [&](const auto& ready) { return serve(options, ready); });
  if (!url) return complain(url.error());
  if (url->empty()) return 1;  // it has said why
  announce(data, *url);
  return 0;
}

}  // namespace slipway
