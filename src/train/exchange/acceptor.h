#pragma once
// Takes connections until their peers have said hello; nothing that others do keeps a peer of the run
// waiting. Whoever has not said it within `hello_timeout`, or is the oldest of too many, is dropped.
#include <poll.h>

#include <list>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/exchange/handshake.h"
#include "train/exchange/server_connection.h"
#include "train/exchange/socket.h"

namespace slipway::train {

class Acceptor {
 public:
  static constexpr std::size_t waiting_max = 64;
  static constexpr std::size_t hello_max = 64 * 1024;

  // The listener stays its owner's.
  Acceptor(int listener, GangKey key, Steady::duration hello_timeout = std::chrono::seconds(10))
      : listener_(listener), key_(std::move(key)), hello_timeout_(hello_timeout) {}

  // What to poll, and what came of it: peers whose frame() and text() are their hello.
  void add_to(std::vector<::pollfd>& wanted) const;
  std::list<ServerConnection> step(std::span<const ::pollfd> seen);
  Steady::time_point deadline() const;  // of the oldest that waits

  // Until at least one has come.
  Result<std::list<ServerConnection>> next(const std::string& waiting_for, const WaitLimit& wait_limit);

 private:
  struct Waiting {
    std::list<ServerConnection> peer;  // of one, so that it can be handed on
    Steady::time_point until;
  };
  void accept();
  Result<bool> has_said_hello(ServerConnection& peer);

  int listener_;
  GangKey key_;
  Steady::duration hello_timeout_;
  std::list<Waiting> waiting_;  // the oldest first
};

}  // namespace slipway::train
