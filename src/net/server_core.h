#pragma once
// What a server's connections share. Exists as long as the last of them, also beyond the Server itself.
#include <functional>
#include <memory>
#include <unordered_set>

#include "net/loop_impl.h"
#include "net/server.h"

namespace slipway::net {

class Connection;

class ServerCore {
 public:
  struct Calls {
    Server::Policy policy;
    Server::Handler handler;
  };

  ServerCore(Loop& loop_of_all, ServerOptions chosen, Calls of_the_user)
      : loop(loop_of_all.impl()),
        options(std::move(chosen)),
        calls(std::make_shared<const Calls>(std::move(of_the_user))),
        scratch_(std::make_unique_for_overwrite<char[]>(scratch_size)) {}

  void add(Connection& connection) { connections.insert(&connection); }
  void remove(Connection& connection) {
    if (connections.erase(&connection) > 0 && on_removed && !loop.closing) on_removed();
  }
  // Where every connection reads: one buffer is enough, for what is read is taken at once.
  asio::mutable_buffer scratch() { return {scratch_.get(), scratch_size}; }

  Loop::Impl& loop;
  const ServerOptions options;
  // Let go when the server stops, for they may own exchanges and so, round about, this. Whoever calls one
  // holds it meanwhile.
  std::shared_ptr<const Calls> calls;
  std::unordered_set<Connection*> connections;
  std::function<void()> on_removed;

 private:
  static constexpr std::size_t scratch_size = 64 * 1024;
  std::unique_ptr<char[]> scratch_;
};

}  // namespace slipway::net
