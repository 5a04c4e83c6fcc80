// The worker's side of the parameter servers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <thread>

#include "base/log.h"
#include "base/random.h"
#include "train/exchange/connection.h"
#include "train/exchange/exchange.h"
#include "train/nn/kernels.h"

namespace slipway::train {
namespace {

constexpr std::uint64_t any_step = ~std::uint64_t{0};

struct Welcome {
  bool ready = false;
  std::uint64_t step = 0;
  std::set<std::uint64_t> saved;
};

class ServersExchange final : public Exchange {
 public:
  explicit ServersExchange(ServersOptions options)
      : options_(std::move(options)),
        plan_text_(format_plan(options_.plan)),
        gradients_(options_.plan.floats),
        incoming_(options_.plan.floats),
        random_(mix_seed()) {
    if (options_.compression.kind == Compression::Kind::top) rest_.resize(options_.plan.floats);
    for (std::uint32_t i = 0; i < options_.plan.servers; ++i) {
      servers_.push_back({.name = fmt::format("parameter server {} ({})", i, to_string(options_.servers[i])),
                          .slice = server_slice(options_.plan.floats, options_.plan.servers, i)});
    }
  }

  Result<void> join(WorkerState& state) override;
  std::span<float> gradients(std::uint64_t) override { return gradients_; }
  Result<StepOutcome> step(WorkerState& state, const StepReport& report) override;
  bool servers_keep_state() const override { return true; }
  void leave(bool finished) override;

 private:
  struct Server {
    std::string name;
    Range slice;
    Connection connection = {};
    std::string packed = {};  // compressed gradients on their way
  };

  bool is_chief() const { return options_.worker == 0; }
  bool is_sync() const { return options_.plan.mode == Mode::sync; }
  std::uint64_t mix_seed() const { return options_.plan.seed * 1000 + options_.worker; }

  Result<void> send(Server& server, Frame frame, std::span<iovec> payload);
  Result<void> send_text(Server& server, Frame frame, std::string_view text);
  // The next frame's header; a refusal becomes the error it carries.
  Result<Frame> receive(Server& server);
  Result<Welcome> receive_welcome(Server& server);
  Result<Frame> receive_values(Server& server, Tail& tail);
  Result<Welcome> introduce(Server& server);
  Result<void> join_once(WorkerState& state);
  Result<void> start_servers(WorkerState& state, std::vector<Welcome> found);
  Result<void> start_each(WorkerState& state, std::vector<Welcome>& found);
  Result<bool> restore_all(std::vector<Welcome>& found, std::uint64_t step);
  Result<void> give_values(Server& server, const WorkerState& state);
  Result<void> pull_all(WorkerState& state);
  Result<void> push(Server& server, std::uint64_t step, std::uint32_t flags, const Tail& tail);

  ServersOptions options_;
  std::string plan_text_;
  std::vector<Server> servers_;
  Flat gradients_, incoming_;
  std::vector<float> rest_;
  Random random_;
};

Result<void> ServersExchange::send(Server& server, Frame frame, std::span<iovec> payload) {
  frame.sender = options_.worker;
  for (const iovec& part : payload) frame.bytes += part.iov_len;
  auto header = format_frame(frame);
  std::vector<iovec> parts = {{header.data(), header.size()}};
  parts.insert(parts.end(), payload.begin(), payload.end());
  return send_all(server.connection, parts, server.name, options_.wait_limit);
}

Result<void> ServersExchange::send_text(Server& server, Frame frame, std::string_view text) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  return send(server, frame, {&part, 1});
}

Result<Frame> ServersExchange::receive(Server& server) {
  std::array<std::uint8_t, frame_bytes> header{};
  if (auto got =
          receive_all(server.connection, header.data(), header.size(), server.name, options_.wait_limit);
      !got)
    return fail(got.error());
  auto frame = parse_frame(header);
  if (!frame) return fail(frame.error().code, server.name + ": " + frame.error().what, frame.error().hint);
  if (frame->kind == FrameKind::refuse && frame->bytes <= 64 * 1024) {
    std::string why(static_cast<std::size_t>(frame->bytes), '\0');
    if (auto got = receive_all(server.connection, why.data(), why.size(), server.name, options_.wait_limit);
        !got)
      return fail(got.error());
    return fail(refused_by(server.name, why));
  }
  return frame;
}

Result<Welcome> ServersExchange::receive_welcome(Server& server) {
  auto frame = receive(server);
  if (!frame) return fail(frame.error());
  if (frame->kind != FrameKind::welcome || frame->bytes > 64 * 1024)
    return fail(ErrorCode::invalid, server.name + " did not answer with a welcome");
  std::string text(static_cast<std::size_t>(frame->bytes), '\0');
  if (auto got = receive_all(server.connection, text.data(), text.size(), server.name, options_.wait_limit);
      !got)
    return fail(got.error());
  Welcome welcome{(frame->flags & flag_ready) != 0, frame->step, {}};
  for (std::size_t at = text.find(' '); at < text.size(); at = text.find(' ', at)) {
    std::uint64_t step = 0;
    const auto [end, error] = std::from_chars(text.data() + ++at, text.data() + text.size(), step);
    if (error == std::errc()) welcome.saved.insert(step);
    at = static_cast<std::size_t>(end - text.data());
  }
  return welcome;
}

Result<Frame> ServersExchange::receive_values(Server& server, Tail& tail) {
  auto frame = receive(server);
  if (!frame) return fail(frame.error());
  const std::size_t size = (server.slice.end - server.slice.begin) * sizeof(float);
  if (frame->kind != FrameKind::values || frame->bytes != sizeof tail + size)
    return fail(ErrorCode::invalid, server.name + " did not answer with values of this model");
  auto got = receive_all(server.connection, &tail, sizeof tail, server.name, options_.wait_limit);
  if (got)
    got = receive_all(server.connection, incoming_.data() + server.slice.begin, size, server.name,
                      options_.wait_limit);
  if (!got) return fail(got.error());
  return frame;
}

Result<Welcome> ServersExchange::introduce(Server& server) {
  const auto index = static_cast<std::size_t>(&server - servers_.data());
  auto fd = connect_to(options_.servers[index], server.name, options_.wait_limit);
  if (!fd) return fail(fd.error());
  server.connection = Connection(std::move(*fd));
  if (auto known = authenticate(server.connection, options_.key, server.name, options_.wait_limit); !known)
    return fail(known.error());
  if (auto sent = send_text(server, {.kind = FrameKind::hello}, plan_text_); !sent) return fail(sent.error());
  return receive_welcome(server);
}

Result<void> ServersExchange::give_values(Server& server, const WorkerState& state) {
  const Range& slice = server.slice;
  iovec part{const_cast<float*>(state.values.data() + slice.begin),
             (slice.end - slice.begin) * sizeof(float)};
  if (auto sent = send(server, {.kind = FrameKind::start, .step = state.step}, {&part, 1}); !sent)
    return sent;
  const auto welcome = receive_welcome(server);
  if (!welcome) return fail(welcome.error());
  return {};
}

// True when every server now has `step`; a server that cannot load it loses it from its list.
Result<bool> ServersExchange::restore_all(std::vector<Welcome>& found, std::uint64_t step) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (found[i].ready && found[i].step == step) continue;
    if (auto sent =
            send_text(servers_[i], {.kind = FrameKind::start, .flags = flag_restore, .step = step}, "");
        !sent)
      return fail(sent.error());
    auto now = receive_welcome(servers_[i]);
    if (!now && now.error().code == ErrorCode::conflict) {
      log::warning("servers.checkpoint_passed_over",
                   {{"server", i}, {"step", step}, {"why", now.error().what}});
      found[i].saved.erase(step);
      return false;
    }
    if (!now) return fail(now.error());
    found[i].ready = now->ready;
    found[i].step = now->step;
  }
  return true;
}

// Only the chief: sees to it that all servers have values, and in a synchronous run those of one step.
Result<void> ServersExchange::start_servers(WorkerState& state, std::vector<Welcome> found) {
  if (!is_sync()) return start_each(state, found);
  const auto level = [&] {
    return std::all_of(found.begin(), found.end(), [&](const Welcome& server) {
      return server.ready && server.step + 1 >= found[0].step && server.step <= found[0].step + 1;
    });
  };
  while (!level()) {
    std::set<std::uint64_t> common;
    for (Welcome& server : found) {
      if (server.ready) server.saved.insert(server.step);
      if (&server == found.data()) common = server.saved;
      std::erase_if(common, [&](std::uint64_t step) { return !server.saved.contains(step); });
    }
    if (common.empty()) {
      if (state.step > 0)
        log::warning("servers.started_again",
                     {{"step", state.step}, {"lost", "the optimizer's memory; values are kept"}});
      for (Server& server : servers_)
        if (auto given = give_values(server, state); !given) return given;
      return {};
    }
    const auto restored = restore_all(found, *common.rbegin());
    if (!restored) return fail(restored.error());
    if (*restored) return {};
  }
  return {};
}

// Asynchronous servers need not agree: each goes on from its own newest checkpoint.
Result<void> ServersExchange::start_each(WorkerState& state, std::vector<Welcome>& found) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    Server& server = servers_[i];
    while (!found[i].ready && !found[i].saved.empty()) {
      const std::uint64_t newest = *found[i].saved.rbegin();
      found[i].saved.erase(newest);
      if (auto sent =
              send_text(server, {.kind = FrameKind::start, .flags = flag_restore, .step = newest}, "");
          !sent)
        return sent;
      const auto now = receive_welcome(server);
      if (now)
        found[i].ready = true;
      else if (now.error().code != ErrorCode::conflict)
        return fail(now.error());
      else
        log::warning("servers.checkpoint_passed_over",
                     {{"server", i}, {"step", newest}, {"why", now.error().what}});
    }
    if (!found[i].ready)
      if (auto given = give_values(server, state); !given) return given;
  }
  return {};
}

Result<void> ServersExchange::pull_all(WorkerState& state) {
  const Steady::time_point deadline = Steady::now() + options_.wait_limit.timeout;
  for (auto wait = std::chrono::milliseconds(1);; wait = std::min(wait * 2, std::chrono::milliseconds(50))) {
    std::uint64_t lowest = any_step, highest = 0;
    std::vector<std::uint64_t> steps;
    const auto ask = [&](Server& server, std::uint64_t wanted) -> Result<Frame> {
      if (auto sent = send_text(server, {.kind = FrameKind::pull, .step = wanted}, ""); !sent)
        return fail(sent.error());
      Tail unused;
      return receive_values(server, unused);
    };
    for (Server& server : servers_) {
      const auto frame = ask(server, any_step);
      if (!frame) return fail(frame.error());
      steps.push_back(frame->step);
      lowest = std::min(lowest, frame->step);
      highest = std::max(highest, frame->step);
    }
    bool level = !is_sync() || lowest == highest;
    if (!level && highest == lowest + 1) {  // a worker died between two servers: do that step again
      level = true;
      for (std::size_t i = 0; i < servers_.size() && level; ++i) {
        if (steps[i] == lowest) continue;
        const auto frame = ask(servers_[i], lowest);
        if (!frame) return fail(frame.error());
        level = frame->step == lowest;
      }
    }
    if (level) {
      state.values.swap(incoming_);
      state.step = is_sync() ? lowest : steps[0];
      return {};
    }
    if (Steady::now() >= deadline ||
        (options_.wait_limit.stop != nullptr && options_.wait_limit.stop->requested()))
      return fail(
          lost("the chief, worker 0,",
               fmt::format("has not brought the servers together (steps {} to {})", lowest, highest)));
    // Servers are between two steps, or the chief is on its way: look again soon, not all workers at once.
    std::this_thread::sleep_for(wait + std::chrono::microseconds(random_.between(0, 1000)));
  }
}

// A server that has just died may still take connections, and one that is starting may drop them: as long as
// there is time, a peer that goes away while we join is tried again.
Result<void> ServersExchange::join(WorkerState& state) {
  const Steady::time_point deadline = Steady::now() + options_.wait_limit.timeout;
  for (;;) {
    auto joined = join_once(state);
    const bool stopped = options_.wait_limit.stop != nullptr && options_.wait_limit.stop->requested();
    if (joined || joined.error().code != ErrorCode::unavailable || stopped || Steady::now() >= deadline)
      return joined;
    std::this_thread::sleep_for(std::chrono::milliseconds(1) +
                                std::chrono::microseconds(random_.between(0, 4000)));
  }
}

Result<void> ServersExchange::join_once(WorkerState& state) {
  std::vector<Welcome> found;
  for (Server& server : servers_) {
    auto welcome = introduce(server);
    if (!welcome) return fail(welcome.error());
    found.push_back(std::move(*welcome));
  }
  if (is_chief())
    if (auto started = start_servers(state, std::move(found)); !started) return started;
  return pull_all(state);
}

Result<void> ServersExchange::push(Server& server, std::uint64_t step, std::uint32_t flags,
                                   const Tail& tail) {
  const std::size_t count = server.slice.end - server.slice.begin;
  const float* from = gradients_.data() + server.slice.begin;
  iovec parts[2] = {{const_cast<Tail*>(&tail), sizeof tail},
                    {const_cast<float*>(from), count * sizeof(float)}};
  if (options_.compression.kind == Compression::Kind::half) {
    server.packed.resize(count * 2);
    kernels().to_half(from, reinterpret_cast<std::uint16_t*>(server.packed.data()), count);
    flags |= flag_half;
    parts[1] = {server.packed.data(), server.packed.size()};
  } else if (options_.compression.kind == Compression::Kind::top) {
    compress_top({from, count}, std::span(rest_).subspan(server.slice.begin, count),
                 options_.compression.share, server.packed);
    flags |= flag_top;
    parts[1] = {server.packed.data(), server.packed.size()};
  }
  return send(server, {.kind = FrameKind::push, .flags = flags, .step = step}, parts);
}

Result<StepOutcome> ServersExchange::step(WorkerState& state, const StepReport& report) {
  std::uint32_t flags = 0;
  if (report.checkpoint) flags |= flag_checkpoint;
  if (report.tail.finish > 0) flags |= flag_finish;
  if (report.tail.stop > 0) flags |= flag_stop;
  for (Server& server : servers_)
    if (auto sent = push(server, state.step, flags, report.tail); !sent) return fail(sent.error());
  report.meanwhile();
  StepOutcome outcome{.tail = report.tail, .stop = report.tail.stop > 0};
  std::uint64_t step = 0;
  for (Server& server : servers_) {
    Tail tail;
    const auto frame = receive_values(server, tail);
    if (!frame) return fail(frame.error());
    if (&server == servers_.data()) {
      step = frame->step;
      if (is_sync() && (frame->flags & flag_dropped) == 0) outcome.tail = tail;
    } else if (is_sync() && frame->step != step) {
      return fail(lost(server.name, fmt::format("is at step {}, another at {}", frame->step, step)));
    }
    outcome.finish = outcome.finish || (frame->flags & flag_finish) != 0;
    outcome.not_finite = outcome.not_finite || (frame->flags & flag_not_finite) != 0;
  }
  outcome.applied = !outcome.not_finite && !(outcome.finish && is_sync());
  state.values.swap(incoming_);
  state.step = step;
  return outcome;
}

void ServersExchange::leave(bool finished) {
  for (Server& server : servers_) {
    if (!server.connection) continue;
    // A server that is gone already needs no notice.
    static_cast<void>(
        send_text(server, {.kind = FrameKind::bye, .flags = finished ? std::uint32_t{flag_finish} : 0}, ""));
    server.connection.close();
  }
}

}  // namespace

std::unique_ptr<Exchange> make_servers_exchange(ServersOptions options) {
  return std::make_unique<ServersExchange>(std::move(options));
}

}  // namespace slipway::train
