#include "apps/service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "agent/machine.h"
#include "api/api.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/seal.h"
#include "base/sha256.h"
#include "compat/batchai/batchai.h"
#include "container/engines.h"
#include "control/loop.h"
#include "net/client.h"
#include "net/server.h"
#include "provision/local.h"
#include "store/sqlite.h"
#include "wire/records.h"

namespace slipway {
namespace {

constexpr const char* probe_name = "storage-probe";

int complain(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what.c_str());
  if (!error.hint.empty()) std::fprintf(stderr, "try:   %s\n", error.hint.c_str());
  return 1;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

// ADDRESS:PORT, with an IPv6 address in brackets; port 0 is any free one.
Result<std::pair<std::string, std::uint16_t>> parse_listen(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  if (colon != std::string::npos && !host.empty())
    if (const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
        error == std::errc{} && stop == end)
      return std::pair(host, port);
  return fail(ErrorCode::invalid, fmt::format("--listen {} is not ADDRESS:PORT", text),
              "write it like 127.0.0.1:8470");
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
    if (outputs.judges_nodes) loop_.post([this] { read_what_waits(); });
    if (!changed && outputs.messages.empty() && outputs.closed.empty() && outputs.events.empty() &&
        outputs.folders_removed.empty() && outputs.agents_stuck.empty())
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

 private:
  // What had arrived by now has been read once the loop has gone round for a while.
  void read_what_waits() {
    const TimePoint now = clock_.now();
    reading_ = loop_.after(reading_takes, [this, now] { control->all_heard(now); });
  }

  static constexpr Duration reading_takes = std::chrono::milliseconds(100);
  const Clock& clock_;
  std::shared_ptr<net::Loop::Timer> reading_;
  net::Loop& loop_;
};

// The admin's token and the local agents' join token, made at the first start and kept in files only their
// owner can read.
Result<void> ensure_token(const std::string& file, const TokenRecord& wanted, std::vector<TokenRecord>& known,
                          std::vector<TokenRecord>& added) {
  std::string secret;
  if (auto text = read_file(file)) {
    secret = *text;
    while (!secret.empty() && secret.back() == '\n') secret.pop_back();
  }
  if (secret.empty()) {
    secret = "slipway_" + random_hex(24);
    if (auto written = write_file_durably(file, secret + "\n", 0600); !written) return written;
  }
  const std::string hash = sha256_hex(secret);
  for (const TokenRecord& token : known)
    if (token.hash == hash) return {};
  TokenRecord token = wanted;
  token.id = "token_" + random_hex(4);
  token.hash = hash;
  known.push_back(token);
  added.push_back(token);
  return {};
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

class Service {
 public:
  explicit Service(const cli::UpOptions& options) : options_(options), effects_(loop_, clock_) {}

  // `ready` is told the address once requests are answered.
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
    if (auto made = make_folders(data_ + "/nodes", 0700); !made) return made;
    auto lock = FileLock::take(data_ + "/service.lock");
    if (!lock) {
      const int holder = FileLock::holder(data_ + "/service.lock");
      return fail(ErrorCode::conflict,
                  fmt::format("a service already runs on {} (process {})", data_, holder),
                  "use it, stop it with slipway down, or give this one another --data folder");
    }
    lock_.emplace(std::move(*lock));
    nonce_ = random_hex(16);
    return write_file_durably(data_ + "/" + probe_name, nonce_, 0644);
  }

  Result<void> open_store() {
    auto store = store::open_sqlite(data_ + "/slipway.db");
    if (!store) return fail(store.error());
    store_ = std::move(*store);
    auto loaded = store_->load();
    if (!loaded)
      return fail(loaded.error().code,
                  fmt::format("{}/slipway.db cannot be used: {}", data_, loaded.error().what),
                  "nothing was changed; restore it from a copy, or start with another --data folder");
    tokens_ = loaded->tokens;
    control::Changes changes;
    const TokenRecord admin{"", "admin", "default", Role::admin, "", clock_.now()};
    const TokenRecord joining{"", "local-nodes", "default", Role::node, "", clock_.now()};
    if (auto made = ensure_token(data_ + "/token", admin, tokens_, changes.tokens); !made) return made;
    if (auto made = ensure_token(data_ + "/node-token", joining, tokens_, changes.tokens); !made) return made;
    if (changes.tokens.empty()) return {};
    return store_->save(changes);
  }

  Result<void> listen() {
    auto parsed = parse_listen(options_.listen);
    if (!parsed) return fail(parsed.error());
    const auto& [host, port] = *parsed;
    if (!is_loopback(host) && !options_.insecure)
      return fail(
          ErrorCode::denied,
          fmt::format("listening on {} would send tokens and code over the network in the clear", host),
          "listen on 127.0.0.1, or add --insecure where the network is trusted");
    net::ServerOptions server;
    server.address = host == "localhost" ? "127.0.0.1" : host;
    server.port = port;
    auto listening = net::Server::listen(
        loop_, server, [this](const net::Request& head) { return api_->policy(head); },
        [this](std::shared_ptr<net::Exchange> exchange) { api_->handle(std::move(exchange)); });
    if (!listening) return fail(listening.error());
    server_ = std::move(*listening);
    const std::string reached = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host;
    url_ = fmt::format("http://{}:{}", reached.find(':') == std::string::npos ? reached : "[" + reached + "]",
                       server_->port());
    return {};
  }

  Result<void> start() {
    control::Settings settings;
    settings.machine = {agent::detect_resources(), container::engines};
    control_ = std::make_unique<control::Loop>(*store_, settings, clock_, effects_);
    auto sealer = Sealer::open(data_ + "/secret.key");
    if (!sealer) return fail(sealer.error());
    api_ = std::make_unique<api::Api>(loop_, *control_, clock_,
                                      api::ApiOptions{data_, probe_name, nonce_, clock_.now(),
                                                      [this](bool keep_running) { stop(keep_running); },
                                                      std::make_shared<const Sealer>(std::move(*sealer))});
    api_->add_compat_api(
        batchai::make_batchai_api(api_->compat_api_context(), batchai_options(settings.machine.total)));
    api_->set_tokens(tokens_);
    api_->set_url(url_);
    local_ = std::make_unique<provision::LocalProvisioner>(
        loop_, provision::LocalOptions{std::filesystem::read_symlink("/proc/self/exe").string(), data_, url_,
                                       data_ + "/node-token"});
    effects_.api = api_.get();
    effects_.control = control_.get();
    effects_.local = local_.get();
    loop_.on_signals({SIGTERM, SIGINT}, [this](int) { stop(false); });
    if (auto started = control_->start(); !started) return started;
    api_->remove_unused_blobs();
    const std::string about = wire::format_object({{"url", wire::quote(url_)},
                                                   {"pid", std::to_string(::getpid())},
                                                   {"token_file", wire::quote(data_ + "/token")}});
    // For people and the command line; and, as plain text, for the agents of this machine.
    return write_file_durably(data_ + "/service.json", about + "\n", 0644).and_then([&] {
      return write_file_durably(data_ + "/service.url", url_, 0644);
    });
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
        local_->wait_until_gone(std::chrono::seconds(10), [this] { finish(); });
      });
    });
  }

  void finish() {
    ::unlink((data_ + "/service.json").c_str());
    server_->stop();
    loop_.stop();
  }

  cli::UpOptions options_;
  SystemClock clock_;
  std::string data_, url_, nonce_;
  std::optional<FileLock> lock_;
  std::vector<TokenRecord> tokens_;
  net::Loop loop_;
  ServiceEffects effects_;
  std::unique_ptr<control::Store> store_;
  std::unique_ptr<control::Loop> control_;
  std::unique_ptr<api::Api> api_;
  std::unique_ptr<provision::LocalProvisioner> local_;
  std::unique_ptr<net::Server> server_;
  bool stopping_ = false;
  std::jthread waiter_;
};

void announce(const std::string& data, const std::string& url) {
  std::printf("slipway is up at %s\nToken: %s/token\n", url.c_str(), data.c_str());
  std::fflush(stdout);
}

int serve(const cli::UpOptions& options, const std::function<void(const std::string&)>& ready) {
  Service service(options);
  const auto ran = service.run(ready);
  return ran ? 0 : complain(ran.error());
}

// The child goes on alone, its talk in service.log; the parent answers when it is ready, or with what it
// said.
int serve_detached(const cli::UpOptions& options) {
  if (auto made = make_folders(options.data, 0700); !made) return complain(made.error());
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return complain(system_error("cannot make a pipe", errno));
  std::fflush(nullptr);
  const pid_t child = ::fork();  // nothing is open and no thread runs yet, so this is cheap and safe
  if (child < 0) return complain(system_error("cannot start the service", errno));
  if (child == 0) {
    ::close(ready[0]);
    ::setsid();
    const std::string log_file = options.data + "/service.log";
    const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int null = ::open("/dev/null", O_RDWR);
    const int errors = ::dup(2);
    ::fcntl(errors, F_SETFD, FD_CLOEXEC);
    ::dup2(null, 0);
    ::dup2(null, 1);
    const int status = serve(options, [&](const std::string& url) {
      ::dup2(log >= 0 ? log : null, 2);
      ::close(errors);
      if (::write(ready[1], url.data(), url.size()) < 0)
        log::warning("service.announce", {{"why", "the caller is gone"}});
      ::close(ready[1]);
    });
    ::_exit(status);
  }
  ::close(ready[1]);
  std::string url;
  char buffer[256];
  for (ssize_t got; (got = ::read(ready[0], buffer, sizeof buffer)) > 0;)
    url.append(buffer, static_cast<std::size_t>(got));
  ::close(ready[0]);
  if (url.empty()) return 1;  // it has said why
  announce(std::filesystem::absolute(options.data).lexically_normal().string(), url);
  return 0;
}

}  // namespace

int run_service(const cli::UpOptions& options) {
  if (options.detach) return serve_detached(options);
  return serve(options, [&](const std::string& url) {
    announce(std::filesystem::absolute(options.data).lexically_normal().string(), url);
  });
}

}  // namespace slipway
