#include "gang_exec/start_remote.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/hmac.h"
#include "base/random.h"
#include "base/sha256.h"
#include "gang_exec/channel.h"
#include "gang_exec/report.h"

namespace slipway::gang_exec {
namespace {

constexpr auto connect_max = 10s;
constexpr auto greeting_max_time = 10s;
constexpr std::size_t waiting_max = 256u << 10;

// The next frame of a peer that has to answer soon.
Result<Frame> expect(Channel& channel, const GangNode& node, Steady::time_point deadline) {
  const auto unavailable = [&](const char* what) {
    return fail(ErrorCode::unavailable,
                fmt::format("node {} at {} port {} {}", node.name, node.address, node.port, what),
                "another program may have taken the port, or the secret of the attempts differs");
  };
  for (;;) {
    auto frame = channel.next();
    if (!frame) return unavailable("sent a protocol error");
    if (*frame) return std::move(**frame);
    if (!channel.flush()) return unavailable("closed the connection");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
    ::pollfd wanted{channel.fd(), static_cast<short>(POLLIN | (channel.queued() > 0 ? POLLOUT : 0)), 0};
    if (left <= 0 || ::poll(&wanted, 1, static_cast<int>(left)) == 0) return unavailable("does not answer");
    if ((wanted.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !channel.receive())
      return unavailable("closed the connection");
  }
}

// Both sides authenticate; then the request is sent.
Result<void> authenticate(Channel& channel, const Gang& gang, const GangNode& node,
                          const StartRequest& request) {
  const auto deadline = Steady::now() + greeting_max_time;
  const std::string payload = format_request(request);
  if (payload.size() > request_max)
    return fail(ErrorCode::too_large,
                fmt::format("the command and its environment have {} bytes; at most {} can be sent",
                            payload.size(), request_max));
  Nonces nonces{random_hex(nonce_size / 2), {}};
  channel.send(FrameKind::hello,
               std::string(gang.trusts_network ? plain_hello_line : hello_line) + nonces.client);
  const auto challenge = expect(channel, node, deadline);
  if (!challenge) return fail(challenge.error());
  const std::string_view answer = challenge->payload;
  if (challenge->kind == FrameKind::challenge && answer.size() == nonce_size + mac_size)
    nonces.server = answer.substr(0, nonce_size);
  if (nonces.server.empty() ||
      !is_equal_in_constant_time(answer.substr(nonce_size), server_proof(gang.secret, nonces)))
    return fail(ErrorCode::denied, fmt::format("what listens at {} port {} is not node {} of this attempt",
                                               node.address, node.port, node.name));
  const std::string digest = sha256_hex(payload);
  channel.send(FrameKind::proof, digest + client_proof(gang.secret, nonces, digest));
  if (!gang.trusts_network) channel.encrypt(client_key(gang.secret, nonces), server_key(gang.secret, nonces));
  channel.send(FrameKind::request, payload);
  channel.set_max(data_max);
  return {};
}

class Relay {  // between the streams of this process and the command's
 public:
  Relay(Channel& channel, const GangNode& node, bool reads_input)
      : channel_(channel), node_(node), reads_input_(reads_input) {
    if (!reads_input_) channel_.send(FrameKind::input_end, {});
  }

  Result<ExitStatus> run() {
    for (;;) {
      auto frame = channel_.next();
      if (!frame)
        return fail(ErrorCode::internal, fmt::format("node {}: {}", node_.name, frame.error().what));
      if (*frame) {
        if ((*frame)->kind == FrameKind::ended) return parse_end((*frame)->payload);
        if (auto taken = take(**frame); !taken) return fail(taken.error());
        continue;
      }
      if (!channel_.flush() || !wait())
        return fail(ErrorCode::unavailable, fmt::format("the connection to node {} was lost", node_.name),
                    "its part of the task may have ended; its log on that node says why");
    }
  }

 private:
  static Result<void> take(const Frame& frame) {
    if (frame.kind == FrameKind::output) return write_all(STDOUT_FILENO, frame.payload, "standard output");
    if (frame.kind == FrameKind::error_output)
      return write_all(STDERR_FILENO, frame.payload, "standard error");
    if (frame.kind == FrameKind::refused) return fail(ErrorCode::denied, frame.payload);
    return fail(ErrorCode::internal, "protocol error: unexpected frame from the node");
  }

  bool wait() {
    const bool wants_input = reads_input_ && channel_.queued() < waiting_max;
    const auto events = static_cast<short>(POLLIN | (channel_.queued() > 0 ? POLLOUT : 0));
    ::pollfd wanted[] = {{channel_.fd(), events, 0}, {wants_input ? STDIN_FILENO : -1, POLLIN, 0}};
    if (::poll(wanted, 2, -1) < 0) return errno == EINTR;
    if ((wanted[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !channel_.receive()) return false;
    if (wanted[1].revents != 0) read_input();
    return true;
  }

  void read_input() {
    char piece[16 * 1024];
    const ssize_t size = ::read(STDIN_FILENO, piece, sizeof piece);
    if (size > 0) return channel_.send(FrameKind::input, {piece, static_cast<std::size_t>(size)});
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    reads_input_ = false;
    channel_.send(FrameKind::input_end, {});
  }

  Channel& channel_;
  const GangNode& node_;
  bool reads_input_;
};

Result<int> start_on(const Gang& gang, const GangNode& node, const RemoteCommand& command,
                     const Environment& variables) {
  auto socket = connect_to(node, Steady::now() + connect_max);
  if (!socket) return fail(socket.error());
  Channel channel(std::move(*socket), greeting_max);
  const StartRequest request{{"/bin/sh", "-c", command.line}, to_send(variables)};
  if (auto authenticated = authenticate(channel, gang, node, request); !authenticated)
    return fail(authenticated.error());
  const auto end = Relay(channel, node, command.reads_input).run();
  if (!end) return fail(end.error());
  return end->exit_code();
}

}  // namespace

Result<RemoteCommand> parse_remote_command(const std::vector<std::string>& words) {
  RemoteCommand command;
  std::size_t at = 0;
  for (; at < words.size() && words[at].size() > 1 && words[at][0] == '-'; ++at) {
    const std::string& flag = words[at];
    if (flag == "--") {
      ++at;
      break;
    }
    if (flag == "-n") command.reads_input = false;
    const bool is_plain = flag.find_first_not_of("nqxXaTtkv46AC", 1) == std::string::npos;
    const bool has_value = std::string_view("lopiFe").find(flag[1]) != std::string_view::npos;
    if (!is_plain && !has_value)
      return fail(ErrorCode::invalid, fmt::format("start-remote has no flag {}", flag),
                  "slipway node start-remote HOST CMD ARG…");
    if (has_value && flag.size() == 2) ++at;  // -l user; -luser has it inside
  }
  if (at < words.size()) command.host = words[at++];
  for (; at < words.size(); ++at) command.line += (command.line.empty() ? "" : " ") + words[at];
  if (command.host.empty() || command.line.empty())
    return fail(ErrorCode::invalid, "start-remote needs a host and a command",
                "slipway node start-remote lab-2 nvidia-smi");
  return command;
}

std::optional<Error> missing_daemon(const std::string& line, const std::string& node) {
  struct Daemon {
    const char* name;
    const char* package;
  };
  static constexpr Daemon daemons[] = {{"orted", "openmpi-bin"},
                                       {"prted", "prrte"},
                                       {"hydra_pmi_proxy", "mpich"},
                                       {"hydra_bstrap_proxy", "Intel MPI"}};
  for (const Daemon& daemon : daemons)
    if (line.find(daemon.name) != std::string::npos)
      return Error{ErrorCode::not_found, fmt::format("{} cannot be run on node {}", daemon.name, node),
                   fmt::format("install {} on {}, the same version as on the first node, or put it on PATH",
                               daemon.package, node)};
  return std::nullopt;
}

int start_remote(const std::vector<std::string>& words) {
  const auto command = parse_remote_command(words);
  if (!command) return report(command.error(), not_started);
  const Environment variables = read_environment();
  const auto gang = parse_gang(variables);
  if (!gang) return report(gang.error(), not_started);
  const auto index = find_node(*gang, command->host);
  if (!index) return report(index.error(), not_started);
  const GangNode& node = gang->nodes[*index];
  if (*index == gang->own) {
    ::execl("/bin/sh", "sh", "-c", command->line.c_str(), nullptr);
    return report(system_error("cannot start /bin/sh", errno), not_started);
  }
  const pid_t caller = ::getppid();
  const auto code = start_on(*gang, node, *command, variables);
  // mpirun may end before its daemons do; then the task is over, and losing them changes nothing.
  if (!code && ::getppid() != caller) return not_started;
  if (!code) return report(code.error(), not_started);
  if (*code == 126 || *code == 127)
    if (const auto missing = missing_daemon(command->line, node.name)) return report(*missing, *code);
  return *code;
}

}  // namespace slipway::gang_exec
