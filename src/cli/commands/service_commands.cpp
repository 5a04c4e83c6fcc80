#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "domain/run_as.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

struct UpFlags {
  bool tls = false;
  std::string tls_cert, tls_key;
  std::string listen = "127.0.0.1:8470";
  bool detach = false;
  bool insecure = false;
  std::vector<std::string> datastore_roots;
  std::vector<std::string> host_names;
  bool new_secret_key = false;
  std::vector<std::string> run_as;
  std::string run_as_file;
  bool trust_members = false;
  bool audit_reads = false;
  UpOptions::Oidc oidc;
  bool is_new = false;
  bool accepts_loss = false;
  std::string backup_folder;
  std::optional<std::uint32_t> backups_kept;
  bool mask_secrets = false;
  std::vector<std::string> retain;
  std::string passphrase_file;
};

struct DownFlags {
  bool keep_running = false;
  std::optional<Duration> timeout;
};

Outcome<std::vector<std::string>> run_as_rules(const UpFlags& flags) {
  std::vector<std::string> rules = flags.run_as;
  if (!flags.run_as_file.empty()) {
    const Result<std::string> text = read_file(flags.run_as_file);
    if (!text) return give_up(text);
    for (std::size_t begin = 0; begin < text->size();) {
      const std::size_t end = std::min(text->find('\n', begin), text->size());
      rules.push_back(text->substr(begin, end - begin));
      begin = end + 1;
    }
  }
  if (const auto parsed = RunAsRules::parse(rules); !parsed) return give_up(parsed);
  return rules;
}

struct RetainRules {
  std::optional<Duration> usual;
  std::map<std::string, Duration> workspaces;
};

// 30d for all, WORKSPACE=7d for one.
Outcome<RetainRules> retain_rules(const std::vector<std::string>& texts) {
  constexpr Duration longest{100ll * 365 * 24 * 3'600 * 1'000'000};
  RetainRules rules;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const Result<Duration> time =
        parse_duration(equals == std::string::npos ? text : text.substr(equals + 1));
    if (!time || *time > longest)
      return misuse(
          fmt::format("--retain {}: {}", text, time ? "it is longer than 100 years" : time.error().what),
          "--retain 30d, or --retain team=7d for one workspace; without it jobs are kept for ever");
    if (equals == std::string::npos)
      rules.usual = *time;
    else
      rules.workspaces[text.substr(0, equals)] = *time;
  }
  return rules;
}

Outcome<int> up(Context& context, const UpFlags& flags) {
  // The service may change its folder or be started again from another one.
  std::error_code error;
  const std::filesystem::path data = std::filesystem::absolute(data_folder(context.settings()), error);
  if (error) return refuse("the current folder is gone", error.message(), "cd to one that exists");
  if (flags.is_new && flags.accepts_loss)
    return misuse("--new and --accept-loss exclude each other",
                  "--new begins anew; --accept-loss continues with what is there");
  const std::string backups =
      flags.backup_folder.empty()
          ? std::string()
          : std::filesystem::absolute(flags.backup_folder, error).lexically_normal().string();
  const std::string passphrases =
      flags.passphrase_file.empty()
          ? std::string()
          : std::filesystem::absolute(flags.passphrase_file, error).lexically_normal().string();
  if (flags.oidc.issuer.empty() != flags.oidc.client.empty())
    return misuse("--oidc-issuer and --oidc-client go together",
                  "the provider says what it calls this service");
  const Outcome<std::vector<std::string>> run_as = run_as_rules(flags);
  if (!run_as) return give_up(run_as);
  const Outcome<RetainRules> retain = retain_rules(flags.retain);
  if (!retain) return give_up(retain);
  std::vector<std::string> roots;
  for (const std::string& root : flags.datastore_roots) {
    roots.push_back(std::filesystem::absolute(root, error).lexically_normal().string());
    if (!std::filesystem::is_directory(roots.back(), error))
      return refuse(fmt::format("--datastore-root {} is not a folder", root),
                    error ? error.message() : "datastores are to lie in it", "make it, or mount it, first");
  }
  return context.programs().up({data.lexically_normal().string(), flags.listen, flags.detach, flags.insecure,
                                std::move(roots), flags.new_secret_key, *run_as, flags.trust_members,
                                flags.audit_reads, flags.is_new, flags.accepts_loss, backups,
                                std::max(1u, flags.backups_kept.value_or(7)), flags.mask_secrets, passphrases,
                                flags.host_names, flags.oidc, retain->usual, retain->workspaces});
}

// What was said of TLS goes with the address.
Outcome<void> listen_with_tls(UpFlags& flags) {
  if (flags.tls_cert.empty() != flags.tls_key.empty())
    return misuse("--tls-cert and --tls-key go together", "give the files of a certificate and of its key");
  if (!flags.tls && flags.tls_cert.empty()) return {};
  if (flags.insecure)
    return misuse("--insecure is without TLS", "leave it out, or leave out --tls and --tls-cert");
  const auto absolute = [](const std::string& file) {
    std::error_code error;
    return net::percent_encode(std::filesystem::absolute(file, error).lexically_normal().string());
  };
  flags.listen = "https://" + flags.listen;
  if (!flags.tls_cert.empty())
    flags.listen += fmt::format("?cert={}&key={}", absolute(flags.tls_cert), absolute(flags.tls_key));
  return {};
}

std::string counts(const Value& states) {
  std::string text;
  for (const auto& [state, unused] : states.fields)
    if (states.count_at(state) > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", states.text_at(state), state);
  return text.empty() ? "none" : text;
}

Outcome<int> status(Context& context) {
  const Outcome<Value> service = context.service().get(resource({"service"}));
  if (!service) return give_up(service);
  return print(context, *service, service->text_at("url"), [&] {
    return format_fields({
        {"service", fmt::format("{}, version {}", service->text_at("url"), service->text_at("version"))},
        {"running for", span(context, service->time_at("started_at"), {})},
        {"pid", service->text_at("pid")},
        {"data", service->text_at("data")},
        {"degraded", service->text_at("degraded")},
        {"nodes", counts(service->at("nodes"))},
        {"jobs", counts(service->at("jobs"))},
    });
  });
}

// Waits for the end of a process that is not our child. False: still there after `timeout`.
bool wait_for_process(const Fd& process, Duration timeout) {
  pollfd poll_fd{process.get(), POLLIN, 0};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const int ready = ::poll(&poll_fd, 1, std::max<int>(0, static_cast<int>(left.count())));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// A service on another machine has no pid here: poll until it does not answer.
bool wait_until_stopped(Service& service, Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    const Outcome<Value> health = service.get(resource({"service"}));
    if (!health && health.error().exit_code == ExitCode::unreachable) return true;
    std::this_thread::sleep_for(200ms);
  }
  return false;
}

Outcome<int> down(Context& context, const DownFlags& flags) {
  Service& service = context.service();
  const Outcome<Value> stopping =
      service.send("POST", resource({"service", "stop"}),
                   wire::format_object({{"keep_running", flags.keep_running ? "true" : "false"}}));
  if (!stopping) return give_up(stopping);
  const auto pid = static_cast<pid_t>(stopping->count_at("pid"));
  Fd process;  // none: it is gone already, or of another machine
  if (pid > 0 && is_on_loopback(service.url()))
    process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const Duration timeout = flags.timeout.value_or(60s);
  const bool gone = process ? wait_for_process(process, timeout) : wait_until_stopped(service, timeout);
  if (!gone)
    return refuse(
        fmt::format("the service (pid {}) is still stopping after {}", pid, format_duration(timeout)),
        "processes may need longer than that to end", "slipway status");
  context.say(flags.keep_running
                  ? "Service stopped. Agents and processes keep running; slipway up reconnects to them."
                  : "Service stopped. Running tasks are queued again at the next slipway up.");
  return ExitCode::done;
}

}  // namespace

void add_up(CommandTree& tree, Context& context) {
  auto flags = std::make_shared<UpFlags>();
  tree.add("up", "Start the service", "slipway up --detach")
      .text("--listen ADDRESS", flags->listen, "where to listen (default 127.0.0.1:8470)")
      .texts("--host-name NAME", flags->host_names,
             "a name by which the service is reached, beside this machine's (may be repeated)")
      .flag("--tls", flags->tls, "TLS also where only this machine is listened to")
      .text("--tls-cert FILE", flags->tls_cert,
            "a certificate of your own with its issuers, PEM (default: one is made)")
      .text("--tls-key FILE", flags->tls_key,
            "its key, PEM; both are read again when they change, and at SIGHUP")
      .flag("-d,--detach", flags->detach, "return once it accepts requests")
      .texts("--datastore-root FOLDER", flags->datastore_roots,
             "a folder that admins may make datastores in, with datastore create --path (may be repeated)")
      .texts("--run-as USER=UID:GID", flags->run_as,
             "the jobs of this user of workspace default run as that user of the machine; also "
             "WORKSPACE/USER, WORKSPACE/ and * (may be repeated)")
      .text("--run-as-file FILE", flags->run_as_file, "such rules, one a line")
      .flag("--trust-members", flags->trust_members,
            "give out tokens of other users without --run-as: their jobs can read all that the service can")
      .text("--oidc-issuer URL", flags->oidc.issuer, "users sign in by this provider of OpenID Connect, too")
      .text("--oidc-client ID", flags->oidc.client, "what the provider calls this service")
      .text("--oidc-client-secret-file FILE", flags->oidc.secret_file,
            "what it shows the provider, if that wants it")
      .text("--oidc-groups FILE", flags->oidc.groups_file,
            "what groups are members of: lines of GROUP=WORKSPACE:ROLE")
      .flag("--audit-reads", flags->audit_reads, "keep in the audit log what was read, too")
      .flag("--new-secret-key", flags->new_secret_key,
            "seal all secrets anew with a new key, and sign with it; older keys still open backups")
      .text("--secret-passphrase-file FILE", flags->passphrase_file,
            "the key that seals secrets comes from the last line of this file (else from the variable "
            "SLIPWAY_SECRET_KEY, or the file secret.key)")
      .flag("--mask-secrets", flags->mask_secrets,
            "mask the values of a task's secrets in its output, when it is read")
      .flag("--insecure", flags->insecure, "allow listening beyond this machine without TLS")
      .text("--backup-dir DIR", flags->backup_folder, "back the database up into this folder every night")
      .texts("--retain TIME", flags->retain,
             "delete jobs with their files and logs so long after their end: 30d; team=7d for a workspace "
             "(may be repeated; default: never)")
      .number("--backup-keep N", flags->backups_kept, "how many backups to keep (default 7)")
      .flag("--new", flags->is_new, "begin anew in a folder whose database is gone")
      .flag("--accept-loss", flags->accepts_loss, "continue with a database that has lost turns")
      .runs([&context, flags]() -> Outcome<int> {
        const Outcome<void> chosen = listen_with_tls(*flags);
        if (!chosen) return give_up(chosen);
        return up(context, *flags);
      });
}

void add_down(CommandTree& tree, Context& context) {
  auto flags = std::make_shared<DownFlags>();
  tree.add("down", "Stop the service and the tasks on its local nodes", "slipway down")
      .flag("--keep-running", flags->keep_running, "leave agents and processes running for the next up")
      .duration("--timeout TIME", flags->timeout, "how long to wait for its end (default 60s)")
      .runs([&context, flags] { return down(context, *flags); });
}

void add_status(CommandTree& tree, Context& context) {
  tree.add("status", "Show whether the service runs, with its nodes and jobs", "slipway status")
      .runs([&context] { return status(context); });
}

void add_version(CommandTree& tree, Context& context) {
  tree.add("version", "Print the version of this program", "slipway version")
      .runs([&context]() -> Outcome<int> {
        const std::string version = SLIPWAY_VERSION;
        const Value value = {{"version", version}};
        return print(context, value, version, "slipway " + version + "\n");
      });
}

}  // namespace slipway::cli
