#include "train/exchange/parameter_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <list>
#include <optional>

#include "base/log.h"
#include "train/exchange/acceptor.h"
#include "train/exchange/frame.h"
#include "train/exchange/server_connection.h"
#include "train/nn/kernels.h"
#include "train/state/writer.h"

namespace slipway::train {
namespace {

class Server {
 public:
  Server(Fd listener, const ServerOptions& options, const Stop& stop)
      : listener_(std::move(listener)),
        options_(options),
        stop_(stop),
        acceptor_(listener_.get(), options.key) {}

  Result<ServerReport> run();

 private:
  struct Worker {
    ServerConnection* connection = nullptr;
    std::vector<float> gradients;         // the tail first, then the slice
    std::optional<std::uint64_t> pushed;  // the step of the gradients above, not yet used
    bool wants_reply = false;
    std::uint64_t clock = 0;  // asynchronous: pushes so far
    bool has_come = false, has_left = false;
  };

  void take_in(std::list<ServerConnection> came);
  void handle(ServerConnection& connection);
  Result<void> on_frame(ServerConnection& connection);
  Result<void> on_hello(ServerConnection& connection);
  Result<void> on_start(ServerConnection& connection);
  Result<void> on_pull(ServerConnection& connection);
  Result<void> on_push(ServerConnection& connection);
  void adopt(const Plan& plan, std::string text);
  void drop(ServerConnection& connection, const Error& why);
  void reply(Worker& worker, std::uint32_t flags, const Tail& tail);
  void apply(std::span<const float> gradients, std::size_t contributions);
  void finish_step_if_complete();
  void release_stale();
  void save();
  Result<void> check_worker_timeouts();
  bool is_over() const;
  int poll_timeout() const;
  CheckpointInfo info() const;
  std::string welcome_text() const;

  Fd listener_;
  ServerOptions options_;
  const Stop& stop_;
  Acceptor acceptor_;
  std::list<ServerConnection> connections_;

  std::optional<Plan> plan_;
  std::string plan_text_;
  Range slice_;
  std::vector<Worker> workers_;
  std::vector<float> values_,
      before_;  // before_: of the previous step, only with several synchronous servers
  std::optional<Optimizer> optimizer_;
  std::vector<float> sum_;
  std::uint64_t step_ = 0;
  bool ready_ = false, finished_ = false, not_finite_ = false;
  Steady::time_point progress_at_ = Steady::now();
  std::unique_ptr<CheckpointWriter> writer_;
  std::optional<std::uint64_t> saving_;  // the newest step handed to the writer
};

std::size_t size_of(const Range& range) { return range.end - range.begin; }

void Server::adopt(const Plan& plan, std::string text) {
  plan_ = plan;
  plan_text_ = std::move(text);
  slice_ = server_slice(plan.floats, plan.servers, options_.index);
  workers_.resize(plan.workers);
  for (Worker& worker : workers_) worker.gradients.resize(tail_floats + size_of(slice_));
  values_.resize(size_of(slice_));
  sum_.resize(tail_floats + size_of(slice_));
  optimizer_.emplace(plan.optimizer, slice_, plan.statistics);
  if (!options_.checkpoint_folder.empty())
    writer_ = std::make_unique<CheckpointWriter>(
        CheckpointFolder(options_.checkpoint_folder, options_.checkpoints_kept));
}

CheckpointInfo Server::info() const {
  return {.model = plan_->model,
          .dataset = plan_->dataset,
          .classes = 10,
          .step = step_,
          .seed = plan_->seed,
          .workers = plan_->workers,
          .batch = plan_->batch,
          .optimizer = std::to_string(static_cast<int>(plan_->optimizer.kind)),
          .shard = options_.index,
          .shards = plan_->servers,
          .accuracy = -1};
}

void Server::take_in(std::list<ServerConnection> came) {
  while (!came.empty()) {
    connections_.splice(connections_.end(), came, came.begin());
    ServerConnection& connection = connections_.back();
    if (auto known = on_hello(connection); !known) {
      drop(connection, known.error());
      continue;
    }
    connection.next();
    handle(connection);
  }
}

// Reads whatever has arrived, as far as whole messages go.
void Server::handle(ServerConnection& connection) {
  while (!connection.closed()) {
    const auto arrived = connection.receive();
    if (!arrived) return drop(connection, arrived.error());
    if (!*arrived) return;
    const bool whole = connection.has_payload();
    if (auto handled = on_frame(connection); !handled) return drop(connection, handled.error());
    if (whole) connection.next();
  }
}

Result<void> Server::on_frame(ServerConnection& connection) {
  const Frame& frame = connection.frame();
  if (!connection.has_payload()) {  // the header has just come: say where the payload goes, within its bound
    switch (frame.kind) {
      case FrameKind::start:
      case FrameKind::push: {
        const std::size_t plain = size_of(slice_) * sizeof(float);
        const std::size_t most = sizeof(Tail) + std::max(plain, top_bytes_max(size_of(slice_)));
        const bool straight = frame.kind == FrameKind::push && (frame.flags & (flag_half | flag_top)) == 0 &&
                              frame.bytes == sizeof(Tail) + plain;
        // Plain gradients land where they are added up; nothing is copied.
        if (straight && !workers_[static_cast<std::size_t>(connection.worker())].pushed)
          return connection.expect_into(
              workers_[static_cast<std::size_t>(connection.worker())].gradients.data());
        return connection.expect(most);
      }
      default: return connection.expect(0);
    }
  }
  switch (frame.kind) {
    case FrameKind::start: return on_start(connection);
    case FrameKind::pull: return on_pull(connection);
    case FrameKind::push: return on_push(connection);
    case FrameKind::bye:
      workers_[static_cast<std::size_t>(connection.worker())].has_left = true;
      if (connection.worker() == 0 && (frame.flags & flag_finish) != 0) finished_ = true;
      return fail(lost(connection.name(), "has left"));
    default: return fail(ErrorCode::invalid, "it sent a message that only servers send");
  }
}

std::string Server::welcome_text() const {
  std::string text = "saved";
  if (!options_.resume || options_.checkpoint_folder.empty()) return text;
  for (const std::uint64_t step : CheckpointFolder(options_.checkpoint_folder, 1).steps())
    text += fmt::format(" {}", step);
  return text;
}

Result<void> Server::on_hello(ServerConnection& connection) {
  const std::string text(connection.text());
  auto plan = parse_plan(text);
  if (!plan) return fail(plan.error());
  const std::uint32_t index = connection.frame().sender;
  if (index >= plan->workers)
    return fail(ErrorCode::invalid, fmt::format("it claims to be worker {} of {}", index, plan->workers));
  if (options_.index >= plan->servers)
    return fail(ErrorCode::invalid,
                fmt::format("it knows {} servers and this is server {}", plan->servers, options_.index));
  if (!plan_) adopt(*plan, text);
  if (text != plan_text_)
    return fail(ErrorCode::conflict,
                fmt::format("it trains something else: it has {}", difference(text, plan_text_)),
                "start every process of the run with the same options");
  Worker& worker = workers_[index];
  if (worker.connection != nullptr)
    drop(*worker.connection, lost(worker.connection->name(), "was replaced by a new process"));
  worker.connection = &connection;
  worker.has_come = true;
  worker.has_left = false;
  worker.pushed.reset();
  worker.wants_reply = false;
  for (const Worker& other :
       workers_)  // a newcomer starts level with the slowest, or it would hold up the rest
    if (&other != &worker && other.connection != nullptr) worker.clock = std::max(worker.clock, other.clock);
  for (const Worker& other : workers_)
    if (&other != &worker && other.connection != nullptr) worker.clock = std::min(worker.clock, other.clock);
  progress_at_ = Steady::now();
  connection.introduce(static_cast<int>(index));
  connection.send(
      {.kind = FrameKind::welcome, .flags = ready_ ? std::uint32_t{flag_ready} : 0, .step = step_},
      welcome_text());
  return {};
}

Result<void> Server::on_start(ServerConnection& connection) {
  const Frame& frame = connection.frame();
  if (connection.worker() != 0)
    return fail(ErrorCode::denied, "only the chief, worker 0, may start a server");
  if ((frame.flags & flag_restore) != 0) {
    auto checkpoint = CheckpointFolder(options_.checkpoint_folder, 1).load(frame.step);
    const bool fits = checkpoint && checkpoint->values.size() == values_.size() &&
                      checkpoint->info.model == plan_->model && checkpoint->info.shards == plan_->servers &&
                      checkpoint->info.shard == options_.index &&
                      checkpoint->state.size() == optimizer_->state().size();
    if (!fits) {
      const Error why =
          checkpoint
              ? Error{ErrorCode::invalid,
                      fmt::format("checkpoint of step {} is of another model, optimizer or number of servers",
                                  frame.step),
                      "use another --checkpoint-dir, or --resume never"}
              : checkpoint.error();
      log::warning("server.restore_failed", {{"step", frame.step}, {"why", why.what}});
      connection.send({.kind = FrameKind::refuse, .step = frame.step}, why.what);
      return {};
    }
    values_ = std::move(checkpoint->values);
    std::copy(checkpoint->state.begin(), checkpoint->state.end(), optimizer_->state().begin());
    log::info("server.restored", {{"server", options_.index}, {"step", frame.step}});
  } else {
    const auto payload = connection.payload();
    if (payload.size() != values_.size() * sizeof(float))
      return fail(ErrorCode::invalid,
                  fmt::format("it gave {} bytes of values for {} floats", payload.size(), values_.size()));
    if (!payload.empty()) std::memcpy(values_.data(), payload.data(), payload.size());
    std::fill(optimizer_->state().begin(), optimizer_->state().end(), 0.0F);
  }
  step_ = frame.step;
  before_.clear();
  ready_ = true;
  for (Worker& worker : workers_) {
    worker.pushed.reset();
    if (worker.wants_reply) reply(worker, 0, {});
  }
  connection.send({.kind = FrameKind::welcome, .flags = flag_ready, .step = step_}, welcome_text());
  return {};
}

Result<void> Server::on_pull(ServerConnection& connection) {
  Worker& worker = workers_[static_cast<std::size_t>(connection.worker())];
  const std::uint64_t wanted = connection.frame().step;
  if (!ready_) {
    worker.wants_reply = true;
    return {};
  }
  const bool is_before = plan_->mode == Mode::sync && wanted + 1 == step_ && !before_.empty();
  if (is_before)
    connection.send_values({.kind = FrameKind::values, .step = wanted}, {}, before_, true);
  else
    reply(worker,
          plan_->mode == Mode::sync && wanted != ~std::uint64_t{0} && wanted != step_ ? flag_missing : 0U,
          {});
  return {};
}

Result<void> Server::on_push(ServerConnection& connection) {
  const Frame& frame = connection.frame();
  Worker& worker = workers_[static_cast<std::size_t>(connection.worker())];
  const std::size_t floats = size_of(slice_);
  if (!connection.payload().empty()) {  // not received in place
    const auto payload = connection.payload();
    if (payload.size() < sizeof(Tail)) return fail(ErrorCode::invalid, "it sent a push without its numbers");
    const auto body = payload.subspan(sizeof(Tail));
    float* to = worker.gradients.data();
    std::memcpy(to, payload.data(), sizeof(Tail));
    if ((frame.flags & flag_half) != 0 && body.size() == floats * 2) {
      kernels().from_half(reinterpret_cast<const std::uint16_t*>(body.data()), to + tail_floats, floats);
    } else if ((frame.flags & flag_top) != 0) {
      if (auto sound = expand_top(body, {to + tail_floats, floats}); !sound) return sound;
    } else if (body.size() == floats * sizeof(float)) {
      std::memcpy(to + tail_floats, body.data(), body.size());
    } else {
      return fail(ErrorCode::invalid,
                  fmt::format("it sent {} bytes of gradients for {} floats", body.size(), floats));
    }
  }
  worker.wants_reply = true;
  if (!ready_) return {};  // answered when the chief has started us; the gradients are of an earlier run
  const Tail tail = read_tail(worker.gradients.data());
  const bool chief = connection.worker() == 0;
  if (chief && (frame.flags & flag_finish) != 0) {
    finished_ = true;
    for (Worker& other : workers_)
      if (other.wants_reply) reply(other, flag_finish, tail);
    return {};
  }
  if (finished_) return reply(worker, flag_finish, tail), Result<void>{};
  if (not_finite_ ||
      !std::isfinite(tail.loss)) {  // one worker's trouble ends the run for all, values untouched
    not_finite_ = true;
    for (Worker& other : workers_)
      if (other.wants_reply) reply(other, flag_not_finite, tail);
    return {};
  }

  if (plan_->mode == Mode::sync) {
    if (frame.step != step_) return reply(worker, flag_dropped, tail), Result<void>{};
    worker.pushed = frame.step;
    if (chief && (frame.flags & flag_checkpoint) != 0) saving_ = frame.step + 1;
    finish_step_if_complete();
    return {};
  }
  apply(std::span(worker.gradients).subspan(tail_floats), 1);
  ++worker.clock;
  if (chief && (frame.flags & flag_checkpoint) != 0) save();
  if (plan_->optimizer.steps_total > 0 && step_ >= plan_->optimizer.steps_total) finished_ = true;
  if (plan_->mode == Mode::async || finished_) reply(worker, finished_ ? flag_finish : 0U, tail);
  release_stale();
  return {};
}

void Server::apply(std::span<const float> gradients, std::size_t contributions) {
  if (writer_) writer_->wait_copied();
  if (plan_->mode == Mode::sync && plan_->servers > 1) before_ = values_;
  const float samples = static_cast<float>(plan_->batch) * static_cast<float>(contributions);
  optimizer_->apply(step_, 1.0F / samples, values_, gradients);
  ++step_;
  progress_at_ = Steady::now();
}

void Server::finish_step_if_complete() {
  std::vector<const float*> arrived;
  std::size_t owed = 0;
  for (const Worker& worker : workers_) {
    const bool here = worker.pushed.has_value();
    if (here) arrived.push_back(worker.gradients.data());
    // Before everyone has come once, everyone is owed: a run starts whole.
    const bool may_miss = plan_->lost == LostWorker::drop && worker.has_come && worker.connection == nullptr;
    if (here || !may_miss) ++owed;
  }
  const std::size_t needed = owed - std::min<std::size_t>(owed - 1, plan_->backups);
  if (arrived.empty() || arrived.size() < needed) return;
  const float* gradients = arrived.front();
  if (arrived.size() > 1) {
    kernels().sum(sum_.data(), arrived.data(), arrived.size(), 0, sum_.size());
    gradients = sum_.data();
  }
  const Tail tail = read_tail(gradients);
  apply({gradients + tail_floats, values_.size()}, arrived.size());
  if (saving_ == step_) save();
  for (Worker& worker : workers_) {
    if (!worker.pushed) continue;
    worker.pushed.reset();
    reply(worker, 0, tail);
  }
}

// Answers workers that waited for the slowest, as far as it has caught up.
void Server::release_stale() {
  if (plan_->mode != Mode::stale) return;
  std::uint64_t slowest = ~std::uint64_t{0};
  for (const Worker& worker : workers_)
    if (worker.connection != nullptr) slowest = std::min(slowest, worker.clock);
  for (Worker& worker : workers_)
    if (worker.wants_reply && (finished_ || worker.clock <= slowest + plan_->staleness))
      reply(worker, finished_ ? flag_finish : 0U, {});
}

void Server::reply(Worker& worker, std::uint32_t flags, const Tail& tail) {
  worker.wants_reply = false;
  if (worker.connection == nullptr) return;
  // In a strictly synchronous run values stay as they are until every worker has read them and answered;
  // otherwise a copy goes out.
  const bool shared = plan_->mode == Mode::sync && plan_->backups == 0 && plan_->lost == LostWorker::wait;
  worker.connection->send_values({.kind = FrameKind::values, .flags = flags, .step = step_}, tail, values_,
                                 !shared);
}

void Server::save() {
  if (!writer_) return;
  if (const auto error = writer_->take_error())
    log::warning("server.checkpoint_failed",
                 {{"server", options_.index}, {"why", error->what}, {"try", error->hint}});
  saving_ = step_;
  writer_->start(info(), [this](std::vector<float>& values, std::vector<float>& state) {
    values = values_;
    state.assign(optimizer_->state().begin(), optimizer_->state().end());
  });
}

void Server::drop(ServerConnection& connection, const Error& why) {
  if (connection.closed()) return;
  const int index = connection.worker();
  if (why.code == ErrorCode::unavailable)
    log::info("server.peer_gone", {{"peer", connection.name()}, {"why", why.what}});
  else {
    log::warning("server.peer_refused", {{"peer", connection.name()}, {"why", why.what}});
    connection.refuse(why);
  }
  connection.close();
  if (index < 0 || workers_[static_cast<std::size_t>(index)].connection != &connection) return;
  Worker& worker = workers_[static_cast<std::size_t>(index)];
  worker.connection = nullptr;
  worker.wants_reply = false;
  if (plan_ && ready_ && plan_->mode == Mode::sync && plan_->lost == LostWorker::drop)
    finish_step_if_complete();
  if (plan_ && ready_) release_stale();
}

bool Server::is_over() const {
  if (workers_.empty()) return false;
  return finished_ && std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
           return worker.connection == nullptr || worker.has_left;
         });
}

// A worker that holds everyone up and neither sends nor comes back ends the run with its name.
Result<void> Server::check_worker_timeouts() {
  if (finished_ || Steady::now() - progress_at_ < options_.worker_timeout) return {};
  if (!plan_) return fail(lost("worker 0", "has never come"));
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    if (worker.pushed || worker.wants_reply) continue;
    if (plan_->mode != Mode::sync && worker.connection == nullptr && worker.has_come) continue;
    return fail(lost(fmt::format("worker {}", i), !worker.has_come               ? "has never come"
                                                  : worker.connection == nullptr ? "has not come back"
                                                                                 : "timed out"));
  }
  return {};
}

int Server::poll_timeout() const {
  const Steady::time_point due =
      std::min(stop_.limit(progress_at_ + options_.worker_timeout), acceptor_.deadline());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Steady::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 1, 1000));
}

Result<ServerReport> Server::run() {
  std::vector<pollfd> fds;
  while (!is_over()) {
    const bool stopping = stop_.requested();
    // The workers are being stopped too; give them time to hand in the step they are at and to say so.
    const bool alone = std::none_of(workers_.begin(), workers_.end(),
                                    [](const Worker& worker) { return worker.connection != nullptr; });
    if (stopping && (alone || Steady::now() >= stop_.limit(Steady::time_point::max()))) break;
    fds.assign({{stopping ? -1 : stop_.fd(), POLLIN, 0}});
    acceptor_.add_to(fds);
    const std::size_t first = fds.size();
    for (const ServerConnection& connection : connections_)
      fds.push_back({connection.fd(), connection.events(), 0});
    if (::poll(fds.data(), fds.size(), poll_timeout()) < 0 && errno != EINTR)
      return fail(system_error("cannot wait for workers", errno));
    auto connection = connections_.begin();
    for (std::size_t i = first; i < fds.size(); ++i, ++connection) {
      if ((fds[i].revents & POLLOUT) != 0 && !connection->flush())
        drop(*connection, lost(connection->name(), "closed the connection"));
      if ((fds[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) handle(*connection);
    }
    connections_.remove_if([](const ServerConnection& gone) { return gone.closed(); });
    take_in(acceptor_.step(std::span(fds).subspan(1, first - 1)));
    if (auto heard = check_worker_timeouts(); !heard) return fail(heard.error());
  }
  if (writer_ && ready_) {
    if (auto before = writer_->finish(); !before) return fail(before.error());
    if (writer_->saved_step() != step_ || saving_ != step_) save();
    if (auto saved = writer_->finish(); !saved) return fail(saved.error());
  }
  return ServerReport{step_, finished_};
}

}  // namespace

Result<ServerReport> serve_parameters(Fd listener, const ServerOptions& options, const Stop& stop) {
  return Server(std::move(listener), options, stop).run();
}

}  // namespace slipway::train
