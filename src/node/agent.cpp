#include "node/agent.h"

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

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/overloaded.h"
#include "base/random.h"
#include "base/resident.h"
#include "container/engines.h"
#include "domain/layout.h"
#include "net/client.h"
#include "net/loop.h"
#include "node/agent_setup.h"
#include "node/core.h"
#include "node/file_server.h"
#include "node/keeper_link.h"
#include "node/machine.h"
#include "node/machine_use.h"
#include "node/order.h"
#include "node/ports.h"
#include "node/silence.h"
#include "node/staging.h"
#include "node/storage.h"
#include "node/surroundings.h"
#include "node/worker.h"
#include "wire/protocol.h"

namespace slipway::node {
namespace {

constexpr Duration redial_first{100'000};
constexpr Duration redial_longest{2'000'000};
constexpr Duration keeper_quit_max{15'000'000};
constexpr std::size_t staging_queue_max = 10'000;
constexpr int sending_failed = 74;  // EX_IOERR

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
                {.message = [this](FromKeeper message) { on_keeper(std::move(message)); },
                 .caught_up = [this] { act(); },
                 .lost = [this] { on_keeper_lost(); }}),
        worker_(staging_queue_max) {}

  int run() {
    loop_.on_signals({SIGTERM, SIGINT}, [this](int) {
      log::info("agent.stopped", {{"node", name_}, {"processes", core_.is_idle() ? "none" : "go on"}});
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
  // The keeper stays unless it has nothing to keep, or is told to quit as well.
  void leave(int code, bool with_keeper) {
    exit_code_ = code;
    keeper_.let_go();
    if (!with_keeper || !keeper_.is_open()) return loop_.stop();
    quitting_ = true;
    keeper_.send(KeeperQuit{});
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
      auto tell = [this, found = std::move(found)] {
        if (found) return use_storage(*found);
        on_refused(found.error());
      };
      loop_.post(std::move(tell));
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
    blobs_ = std::make_unique<Blobs>(place_.data + "/blobs", std::move(fetch));
    files_ = std::make_unique<FileServer>(loop_, place_.data, [this](std::string reply) {
      if (socket_) socket_->send_binary(std::move(reply));
    });
    dial();
  }

  // ── the keeper ──

  void on_keeper(FromKeeper message) {
    std::visit(Overloaded{
                   [&](KeeperList& list) { core_.keeper_connected(std::move(list), clock_.now()); },
                   [&](ProcessStarted& started) {
                     silence_.started(started.key, started.rank, started.pid);
                     core_.started(started);
                   },
                   [&](ProcessEnded& ended) {
                     explain(ended);
                     silence_.ended(ended.key, ended.rank);
                     if (const auto view = views_.find(ended.key); view != views_.end())
                       end_in_view(view->second, std::move(ended));
                     else
                       core_.ended(std::move(ended));
                   },
               },
               message);
  }

  // What the keeper does not look at: the last words of a process that failed, and whether it ever could
  // have listened on its ports.
  void explain(ProcessEnded& ended) {
    const auto found = started_.find({ended.key, ended.rank});
    if (found == started_.end()) return;
    const Started started = std::move(found->second);
    started_.erase(found);
    if (ended.kind == ProcessEndKind::exited && ended.code == 0) return;
    if (!started.checkpoints.empty())
      ended.marked_at = newest_change(place_.data + "/" + started.checkpoints);
    if (ended.kind != ProcessEndKind::exited && ended.kind != ProcessEndKind::signalled) return;
    ended.last_lines = last_lines_of(started.stderr_file);
    for (const std::uint16_t port : started.listens) {
      if (ended.kind != ProcessEndKind::exited || !is_listened_on(port)) continue;
      ended.kind = ProcessEndKind::start_failed;
      ended.users_fault = false;
      ended.detail =
          fmt::format("port {}, found for it, was taken by another program before it could listen", port);
    }
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

  void carry_out(effect::Stage& stage) {
    const AttemptKey key = stage.order.key;
    const PrepareOrder& ordered = stage.order;
    if (ordered.source.empty() && ordered.files.empty() && ordered.view.root.empty())
      return find_ports(ordered);
    const bool has_namespaces = !ordered.view.root.empty() && can_view(ordered.view.root);
    const bool posted =
        worker_.post([this, has_namespaces, order = ordered, place = place_](std::stop_token stop) {
          Result<void> result = lay_out_all(order, place.data, stop);
          const Surroundings around(order.view, place, has_namespaces);
          const bool has_files = result.has_value();
          if (result) result = around.lay_out();
          if (result) {
            note(around.journal(), clock_.now(),
                 fmt::format("{}: node {} is laid out{}", to_string(order.key), name_,
                             has_namespaces || order.view.root.empty()
                                 ? ""
                                 : "; namespaces are not allowed here, so its mounts are links in " +
                                       around.real(order.view.root)));
          }
          auto tell = [this, order, has_files, result = std::move(result)] {
            if (result) return find_ports(order);
            staged({order.key,
                    {},
                    {},
                    (has_files ? "its mounts could not be made: " : "its files could not be laid out: ") +
                        result.error().what,
                    {},
                    {}});
          };
          loop_.post(std::move(tell));
        });
    if (!posted) staged({key, {}, {}, "too many attempts wait for their code", {}, {}});
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

  // After the files, so that nobody waits long for ports that are kept from him.
  void find_ports(const PrepareOrder& order) {
    Prepared found{order.key, {}, random_hex(16), {}, {}, {}};
    if (order.ports > 0) {
      Result<PortLease> lease = order.ports_from > 0 ? PortLease::take_from(order.ports_from, order.ports)
                                                     : PortLease::take(order.ports, random_);
      if (!lease) return staged({order.key, {}, {}, lease.error().what, {}, {}});
      found.ports = lease->ports();
      leases_.insert_or_assign(order.key, std::move(*lease));
    }
    staged(std::move(found));
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

  Result<void> lay_out_all(const PrepareOrder& order, const std::string& data, const std::stop_token& stop) {
    if (auto written = write_files(data + "/" + order.folder, order.files); !written) return written;
    if (order.source.empty()) return {};
    const Result<Snapshot> manifest = blobs_->manifest(order.source);
    if (!manifest) return fail(manifest.error());
    for (const std::string& folder : order.folders) {
      if (stop.stop_requested()) return fail(ErrorCode::unavailable, "the agent is being stopped");
      if (auto done = lay_out(*manifest, *blobs_, data + "/" + folder); !done) return done;
    }
    return {};
  }

  void carry_out(effect::Release& release) { leases_.erase(release.key); }
  void carry_out(effect::Start& start) {
    if (const auto lease = leases_.find(start.order.key); lease != leases_.end()) lease->second.open();
    if (!start.order.view.root.empty()) begin_in_view(start.order);
    KeeperStart message = to_keeper(start.order, place_);
    for (std::size_t i = 0; i < message.processes.size(); ++i)
      started_[{message.key, message.processes[i].rank}] = {
          message.processes[i].stderr_file, start.order.processes[i].listens, start.order.checkpoints};
    if (start.order.silence.count() > 0) watch_silence(message, start.order.silence);
    keeper_.send(std::move(message));
  }

  void begin_in_view(const StartOrder& order) {
    const Surroundings around(order.view, place_, can_view(order.view.root));
    if (auto linked = around.link_logs(place_.data + "/" + order.folder, order.processes); !linked)
      log::error("node.logs_not_linked", {{"attempt", to_string(order.key)}, {"why", linked.error().what}});
    for (const View::Place& place : order.view.places) has_mounts_ |= place.kind == MountKind::command;
    note(around.journal(), clock_.now(),
         fmt::format("{}: node {} starts {}", to_string(prepared_by(order.key)), name_,
                     is_preparation(order.key) ? "its preparation"
                                               : fmt::format("{} of its processes", order.processes.size())));
    views_[order.key] = order.view;
  }

  // Its last words on this node; what it wrote into copies is sent back before its end is told.
  void end_in_view(const View& view, ProcessEnded ended) {
    const bool sends = !is_preparation(ended.key) && Surroundings(view, place_, true).has_copies();
    const std::string how =
        ended.kind == ProcessEndKind::exited
            ? fmt::format("exited with code {}", ended.code)
            : fmt::format("ended ({}{})", to_string(ended.kind),
                          ended.kind == ProcessEndKind::signalled ? fmt::format(" {}", ended.code) : "");
    note(Surroundings(view, place_, can_view(view.root)).journal(), clock_.now(),
         fmt::format("{}: {} on node {} {}{}{}", to_string(prepared_by(ended.key)),
                     is_preparation(ended.key) ? "the preparation" : fmt::format("process {}", ended.rank),
                     name_, how, ended.detail.empty() ? "" : ": ", ended.detail));
    if (!sends) return core_.ended(std::move(ended));
    const bool posted = worker_.post([this, view, place = place_, ended](std::stop_token) {
      const Result<void> sent = Surroundings(view, place, true).send_back();
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

  void watch_silence(const KeeperStart& start, Duration timeout) {
    std::map<std::uint32_t, SilenceWatch::Process> processes;
    for (const KeeperProcess& process : start.processes)
      processes[process.rank] = {{process.stdout_file, process.stderr_file}, 0};
    silence_.add(start.key, timeout, std::move(processes), clock_.now());
    look_for_silence();
  }

  void look_for_silence() {
    for (const auto& [key, is_silent] : silence_.look(clock_.now())) core_.silent(key, is_silent);
    const std::optional<TimePoint> next = silence_.next();
    silence_timer_ = next ? loop_.after(*next - clock_.now(),
                                        [this] {
                                          look_for_silence();
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
    keeper_.send(KeeperStop{order.key, order.grace});
  }
  void carry_out(effect::Forget& forget) {
    for (const AttemptKey& key : forget.keys) {
      leases_.erase(key);
      const auto view = views_.extract(key);
      if (view && has_mounts_ && !is_preparation(key)) unmount_under(mounts_folder(view.mapped(), place_));
    }
    keeper_.send(KeeperForget{std::move(forget.keys)});
  }

  void carry_out(effect::Quit& quit) {
    if (!quit.reason.empty()) return refuse(quit.reason);
    log::info("agent.quit", {{"node", name_}, {"why", "the service said so"}});
    leave(0, true);
  }

  struct Started {
    std::string stderr_file;
    std::vector<std::uint16_t> listens;
    std::string checkpoints;  // empty: none
  };

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
  std::unique_ptr<Blobs> blobs_;  // used by the worker once set
  std::unique_ptr<FileServer> files_;
  KeeperLink keeper_;

  std::map<AttemptKey, PortLease> leases_;
  std::map<AttemptKey, View> views_;                                 // of what was started
  std::map<std::string, bool> can_view_;                             // by root
  bool has_mounts_ = false;                                          // some mount command was run
  std::map<std::pair<AttemptKey, std::uint32_t>, Started> started_;  // and not ended
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
  SilenceWatch silence_;
  std::shared_ptr<net::Loop::Timer> silence_timer_;
  UseMeter meter_{place_.data};
  std::shared_ptr<net::Loop::Timer> tick_timer_;
  std::shared_ptr<net::Loop::Timer> redial_timer_;
  std::shared_ptr<net::Loop::Timer> quit_timer_;
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

}  // namespace slipway::node
