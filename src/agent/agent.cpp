#include "agent/agent.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "agent/agent_setup.h"
#include "agent/core.h"
#include "agent/duty_runner.h"
#include "agent/file_server.h"
#include "agent/folder_remover.h"
#include "agent/keeper_link.h"
#include "agent/machine.h"
#include "agent/machine_use.h"
#include "agent/node_certificate.h"
#include "agent/order.h"
#include "agent/output_times.h"
#include "agent/preparer.h"
#include "agent/process_age.h"
#include "agent/seen_turn.h"
#include "agent/storage.h"
#include "agent/task_environment.h"
#include "agent/worker.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/overloaded.h"
#include "base/random.h"
#include "base/resident.h"
#include "container/engines.h"
#include "container/run_as.h"
#include "domain/layout.h"
#include "keeper/agent_restart.h"
#include "net/client.h"
#include "net/loop.h"
#include "wire/protocol.h"

namespace slipway::agent {
namespace {

constexpr Duration redial_first = 100ms;
constexpr Duration redial_longest = 2s;
constexpr Duration keeper_quit_max = 15s;
constexpr std::size_t staging_queue_max = 10'000;

// systemd restarts its main process, whose pid it leaves here; two that restart one agent would be in each
// other's way.
bool is_restarted_by_systemd() {
  const char* pid = std::getenv("SYSTEMD_EXEC_PID");
  return pid != nullptr && std::to_string(::getpid()) == pid;
}

// For the keeper, which starts this agent again should it be killed.
Result<void> leave_command(const std::string& folder) {
  const std::string path = folder + "/" + std::string(keeper::agent_command_file);
  if (is_restarted_by_systemd()) {
    ::unlink(path.c_str());  // of one before, which was started by hand
    return {};
  }
  const Result<std::string> command = read_file("/proc/self/cmdline");
  if (!command) return fail(command.error());
  return write_file_durably(path, *command, 0600);
}

// The edge around AgentCore: hands it what happens, does what it says. All on the loop's thread but staging.
class Agent {
 public:
  Agent(AgentOptions options, const std::string& node_key, net::Url url, AgentCore::Options node)
      : options_(std::move(options)),
        url_(std::move(url)),
        headers_{{"Authorization", "Bearer " + options_.token}, {node_key_header, node_key}},
        name_(node.name),
        context_{"",         base_environment(),
                 node.total, own_program(),
                 false,      [this](const std::string& root) { return can_view(root); },
                 false,      name_},
        core_(std::move(node)),
        random_(random_seed()),
        keeper_(loop_, {options_.folder, options_.keeper_command},
                {.message = [this](keeper::FromKeeper message) { on_keeper(std::move(message)); },
                 .caught_up = [this] { act(); },
                 .lost = [this] { on_keeper_lost(); }}),
        duties_(loop_, keeper_, context_, {name_, options_.folder},
                {.ended = [this](ProcessEnded end) { core_.ended(std::move(end)); },
                 .stalled = [this](const WorkKey& key, bool is_stalled) { core_.stalled(key, is_stalled); },
                 .act = [this] { act(); }}),
        seen_(options_.folder + "/service.seen"),
        preparer_(loop_, worker_, context_, name_, [this](Prepared result) { staged(std::move(result)); }),
        folders_(loop_, [this](const std::string& folder) { core_.removed(folder); }),
        worker_(staging_queue_max) {}

  int run() {
    loop_.on_signals({SIGTERM, SIGINT}, [this](int) {
      log::info("agent.stopped", {{"node", name_}, {"processes", core_.is_idle() ? "none" : "continue"}});
      leave(0, core_.is_idle());
    });
    keeper_.open();
    show_certificate(url_, options_.folder);
    if (options_.data.empty())
      dial();
    else
      use_storage({.is_shared = true, .data = options_.data});
    loop_.run();
    ::eventfd_write(cancel_.get(), 1);  // the worker must not make us wait for the network
    return exit_code_;
  }

 private:
  // The keeper stays unless it has nothing to keep, or is to quit as well.
  void leave(int code, bool with_keeper) {
    exit_code_ = code;
    ::unlink(
        (options_.folder + "/" + std::string(keeper::agent_command_file)).c_str());  // nobody restarts it
    keeper_.let_go();
    if (!with_keeper || !keeper_.is_open()) return loop_.stop();
    quitting_ = true;
    keeper_.send(keeper::QuitRequest{});
    keeper_.flush();
    quit_timer_ = loop_.after(keeper_quit_max, [this] { loop_.stop(); });
  }

  // ── the service ──

  // A service started anew may listen elsewhere; its data folder says where.
  void follow_service() {
    const Result<std::string> said = read_file(options_.data + "/service.url");
    if (!said) return;
    if (Result<net::Url> url = net::parse_url(*said)) {
      url_ = std::move(*url);
      show_certificate(url_, options_.folder);
    }
  }

  // Where the service has TLS a node shows a certificate. `then` is called once there is one, or none to be
  // had: a machine that was not welcome yet has no key to ask with.
  void take_certificate(std::function<void()> then) {
    const bool posted = worker_.post([this, url = url_, then = std::move(then)](std::stop_token) {
      auto taken = fetch_certificate(url, headers_, options_.folder, cancel_.get());
      loop_.post([this, taken = std::move(taken), then] {
        if (!taken && taken.error().code == ErrorCode::unavailable && was_welcome_)
          log::warning("agent.certificate", {{"node", name_}, {"why", taken.error().what}});
        if (taken) log::info("agent.certificate", {{"node", name_}, {"state", "renewed"}});
        then();
      });
    });
    if (!posted) redial("too much work waits to ask the service for a certificate");
  }

  void keep_certificate() {
    if (!url_.is_secure) return;
    certificate_timer_ = loop_.after(certificate_check_wait(options_.folder), [this] {
      if (!needs_certificate(options_.folder, clock_.now())) return keep_certificate();
      take_certificate([this] { keep_certificate(); });
    });
  }

  void dial() {
    redial_timer_.reset();
    if (!storage_known_) return find_storage();
    if (!options_.data.empty()) follow_service();
    if (url_.is_secure && !std::exchange(has_asked_, true) &&
        needs_certificate(options_.folder, clock_.now()))
      return take_certificate([this] { dial(); });
    has_asked_ = false;
    session_ = SessionId(session_.value() + 1);
    const SessionId session = session_;
    net::WebSocketCallbacks callbacks{
        .text = [this, session](std::string text) { on_text(session, text); },
        .binary =
            [this, session](std::string message) {
              if (session == session_) files_->handle(message);
            },
        .closed = [this, session](std::string why) { on_closed(session, why); },
    };
    auto opened = [this, session](Result<std::shared_ptr<net::WebSocket>> socket) {
      on_opened(session, std::move(socket));
    };
    const std::string target = options_.workspace.empty()
                                   ? "/v1/nodes/connect"
                                   : "/v1/nodes/connect?workspace=" + net::percent_encode(options_.workspace);
    net::connect_websocket(loop_, url_, target, headers_, std::move(callbacks), std::move(opened));
  }

  void on_opened(SessionId session, Result<std::shared_ptr<net::WebSocket>> socket) {
    if (!socket) return on_refused(socket.error());
    socket_ = std::move(*socket);
    std::vector<std::uint32_t> gpus = usable_gpus(options_);
    context_.total.gpus = static_cast<std::uint32_t>(gpus.size());
    core_.set_gpus(std::move(gpus));
    core_.connected(session, clock_.now());
    act();
  }

  // A token that was never good will not become so; one that was may be again, and processes wait for us.
  void on_refused(const Error& error) {
    if (error.code == ErrorCode::denied && !was_welcome_) return refuse(error.what);
    redial(error.what);
  }

  void on_text(SessionId session, const std::string& text) {
    if (session != session_) return;
    Result<ToAgent> message = wire::parse_to_agent(text);
    if (!message) {
      hang_up(message.error().what);
      return act();
    }
    seen_.note(*message);
    core_.received(session, std::move(*message), clock_.now());
    if (core_.is_welcome() && !std::exchange(said_joined_, true)) on_joined();
    if (core_.is_welcome()) {
      was_welcome_ = true;
      redial_wait_ = Duration(0);
    }
    act();
  }

  void on_joined() {
    release_startup_pages();
    if (url_.is_secure && needs_certificate(options_.folder, clock_.now()))
      take_certificate([this] { keep_certificate(); });
    else
      keep_certificate();
    log::info("agent.joined", {{"node", name_}, {"service", url_.authority()}});
  }

  void on_closed(SessionId session, const std::string& why) {
    if (session != session_) return;
    hang_up(why);
    act();
  }

  // Without waiting for the other side, which may be beyond reach: nothing more is heard from this session.
  void hang_up(const std::string& why) {
    core_.disconnected(session_);
    session_ = SessionId(session_.value() + 1);
    if (socket_) socket_->close(why);
    socket_.reset();
    files_->forget_all();
    redial(why);
  }

  void redial(const std::string& why) {
    redial_wait_ = std::clamp(redial_wait_ * 2, redial_first, redial_longest);
    // Half of it by chance, so that a thousand agents do not come back in one moment.
    const Duration wait(random_.between(redial_wait_.count() / 2, redial_wait_.count()));
    if (std::exchange(said_joined_, false) || std::exchange(last_problem_, why) != why)
      log::warning("agent.disconnected", {{"node", name_}, {"service", url_.authority()}, {"why", why}});
    redial_timer_ = loop_.after(wait, [this] { dial(); });
  }

  void refuse(const std::string& why) {
    std::fprintf(stderr, "error: node %s cannot join %s: %s\n", name_.c_str(), url_.authority().c_str(),
                 why.c_str());
    leave(1, core_.is_idle());
  }

  // ── storage ──

  void find_storage() {
    const bool posted = worker_.post([this](std::stop_token) {
      net::Client client(url_, headers_);
      auto found = probe_storage(client, cancel_.get());
      auto report = [this, found = std::move(found)] {
        if (found) return use_storage(*found);
        on_refused(found.error());
      };
      loop_.post(std::move(report));
    });
    if (!posted) redial("too much work waits to ask the service about its storage");
  }

  void use_storage(Storage storage) {
    storage_known_ = true;
    context_.data = storage.is_shared ? storage.data : options_.folder;
    context_.shares_storage = storage.is_shared;
    core_.set_shares_storage(storage.is_shared);
    note_reach();
    FetchBlob fetch;
    if (!storage.is_shared)
      fetch = [this](const std::string& hash, const auto& take) {
        net::Client client(url_, headers_);
        return fetch_blob(client, hash, take, cancel_.get());
      };
    preparer_.set_storage(std::move(fetch));
    files_ = std::make_unique<FileServer>(loop_, context_.data, [this](std::string reply) {
      if (socket_) socket_->send_binary(std::move(reply));
    });
    dial();
  }

  // Whether the service runs jobs as users is not known before the first of them.
  void note_reach() {
    const std::string closed = container::closed_on_the_way(context_.data);
    if (::geteuid() != 0 || closed.empty()) return;
    core_.add_note(
        fmt::format("run-as: users cannot go through {}, and so not reach the folders of their jobs below "
                    "{}; join with a "
                    "--folder like /var/lib/slipway-node, or: chmod o+x {}",
                    closed, context_.data, closed));
    log::warning("node.closed_to_users", {{"node", name_}, {"folder", closed}, {"data", context_.data}});
  }

  // ── the keeper ──

  void on_keeper(keeper::FromKeeper message) {
    std::visit(Overloaded{
                   [&](keeper::ProcessList& list) {
                     duties_.keeper_connected(list);
                     for (const keeper::RunningProcess& one : list.running)
                       output_times_.started(one.started);
                     for (const ProcessEnded& ended : list.ended) output_times_.ended(ended.key, ended.rank);
                     context_.limits_cores = list.cpu_limit == "cgroup" || list.cpu_limit == "affinity";
                     core_.keeper_connected(std::move(list), clock_.now());
                     duties_.act();
                   },
                   [&](ProcessStarted& started) {
                     if (std::holds_alternative<PushRun>(started.key)) return;
                     duties_.started(started);
                     output_times_.started(started);
                     core_.started(started);
                   },
                   [&](ProcessEnded& ended) {
                     output_times_.ended(ended.key, ended.rank);
                     duties_.ended(std::move(ended));
                   },
               },
               message);
  }

  void on_keeper_lost() {
    if (quitting_) return loop_.stop();
    core_.keeper_lost();
    act();
  }

  // ── effects ──

  void act() {
    for (std::vector<Effect> effects = core_.take_effects(clock_.now()); !effects.empty();
         effects = core_.take_effects(clock_.now()))
      for (Effect& effect : effects) std::visit([this](auto& one) { carry_out(one); }, effect);
    keeper_.flush();
    set_timer();
  }

  void set_timer() {
    const std::optional<TimePoint> at = core_.wake_at();
    if (!at) {
      tick_timer_.reset();
      tick_at_.reset();
      return;
    }
    // A timer that comes too early finds nothing to do and sets the next; moving it at every message costs
    // more.
    if (tick_at_ && *tick_at_ <= *at) return;
    tick_at_ = at;
    tick_timer_ = loop_.after(*at - clock_.now(), [this] {
      tick_at_.reset();
      core_.tick(clock_.now());
      if (const auto use = meter_.read(clock_.now())) core_.used(*use);
      act();
    });
  }

  void carry_out(effect::Send& send) {
    if (!socket_ || send.session != session_) return;
    if (auto* hello = std::get_if<Hello>(&send.message)) say_what_only_this_node_knows(*hello);
    socket_->send_text(wire::format(send.message));
  }

  void say_what_only_this_node_knows(Hello& hello) const {
    hello.seen = seen_.saved();
    for (ProcessStarted& process : hello.running)
      if (process.pid > 0) process.age = process_age(process.pid);
  }

  void carry_out(effect::CloseSession& close) {
    if (close.session == session_) hang_up(close.why);
  }

  void carry_out(effect::Stage& stage) {
    duties_.prepare(stage.order);
    preparer_.prepare(stage.order);
  }

  // The kernel is asked once.
  bool can_view(const std::string& root) {
    const auto [known, is_new] = can_view_.try_emplace(root);
    if (is_new) {
      known->second = container::can_view(root);
      if (!known->second)
        log::warning("node.no_namespaces",
                     {{"node", name_}, {"root", root}, {"instead", "mounts are links in the job's folder"}});
    }
    return known->second;
  }

  void staged(Prepared result) {
    core_.staged(std::move(result), clock_.now());
    act_later();
  }

  void act_later() {
    later_act_ = true;
    loop_.post([this] {
      if (std::exchange(later_act_, false)) act();
    });
  }

  void carry_out(effect::WriteFiles& write) {
    const bool posted =
        worker_.post([order = std::move(write.order), data = context_.data](const std::stop_token&) {
          if (auto written = write_files(data + "/" + order.folder, order.files); !written)
            log::error("node.files_not_written",
                       {{"attempt", to_string(order.key)}, {"why", written.error().what}});
        });
    if (!posted) log::error("node.files_not_written", {{"why", "too many attempts wait for their code"}});
  }

  void carry_out(effect::RemoveFolder& remove) { folders_.remove(context_.data, remove.folder); }

  void carry_out(effect::Release& release) {
    preparer_.release(release.key);
    duties_.release(release.key);
  }
  void carry_out(effect::Start& start) {
    preparer_.open_ports(start.order.key);
    for (const ProcessStart& process : start.order.processes)
      if (!process.problem.empty()) return not_started(start.order, process.problem, true);
    keeper::StartRequest message = to_keeper(start.order, context_);
    if (auto recorded = duties_.start(start.order, message); !recorded)
      return not_started(start.order,
                         "what is to be done after it cannot be recorded: " + recorded.error().what, false);
    output_times_.ordered(message);
    keeper_.send(std::move(message));
  }

  void not_started(const StartOrder& order, const std::string& why, bool counts_against_retries) {
    for (const ProcessStart& process : order.processes) {
      ProcessEnded end;
      end.key = order.key;
      end.rank = process.rank;
      end.kind = ProcessEndKind::start_failed;
      end.counts_against_retries = counts_against_retries;
      end.detail = why;
      end.started_at = end.ended_at = clock_.now();
      core_.ended(std::move(end));
    }
    act_later();
  }

  void carry_out(effect::Stop& stop) {
    const StopOrder& order = stop.order;
    if (!order.notice.empty())  // before the signal, so that whoever gets that finds it
      if (auto written =
              write_file(context_.data + "/" + order.folder + "/" + std::string(eviction_file), order.notice);
          !written)
        log::error("node.notice_not_written",
                   {{"attempt", to_string(order.key)}, {"why", written.error().what}});
    duties_.stop(order);
    keeper_.send(keeper::StopRequest{order.key, order.grace});
  }
  void carry_out(effect::RenewLease& renew) {
    if (options_.local) return;  // a node of the service's machine has none
    keeper_.send(keeper::RenewRequest{clock_.as_boot_time(renew.from)});
  }
  void carry_out(effect::Forget& forget) {
    for (const WorkKey& key : forget.keys) preparer_.release(key);
    duties_.forget(std::move(forget.keys));
  }

  void carry_out(effect::Quit& quit) {
    if (!quit.reason.empty()) return refuse(quit.reason);
    log::info("agent.quit", {{"node", name_}, {"why", "the service said so"}});
    leave(0, true);
  }

  const AgentOptions options_;
  net::Url url_;
  const net::Headers headers_;
  const std::string name_;
  NodeContext context_;
  bool storage_known_ = false;

  const Fd cancel_{::eventfd(0, EFD_CLOEXEC)};  // readable: what the worker waits for is not wanted any more
  SystemClock clock_;
  AgentCore core_;
  Random random_;
  net::Loop loop_;
  std::unique_ptr<FileServer> files_;
  KeeperLink keeper_;

  DutyRunner duties_;
  std::map<std::string, bool> can_view_;  // by root
  bool later_act_ = false;

  SessionId session_;
  std::shared_ptr<net::WebSocket> socket_;
  Duration redial_wait_{0};
  std::string last_problem_;
  bool was_welcome_ = false;
  bool has_asked_ = false;  // for a certificate, before this dial
  std::shared_ptr<net::Loop::Timer> certificate_timer_;
  bool said_joined_ = false;
  bool quitting_ = false;
  int exit_code_ = 0;
  std::optional<TimePoint> tick_at_;
  OutputTimes output_times_{loop_};
  UseMeter meter_{context_.data};
  std::shared_ptr<net::Loop::Timer> tick_timer_;
  std::shared_ptr<net::Loop::Timer> redial_timer_;
  std::shared_ptr<net::Loop::Timer> quit_timer_;
  SeenTurn seen_;
  Preparer preparer_;
  FolderRemover folders_;
  Worker worker_;  // last, so that it ends first
};

Result<int> run(AgentOptions options) {
  const Result<net::Url> url = net::parse_url(options.service);
  if (!url) return fail(url.error());
  if (auto completed = complete(options, *url); !completed) return fail(completed.error());
  const Result<FileLock> lock = FileLock::take(options.folder + "/agent.lock");
  if (!lock)
    return fail(lock.error().code, "another agent runs in this folder: " + lock.error().what,
                "give this one a folder of its own, or stop that one");
  const std::string pid_file = options.folder + "/agent.pid";
  if (auto written = write_file_durably(pid_file, std::to_string(::getpid()) + "\n"); !written)
    return fail(written.error());
  if (!options.local)
    if (auto left = leave_command(options.folder); !left) return fail(left.error());
  const Result<std::string> instance = take_instance(options.folder);
  if (!instance) return fail(instance.error());
  const Result<std::string> key = take_node_key(options.folder);
  if (!key) return fail(key.error());
  AgentCore::Options node{.name = options.name,
                          .pool = options.pool,
                          .instance = *instance,
                          .boot = boot_id(),
                          .address = options.address,
                          .host = host_name(),
                          .version = SLIPWAY_VERSION,
                          .local = options.local,
                          .shares_storage = false,
                          .total = options.total,
                          .notes = container::run_as_notes(),
                          // The service knows its own machine, and looks only when somebody asks.
                          .engines = options.local ? std::vector<std::string>() : container::engines()};
  Agent agent(std::move(options), *key, *url, std::move(node));
  const int code = agent.run();
  ::unlink(pid_file.c_str());
  return code;
}

}  // namespace

int run_agent(AgentOptions options) {
  const Result<int> code = run(std::move(options));
  if (code) return *code;
  std::fprintf(stderr, "error: %s\n", code.error().what.c_str());
  if (!code.error().hint.empty()) std::fprintf(stderr, "try:   %s\n", code.error().hint.c_str());
  return 1;
}

}  // namespace slipway::agent
