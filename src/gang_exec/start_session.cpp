#include "gang_exec/start_session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/hmac.h"
#include "base/log.h"
#include "base/random.h"
#include "base/sha256.h"

namespace slipway::gang_exec {
namespace {

constexpr std::size_t session_waiting_max = 256u << 10;  // bytes, each way
constexpr auto never = Steady::time_point::max();

// What the log calls a command: its program, without the arguments, which may hold secrets.
std::string program_of(const std::vector<std::string>& argv) {
  std::string_view line = argv.front();
  if (argv.size() == 3 && argv[0] == "/bin/sh" && argv[1] == "-c") line = argv[2];
  // What a launcher sets up first is not what it runs.
  if (const std::size_t last = line.rfind("; exec "); last != std::string_view::npos)
    line.remove_prefix(last + 2);
  if (line.starts_with("exec ")) line.remove_prefix(5);
  line.remove_prefix(std::min(line.find_first_not_of(" \"'"), line.size()));
  return std::string(line.substr(0, std::min<std::size_t>(line.find_first_of(" \"';\n"), 80)));
}

}  // namespace

StartSession::StartSession(Fd socket, std::string_view secret, const Environment& own,
                           const ServeOptions& options)
    : channel_(std::move(socket), greeting_max),
      secret_(secret),
      own_(own),
      options_(options),
      deadline_(Steady::now() + options.greeting_max) {}

bool StartSession::wants_to_read() const {
  return phase_ != Phase::running || input_.size() < session_waiting_max;
}

void StartSession::add_to(std::vector<::pollfd>& wanted) const {
  const auto add = [&](const Fd& fd, short events) {
    if (fd) wanted.push_back({fd.get(), events, 0});
  };
  if (phase_ != Phase::ending) {
    const int events = POLLRDHUP | (wants_to_read() ? POLLIN : 0) | (channel_.queued() > 0 ? POLLOUT : 0);
    wanted.push_back({channel_.fd(), static_cast<short>(events), 0});
  }
  if (phase_ != Phase::running && phase_ != Phase::ending) return;
  if (!input_.empty()) add(child_.input, POLLOUT);
  if (channel_.queued() < session_waiting_max || phase_ == Phase::ending) {
    add(child_.output, POLLIN);
    add(child_.error_output, POLLIN);
  }
  if (!end_) add(child_.exited, POLLIN);
}

void StartSession::step(std::span<const ::pollfd> seen) {
  const bool is_due = Steady::now() >= deadline_;
  if (!is_due &&
      std::all_of(seen.begin(), seen.end(), [](const ::pollfd& each) { return each.revents == 0; }))
    return;
  if (phase_ != Phase::ending) {
    // Input sent before the disconnect is still used; no answer can be delivered.
    if (wants_to_read()) read_peer();
    const bool is_gone = (seen.front().revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    if (!channel_.flush() || is_gone) leave();
  }
  if (phase_ == Phase::running || phase_ == Phase::ending) {
    write_input();
    read_output(child_.output, FrameKind::output);
    read_output(child_.error_output, FrameKind::error_output);
    look_for_end();
    if (phase_ == Phase::running && !channel_.flush()) leave();
  }
  if (phase_ == Phase::answering && (!channel_.flush() || channel_.queued() == 0)) phase_ = Phase::over;
  if (!is_due || phase_ == Phase::over) return;
  if (phase_ == Phase::ending) {
    child_.kill_tree();
    log_end();
  }
  phase_ = Phase::over;
}

void StartSession::read_peer() {
  if (!channel_.receive()) return leave();
  while (phase_ != Phase::ending && phase_ != Phase::over && phase_ != Phase::answering) {
    auto frame = channel_.next();
    if (frame && !*frame) return;
    const Result<void> taken = frame ? take(std::move(**frame)) : Result<void>(fail(frame.error()));
    if (!taken) return refuse(taken.error());
  }
}

// An unauthenticated peer gets no reason; one of the gang does.
void StartSession::refuse(const Error& error) {
  const bool is_known = !is_unauthenticated();
  // Port scanners must not be able to fill the log.
  const bool is_warning = is_known || error.code == ErrorCode::denied;
  log::write(is_warning ? log::Level::warning : log::Level::debug, "start.refused", {{"why", error.what}});
  if (phase_ == Phase::running) return leave();
  if (!is_known) {
    phase_ = Phase::over;
    return;
  }
  channel_.send(FrameKind::refused, error.what);
  phase_ = Phase::answering;
}

Result<void> StartSession::take(Frame frame) {
  switch (phase_) {
    case Phase::hello:
      if (frame.kind == FrameKind::hello) return take_hello(frame.payload);
      break;
    case Phase::proof:
      if (frame.kind == FrameKind::proof) return take_proof(frame.payload);
      break;
    case Phase::request:
      if (frame.kind == FrameKind::request) return take_request(frame.payload);
      break;
    case Phase::running:
      if (frame.kind == FrameKind::input_end) return input_ended_ = true, Result<void>{};
      if (frame.kind != FrameKind::input) break;
      if (child_.input) input_ += frame.payload;  // else the command has closed it
      return {};
    default: break;
  }
  return fail(ErrorCode::invalid, "protocol error: unexpected frame from a peer");
}

Result<void> StartSession::take_hello(const std::string& payload) {
  const auto trusted = own_.find("SLIPWAY_TRUSTED_NETWORK");
  is_plain_ = trusted != own_.end() && trusted->second == "1" && payload.starts_with(plain_hello_line);
  if (payload.size() != hello_line.size() + nonce_size || (!is_plain_ && !payload.starts_with(hello_line)))
    return fail(ErrorCode::invalid, "protocol error: unknown greeting from a peer");
  nonces_ = {payload.substr(hello_line.size()), random_hex(nonce_size / 2)};
  channel_.send(FrameKind::challenge, nonces_.server + server_proof(secret_, nonces_));
  phase_ = Phase::proof;
  return {};
}

Result<void> StartSession::take_proof(const std::string& payload) {
  if (payload.size() != 2 * mac_size)
    return fail(ErrorCode::invalid, "protocol error: unknown greeting from a peer");
  request_digest_ = payload.substr(0, mac_size);
  if (!is_equal_in_constant_time(payload.substr(mac_size), client_proof(secret_, nonces_, request_digest_)))
    return fail(ErrorCode::denied, "a peer does not know the secret of this attempt");
  if (!is_plain_) channel_.encrypt(server_key(secret_, nonces_), client_key(secret_, nonces_));
  channel_.set_max(request_max);
  phase_ = Phase::request;
  return {};
}

Result<void> StartSession::take_request(const std::string& payload) {
  if (sha256_hex(payload) != request_digest_)
    return fail(ErrorCode::invalid, "the request was changed on its way");
  auto request = parse_request(payload);
  if (!request) return fail(request.error());
  channel_.set_max(data_max);
  run(*request);
  return {};
}

void StartSession::run(const StartRequest& request) {
  program_ = program_of(request.argv);
  auto child = Subprocess::start({.argv = request.argv,
                                  .environment = merge(own_, request.variables),
                                  .input = Stdio::pipe,
                                  .output = Stdio::pipe,
                                  .error_output = Stdio::pipe});
  if (!child) return refuse(child.error());
  child_ = std::move(*child);
  phase_ = Phase::running;
  deadline_ = never;
  log::info("start.began", {{"pid", child_.pid()}, {"program", program_}});
}

void StartSession::write_input() {
  while (child_.input && !input_.empty()) {
    const ssize_t size = ::write(child_.input.get(), input_.data(), input_.size());
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size < 0) {
      child_.input.reset();
      input_.clear();
      return;
    }
    input_.erase(0, static_cast<std::size_t>(size));
  }
  if (input_ended_ && input_.empty()) child_.input.reset();
}

void StartSession::read_output(Fd& stream, FrameKind kind) {
  if (!stream || (phase_ == Phase::running && channel_.queued() >= session_waiting_max)) return;
  char piece[data_max];
  const ssize_t size = ::read(stream.get(), piece, sizeof piece);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0)
    stream.reset();
  else if (phase_ == Phase::running)
    channel_.send(kind, {piece, static_cast<std::size_t>(size)});
}

// As ssh has it: over when the command has ended and nobody can write to its output any more.
void StartSession::look_for_end() {
  if (!end_) end_ = child_.exit_status();
  if (!end_ || child_.output || child_.error_output) return;
  log_end();
  if (phase_ == Phase::ending) {
    child_.signal_group(SIGKILL);
    phase_ = Phase::over;
    return;
  }
  channel_.send(FrameKind::ended, format_end(*end_));
  phase_ = Phase::answering;
}

void StartSession::log_end() const {
  log::info("start.ended", {{"pid", child_.pid()},
                            {"program", program_},
                            {"exit_code", end_ ? end_->exit_code() : 128 + SIGKILL}});
}

void StartSession::leave() {
  if (phase_ == Phase::ending || phase_ == Phase::over) return;
  if (phase_ != Phase::running) {
    phase_ = Phase::over;
    return;
  }
  phase_ = Phase::ending;
  child_.input.reset();
  child_.signal_group(SIGTERM);
  child_.signal_group(SIGCONT);  // a stopped process would not handle it
  deadline_ = Steady::now() + options_.grace;
}

}  // namespace slipway::gang_exec
