#include "agent/agent.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
#include "agent/order.h"
#include "agent/output_times.h"
#include "agent/preparer.h"
#include "agent/process_age.h"
#include "agent/seen_turn.h"
#include "agent/service_link.h"
#include "agent/storage.h"
#include "agent/task_environment.h"
#include "agent/worker.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/overloaded.h"
#include "container/engines.h"
#include "container/run_as.h"
#include "domain/layout.h"
#include "keeper/agent_restart.h"
#include "net/client.h"
#include "net/loop.h"
#include "wire/protocol.h"

namespace slipway::agent {
namespace {

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

// The edge around AgentCore: hands it what happens, carries out its effects. All on the loop's thread but
// staging.
class Agent {
 public:
  Agent(AgentOptions options, const std::string& node_key, net::Url url, AgentCore::Options node)
      : options_(std::move(options)),
        name_(node.name),
        context_{"",         base_environment(),
                 node.total, own_program(),
                 false,      [this](const std::string& root) { return can_view(root); },
                 false,      name_},
        core_(std::move(node)),
        keeper_(loop_, {options_.folder, options_.keeper_command},
                {.message = [this](keeper::FromKeeper message) { on_keeper(std::move(message)); },
                 .caught_up = [this] { act(); },
                 .lost = [this] { on_keeper_lost(); }}),
        duties_(loop_, keeper_, context_, {name_, options_.folder},
                {.ended = [this](ProcessEnded end) { core_.ended(std::move(end)); },
                 .stalled = [this](const WorkKey& key, bool is_stalled) { core_.stalled(key, is_stalled); },
                 .act = [this] { act(); }}),
        link_(loop_, worker_, clock_, std::move(url),
              {.name = name_,
               .folder = options_.folder,
               .data = options_.data,
               .workspace = options_.workspace,
               .headers = {{"Authorization", "Bearer " + options_.token}, {node_key_header, node_key}},
               .cancel_fd = cancel_.get()},
              {.storage = [this](Storage storage) { use_storage(std::move(storage)); },
               .opened = [this](SessionId session) { on_opened(session); },
               .message = [this](SessionId session, ToAgent message) { on_message(session, message); },
               .binary = [this](const std::string& message) { files_->handle(message); },
               .lost =
                   [this](SessionId session) {
                     forget_session(session);
                     act();
                   },
               .refused = [this](const std::string& why) { refuse(why); }}),
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
    if (!options_.data.empty()) use_storage({.is_shared = true, .data = options_.data});
    link_.open();
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

  void on_opened(SessionId session) {
    std::vector<std::uint32_t> gpus = usable_gpus(options_);
    context_.total.gpus = static_cast<std::uint32_t>(gpus.size());
    core_.set_gpus(std::move(gpus));
    core_.connected(session, clock_.now());
    act();
  }

  void on_message(SessionId session, ToAgent& message) {
    seen_.note(message);
    core_.received(session, std::move(message), clock_.now());
    if (core_.is_welcome()) link_.welcomed();
    act();
  }

  void forget_session(SessionId session) {
    core_.disconnected(session);
    files_->forget_all();
  }

  void refuse(const std::string& why) {
    std::fprintf(stderr, "error: node %s cannot join %s: %s\n", name_.c_str(), link_.authority().c_str(),
                 why.c_str());
    leave(1, core_.is_idle());
  }

  // ── storage ──

  void use_storage(Storage storage) {
    context_.data = storage.is_shared ? storage.data : options_.folder;
    context_.shares_storage = storage.is_shared;
    core_.set_shares_storage(storage.is_shared);
    note_reach();
    FetchBlob fetch;
    if (!storage.is_shared)
      fetch = [this](const std::string& hash, const auto& take) {
        net::Client client = link_.client();
        return fetch_blob(client, hash, take, cancel_.get());
      };
    preparer_.set_storage(std::move(fetch));
    files_ = std::make_unique<FileServer>(loop_, context_.data,
                                          [this](std::string reply) { link_.send_binary(std::move(reply)); });
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
    duties_.keeper_lost();
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
    if (send.session != link_.session()) return;
    keeper_.flush();  // what came of a push is on record before the service is sent the end
    if (auto* hello = std::get_if<Hello>(&send.message)) add_node_facts(*hello);
    link_.send(send.session, wire::format(send.message));
  }

  void add_node_facts(Hello& hello) const {
    hello.seen = seen_.saved();
    for (ProcessStarted& process : hello.running)
      if (process.pid > 0) process.age = process_age(process.pid);
  }

  void carry_out(effect::CloseSession& close) {
    if (close.session != link_.session()) return;
    forget_session(close.session);
    link_.hang_up(close.why);
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
  const std::string name_;
  NodeContext context_;

  const Fd cancel_{::eventfd(0, EFD_CLOEXEC)};  // readable: what the worker waits for is not wanted any more
  SystemClock clock_;
  AgentCore core_;
  net::Loop loop_;
  std::unique_ptr<FileServer> files_;
  KeeperLink keeper_;

  DutyRunner duties_;
  std::map<std::string, bool> can_view_;  // by root
  bool later_act_ = false;

  ServiceLink link_;
  bool quitting_ = false;
  int exit_code_ = 0;
  std::optional<TimePoint> tick_at_;
  OutputTimes output_times_{loop_};
  UseMeter meter_{context_.data};
  std::shared_ptr<net::Loop::Timer> tick_timer_;
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
