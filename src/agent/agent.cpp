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
#include "agent/end_details.h"
#include "agent/file_server.h"
#include "agent/keeper_link.h"
#include "agent/machine.h"
#include "agent/machine_use.h"
#include "agent/order.h"
#include "agent/preparer.h"
#include "agent/stall.h"
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
#include "domain/layout.h"
#include "keeper/agent_restart.h"
#include "net/client.h"
#include "net/loop.h"
#include "wire/protocol.h"

namespace slipway::agent {
namespace {

using namespace std::chrono_literals;

constexpr Duration redial_first = 100ms;
constexpr Duration redial_longest = 2s;
constexpr Duration keeper_quit_max = 15s;
constexpr std::size_t staging_queue_max = 10'000;
constexpr int sending_failed = 74;  // EX_IOERR

// The attempt that is run or prepared.
std::string attempt_name(const WorkKey& key) {
  const AttemptKey* attempt = attempt_of(key);
  return attempt ? to_string(*attempt) : to_string(key);
}

// For the keeper, which starts this agent again should it be killed.
Result<void> leave_command(const std::string& folder) {
  const Result<std::string> command = read_file("/proc/self/cmdline");
  if (!command) return fail(command.error());
  return write_file_durably(folder + "/" + std::string(keeper::agent_command_file), *command, 0600);
}

// The edge around AgentCore: hands it what happens, does what it says. All on the loop's thread but staging.
class Agent {
 public:
  Agent(AgentOptions options, net::Url url, AgentCore::Options node)
      : options_(std::move(options)),
        url_(std::move(url)),
        headers_{{"Authorization", "Bearer " + options_.token}},
        name_(node.name),
        place_{"",         base_environment(),
               node.total, own_program(),
               false,      [this](const std::string& root) { return can_view(root); }},
        core_(std::move(node)),
        random_(random_seed()),
        keeper_(loop_, {options_.folder, options_.keeper_command},
                {.message = [this](keeper::FromKeeper message) { on_keeper(std::move(message)); },
                 .caught_up = [this] { act(); },
                 .lost = [this] { on_keeper_lost(); }}),
        preparer_(loop_, worker_, place_, name_, [this](Prepared result) { staged(std::move(result)); }),
        worker_(staging_queue_max) {}

  int run() {
    loop_.on_signals({SIGTERM, SIGINT}, [this](int) {
      log::info("agent.stopped", {{"node", name_}, {"processes", core_.is_idle() ? "none" : "continue"}});
      leave(0, core_.is_idle());
    });
    keeper_.open();
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
    ::unlink((options_.folder + "/" + std::string(keeper::agent_command_file)).c_str());  // nobody restarts it
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
    if (Result<net::Url> url = net::parse_url(*said)) url_ = std::move(*url);
  }

  void dial() {
    redial_timer_.reset();
    if (!storage_known_) return find_storage();
    if (!options_.data.empty()) follow_service();
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
    net::connect_websocket(loop_, url_, "/v1/nodes/connect", headers_, std::move(callbacks),
                           std::move(opened));
  }

  void on_opened(SessionId session, Result<std::shared_ptr<net::WebSocket>> socket) {
    if (!socket) return on_refused(socket.error());
    socket_ = std::move(*socket);
    std::vector<std::uint32_t> gpus = usable_gpus(options_);
    place_.total.gpus = static_cast<std::uint32_t>(gpus.size());
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
    place_.data = storage.is_shared ? storage.data : options_.folder;
    place_.shares_storage = storage.is_shared;
    core_.set_shares_storage(storage.is_shared);
    FetchBlob fetch;
    if (!storage.is_shared)
      fetch = [this](const std::string& hash, const auto& take) {
        net::Client client(url_, headers_);
        return fetch_blob(client, hash, take, cancel_.get());
      };
    preparer_.set_storage(std::move(fetch));
    files_ = std::make_unique<FileServer>(loop_, place_.data, [this](std::string reply) {
      if (socket_) socket_->send_binary(std::move(reply));
    });
    dial();
  }

  // ── the keeper ──

  void on_keeper(keeper::FromKeeper message) {
    std::visit(Overloaded{
                   [&](keeper::ProcessList& list) {
                     place_.limits_cores = list.cpu_limit == "cgroup" || list.cpu_limit == "affinity";
                     core_.keeper_connected(std::move(list), clock_.now());
                   },
                   [&](ProcessStarted& started) {
                     stalls_.started(started.key, started.rank, started.pid);
                     core_.started(started);
                   },
                   [&](ProcessEnded& ended) {
                     end_details_.complete(ended, place_.data);
                     stalls_.ended(ended.key, ended.rank);
                     if (const auto view = views_.find(ended.key); view != views_.end())
                       end_in_view(view->second, std::move(ended));
                     else
                       core_.ended(std::move(ended));
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
    for (Effect& effect : core_.take_effects(clock_.now()))
      std::visit([this](auto& one) { carry_out(one); }, effect);
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
    if (socket_ && send.session == session_) socket_->send_text(wire::format(send.message));
  }

  void carry_out(effect::CloseSession& close) {
    if (close.session == session_) hang_up(close.why);
  }

  void carry_out(effect::Stage& stage) { preparer_.prepare(stage.order); }

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
    later_act_ = true;
    loop_.post([this] {
      if (std::exchange(later_act_, false)) act();
    });
  }

  void carry_out(effect::WriteFiles& write) {
    const bool posted =
        worker_.post([order = std::move(write.order), data = place_.data](const std::stop_token&) {
          if (auto written = write_files(data + "/" + order.folder, order.files); !written)
            log::error("node.files_not_written",
                       {{"attempt", to_string(order.key)}, {"why", written.error().what}});
        });
    if (!posted) log::error("node.files_not_written", {{"why", "too many attempts wait for their code"}});
  }

  void carry_out(effect::Release& release) { preparer_.release(release.key); }
  void carry_out(effect::Start& start) {
    preparer_.open_ports(start.order.key);
    if (!start.order.view.root.empty()) begin_in_view(start.order);
    keeper::StartRequest message = to_keeper(start.order, place_);
    end_details_.started(start.order, message);
    if (start.order.silence.count() > 0) watch_stall(message, start.order.silence);
    keeper_.send(std::move(message));
  }

  void begin_in_view(const StartOrder& order) {
    const TaskEnvironment environment(order.view, place_, can_view(order.view.root));
    if (auto linked = environment.link_logs(place_.data + "/" + order.folder, order.processes); !linked)
      log::error("node.logs_not_linked", {{"attempt", to_string(order.key)}, {"why", linked.error().what}});
    for (const View::Place& place : order.view.places) has_mounts_ |= place.kind == MountKind::command;
    note(environment.journal(), clock_.now(),
         fmt::format("{}: node {} starts {}", attempt_name(order.key), name_,
                     is_preparation(order.key) ? "its preparation"
                                               : fmt::format("{} of its processes", order.processes.size())));
    views_[order.key] = order.view;
  }

  // Its end is noted in the journal of the environment; what it wrote into copies is sent back before its end
  // is reported.
  void end_in_view(const View& view, ProcessEnded ended) {
    const bool sends = !is_preparation(ended.key) && TaskEnvironment(view, place_, true).has_copies();
    const std::string how =
        ended.kind == ProcessEndKind::exited
            ? fmt::format("exited with code {}", ended.code)
            : fmt::format("ended ({}{})", to_string(ended.kind),
                          ended.kind == ProcessEndKind::signalled ? fmt::format(" {}", ended.code) : "");
    note(TaskEnvironment(view, place_, can_view(view.root)).journal(), clock_.now(),
         fmt::format("{}: {} on node {} {}{}{}", attempt_name(ended.key),
                     is_preparation(ended.key) ? "the preparation" : fmt::format("process {}", ended.rank),
                     name_, how, ended.detail.empty() ? "" : ": ", ended.detail));
    if (!sends) return core_.ended(std::move(ended));
    const bool posted = worker_.post([this, view, place = place_, ended](std::stop_token) {
      const Result<void> sent = TaskEnvironment(view, place, true).send_back();
      loop_.post([this, ended, sent]() mutable {
        if (!sent && ended.kind == ProcessEndKind::exited && ended.code == 0) {
          ended.code = sending_failed;
          ended.detail = "it ended well, but what it wrote was not sent: " + sent.error().what;
          ended.last_lines = ended.detail;
        }
        core_.ended(std::move(ended));
        act();
      });
    });
    if (!posted) core_.ended(std::move(ended));
  }

  void watch_stall(const keeper::StartRequest& start, Duration timeout) {
    std::map<std::uint32_t, StallWatch::Process> processes;
    for (const keeper::ProcessSpec& process : start.processes)
      processes[process.rank] = {{process.stdout_file, process.stderr_file}, 0};
    stalls_.add(start.key, timeout, std::move(processes), clock_.now());
    check_stalls();
  }

  void check_stalls() {
    for (const auto& [key, is_stalled] : stalls_.look(clock_.now())) core_.stalled(key, is_stalled);
    const std::optional<TimePoint> next = stalls_.next();
    stall_timer_ = next ? loop_.after(*next - clock_.now(),
                                      [this] {
                                        check_stalls();
                                        act();
                                      })
                        : nullptr;
  }
  void carry_out(effect::Stop& stop) {
    const StopOrder& order = stop.order;
    if (!order.notice.empty())  // before the signal, so that whoever gets that finds it
      if (auto written =
              write_file(place_.data + "/" + order.folder + "/" + std::string(eviction_file), order.notice);
          !written)
        log::error("node.notice_not_written",
                   {{"attempt", to_string(order.key)}, {"why", written.error().what}});
    keeper_.send(keeper::StopRequest{order.key, order.grace});
  }
  void carry_out(effect::RenewLease& renew) {
    if (options_.local) return;  // a node of the service's machine has none
    keeper_.send(keeper::RenewRequest{boot_time() - (clock_.now() - renew.from)});
  }
  void carry_out(effect::Forget& forget) {
    for (const WorkKey& key : forget.keys) {
      preparer_.release(key);
      const auto view = views_.extract(key);
      if (view && has_mounts_ && !is_preparation(key)) unmount_under(mounts_folder(view.mapped(), place_));
    }
    keeper_.send(keeper::ForgetRequest{std::move(forget.keys)});
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
  NodePlace place_;
  bool storage_known_ = false;

  const Fd cancel_{::eventfd(0, EFD_CLOEXEC)};  // readable: what the worker waits for is not wanted any more
  SystemClock clock_;
  AgentCore core_;
  Random random_;
  net::Loop loop_;
  std::unique_ptr<FileServer> files_;
  KeeperLink keeper_;

  std::map<WorkKey, View> views_;         // of what was started
  std::map<std::string, bool> can_view_;  // by root
  bool has_mounts_ = false;               // some mount command was run
  EndDetails end_details_;
  bool later_act_ = false;

  SessionId session_;
  std::shared_ptr<net::WebSocket> socket_;
  Duration redial_wait_{0};
  std::string last_problem_;
  bool was_welcome_ = false;
  bool said_joined_ = false;
  bool quitting_ = false;
  int exit_code_ = 0;
  std::optional<TimePoint> tick_at_;
  StallWatch stalls_;
  std::shared_ptr<net::Loop::Timer> stall_timer_;
  UseMeter meter_{place_.data};
  std::shared_ptr<net::Loop::Timer> tick_timer_;
  std::shared_ptr<net::Loop::Timer> redial_timer_;
  std::shared_ptr<net::Loop::Timer> quit_timer_;
  Preparer preparer_;
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
                          .notes = {},
                          // The service knows its own machine, and looks only when somebody asks.
                          .engines = options.local ? std::vector<std::string>() : container::engines()};
  Agent agent(std::move(options), *url, std::move(node));
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
