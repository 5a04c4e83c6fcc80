// The model server: reads settings, builds its objects, runs until SIGTERM or SIGINT.
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/result.h"
#include "net/server.h"
#include "serve/executor.h"
#include "serve/flags.h"
#include "serve/grpc_server.h"
#include "serve/grpc_service.h"
#include "serve/model_manager.h"
#include "serve/rest.h"

using namespace slipway;
using namespace slipway::serve;

namespace {

int refuse_start(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.what);
  if (!error.hint.empty()) fmt::print(stderr, "try:   {}\n", error.hint);
  return 1;
}

template <class T>
Result<T> read_config(const std::string& path, Result<T> (*parse)(std::string_view, const std::string&)) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  return parse(*text, path);
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

// Follows --model_config_file; a file that cannot be read or applied leaves everything as it is.
class ConfigPoll {
 public:
  ConfigPoll(net::Loop& loop, ModelManager& models, const Flags& flags, ServerConfig current)
      : loop_(loop), models_(models), flags_(flags), current_(std::move(current)) {
    if (flags_.model_config_poll.count() > 0 && !flags_.model_config_file.empty()) schedule();
  }

 private:
  void schedule() {
    timer_ = loop_.after(flags_.model_config_poll, [this] { poll(); });
  }
  // Applying waits for models to load, so it is not done on the network's thread.
  void poll() {
    worker_ = std::jthread([this] {
      const auto config = read_config(flags_.model_config_file, parse_server_config);
      if (!config) {
        log::warning("config.refused", {{"why", config.error().what}});
      } else if (!(*config == current_)) {
        if (const auto applied = models_.apply(*config); applied)
          log::info("config.applied", {{"models", config->models.size()}});
        else
          log::warning("config.refused", {{"why", applied.error().message}});
        current_ = *config;  // refused or not: it is tried again when it changes
      }
      loop_.post([this] { schedule(); });
    });
  }

  net::Loop& loop_;
  ModelManager& models_;
  const Flags& flags_;
  ServerConfig current_;
  std::shared_ptr<net::Loop::Timer> timer_;
  std::jthread worker_;
};

// Answers of other threads go to the loop's; the exchange is let go of there, too.
Rest::Reply reply_to(net::Loop& loop, std::shared_ptr<net::Exchange> exchange) {
  return [&loop, exchange = std::move(exchange),
          own = std::this_thread::get_id()](net::Response response) mutable {
    if (std::this_thread::get_id() == own) return exchange->send(std::move(response));
    loop.post([exchange = std::move(exchange), response = std::move(response)]() mutable {
      exchange->send(std::move(response));
    });
  };
}

struct Settings {
  Flags flags;
  ServerConfig models;
  std::optional<BatchingParameters> batching;
  Monitoring monitoring;
  std::shared_ptr<net::TlsServer> tls;
};

Result<Settings> load_settings(Flags flags) {
  Settings settings;
  settings.models = flags.models;
  if (!flags.ssl_config_file.empty())
    return fail(ErrorCode::invalid, "--ssl_config_file is for gRPC over TLS, which is not offered",
                "REST takes --tls-certificate and --tls-key; leave gRPC to loopback");
  if (!flags.model_config_file.empty()) {
    auto config = read_config(flags.model_config_file, parse_server_config);
    if (!config) return fail(config.error());
    settings.models = std::move(*config);
  }
  if (flags.is_batching) settings.batching.emplace();
  if (!flags.batching_parameters_file.empty()) {
    auto batching = read_config(flags.batching_parameters_file, parse_batching_parameters);
    if (!batching) return fail(batching.error());
    settings.batching = std::move(*batching);
  }
  if (!flags.monitoring_config_file.empty()) {
    auto monitoring = read_config(flags.monitoring_config_file, parse_monitoring);
    if (!monitoring) return fail(monitoring.error());
    settings.monitoring = std::move(*monitoring);
  }
  if (!flags.certificate_file.empty()) {
    auto tls = net::TlsServer::load({flags.certificate_file, flags.key_file, ""});
    if (!tls) return fail(tls.error());
    settings.tls = std::move(*tls);
  }
  const bool is_plain = !settings.tls || flags.grpc_port >= 0;  // gRPC is never encrypted
  if (!is_loopback(flags.address) && is_plain && !flags.is_insecure)
    return fail(ErrorCode::denied,
                fmt::format("{} is reachable from other machines, and nothing is encrypted", flags.address),
                "give --tls-certificate and --tls-key, or --insecure where the network is trusted");
  settings.flags = std::move(flags);
  return settings;
}

// Blocks SIGTERM and SIGINT in this thread and all it starts, to be read from a descriptor. A handler will
// not do: oneDNN's sgemm runs with the stack pointer in a buffer on the heap, and a signal delivered there
// would write its frame over what lies beside it.
Fd watch_signals() {
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGTERM);
  ::sigaddset(&watched, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  return Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

int serve_models(const Settings& settings) {
  const Fd signals = watch_signals();  // before any thread
  const Flags& flags = settings.flags;
  const SystemClock clock;
  net::Loop loop;
  Metrics metrics;
  ModelManager models({flags.folder_poll, flags.retry, flags.allows_labels_for_unavailable}, clock);
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  Executor executor({settings.batching, flags.threads > 0 ? flags.threads : cores}, clock, metrics);
  Rest rest(models, executor, metrics, clock,
            {settings.monitoring, flags.rest_timeout, flags.rest_cors, flags.body_max});

  for (const std::string& name : flags.without_effect) log::warning("flag.without_effect", {{"flag", name}});
  if (const auto applied = models.apply(settings.models); !applied)
    return refuse_start(
        {ErrorCode::invalid, applied.error().message, "let labels point at versions that are there"});

  GrpcService grpc_service(models, executor, metrics, clock);
  std::unique_ptr<GrpcServer> grpc;
  if (flags.grpc_port >= 0) {
    auto listening = GrpcServer::listen(
        {flags.address, static_cast<std::uint16_t>(flags.grpc_port), flags.body_max},
        [&](const GrpcCall& call, const GrpcReply& reply) { grpc_service.handle(call, reply); });
    if (!listening) return refuse_start(listening.error());
    grpc = std::move(*listening);
    fmt::print("gRPC listens on {}:{}\n", flags.address, grpc->port());
    std::fflush(stdout);
  }
  std::unique_ptr<net::Server> server;
  if (flags.rest_port >= 0) {
    net::ServerOptions options;
    options.tls = settings.tls;
    options.address = flags.address;
    options.port = static_cast<std::uint16_t>(flags.rest_port);
    options.body_memory_max = std::max<std::size_t>(4 * flags.body_max, 256u << 20);
    auto listening = net::Server::listen(
        loop, options, [&](const net::Request&) { return net::BodyPolicy{.size_max = flags.body_max}; },
        [&](const std::shared_ptr<net::Exchange>& exchange) {
          rest.handle(exchange->request(), reply_to(loop, exchange));
        });
    if (!listening) return refuse_start(listening.error());
    server = std::move(*listening);
    fmt::print("slipway-serve listens on {}://{}:{}\n", settings.tls ? "https" : "http", flags.address,
               server->port());
    std::fflush(stdout);
  }
  if (!server && !grpc)
    return refuse_start({ErrorCode::invalid, "no port is open: gRPC and REST are off",
                         "add --port=8500 or --rest_api_port=8501"});
  ConfigPoll poll(loop, models, flags, settings.models);
  const auto signal_watch = loop.watch(signals.get(), [&] {
    if (server) server->stop();
    loop.stop();
  });
  loop.run();
  executor.stop();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string program = std::filesystem::path(arguments[0]).filename().string();
  auto flags = parse_flags(program, std::vector<std::string>(arguments + 1, arguments + count));
  if (!flags) {
    refuse_start(flags.error());
    return 2;
  }
  if (flags->shows_help) return fmt::print("{}", help_text()), 0;
  if (flags->shows_version) return fmt::print("slipway-serve {}\n", SLIPWAY_VERSION), 0;
  const auto settings = load_settings(std::move(*flags));
  if (!settings) return refuse_start(settings.error());
  return serve_models(*settings);
}
