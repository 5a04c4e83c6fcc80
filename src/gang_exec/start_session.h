#pragma once
// One connection to a start server and the command it asked for.
//
// A peer authenticates within a deadline or is dropped. Its command runs in a process group of its own; when
// the peer disconnects, the group gets SIGTERM, and SIGKILL after the grace. What waits to be sent either way
// has a bound: beyond it the command, or the peer, waits.
#include <poll.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/subprocess.h"
#include "gang_exec/channel.h"

namespace slipway::gang_exec {

struct ServeOptions {
  Duration greeting_max = 10s;  // to authenticate and send the request
  Duration grace = 5s;          // between SIGTERM and SIGKILL
  std::size_t sessions_max = 1024;
  std::size_t unauthenticated_max =
      64;  // connections that have not authenticated; beyond it the oldest is closed
};

class StartSession {
 public:
  StartSession(Fd socket, std::string_view secret, const Environment& own, const ServeOptions& options);

  void add_to(std::vector<::pollfd>& wanted) const;
  // Does all that can be done without waiting, given the poll results for what add_to() asked for.
  void step(std::span<const ::pollfd> seen);
  void leave();  // ends the command as if the peer had disconnected

  bool is_over() const { return phase_ == Phase::over; }
  bool is_unauthenticated() const { return phase_ == Phase::hello || phase_ == Phase::proof; }
  Steady::time_point deadline() const { return deadline_; }  // step() has to be called then

 private:
  enum class Phase { hello, proof, request, running, answering, ending, over };

  void read_peer();
  Result<void> take(Frame frame);
  Result<void> take_hello(const std::string& payload);
  Result<void> take_proof(const std::string& payload);
  Result<void> take_request(const std::string& payload);
  void refuse(const Error& error);
  void run(const StartRequest& request);
  void write_input();
  void read_output(Fd& stream, FrameKind kind);
  void look_for_end();
  void log_end() const;
  bool wants_to_read() const;

  Channel channel_;
  const std::string_view secret_;
  const Environment& own_;
  const ServeOptions& options_;
  Phase phase_ = Phase::hello;
  Steady::time_point deadline_;
  Nonces nonces_;
  std::string request_digest_;
  bool is_plain_ = false;  // see frames.h
  Subprocess child_;
  std::optional<ExitStatus> end_;  // of the child
  std::string program_;            // for the log
  std::string input_;              // waits for the command
  bool input_ended_ = false;
};

}  // namespace slipway::gang_exec
