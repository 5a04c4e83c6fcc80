#pragma once
// What a server's connections share. Exists as long as the last of them, also beyond the Server itself.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <unordered_set>
#include <utility>

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

  // Who connects: an IPv4 address, or the network of an IPv6 one, of which a client may have any number.
  using Peer = std::array<unsigned char, 8>;
  static Peer peer_of(const asio::ip::address& address) {
    Peer peer{};
    const bool is_4 = address.is_v4() || address.to_v6().is_v4_mapped();
    const auto v4 = address.is_v4() ? address.to_v4().to_bytes() : asio::ip::address_v4::bytes_type{};
    const auto v6 = address.is_v6() ? address.to_v6().to_bytes() : asio::ip::address_v6::bytes_type{};
    if (address.is_v4())
      std::copy(v4.begin(), v4.end(), peer.begin());
    else
      std::copy_n(v6.begin() + (is_4 ? 12 : 0), is_4 ? 4 : 8, peer.begin());
    return peer;
  }
  bool is_full_for(const Peer& peer) const {
    const auto held = connections_of.find(peer);
    return held != connections_of.end() && held->second >= options.connections_per_address_max;
  }

  void add(Connection& connection, const Peer& peer) {
    connections.insert(&connection);
    ++connections_of[peer];
  }
  void remove(Connection& connection, const Peer& peer) {
    if (connections.erase(&connection) == 0) return;
    if (const auto held = connections_of.find(peer); --held->second == 0) connections_of.erase(held);
    if (on_removed && !loop.closing) on_removed();
  }
  // Where every connection reads: one buffer is enough, for what is read is taken at once.
  asio::mutable_buffer scratch() { return {scratch_.get(), scratch_size}; }

  Loop::Impl& loop;
  const ServerOptions options;
  // Let go when the server stops, for they may own exchanges and so, round about, this. Whoever calls one
  // holds it meanwhile.
  std::shared_ptr<const Calls> calls;
  std::unordered_set<Connection*> connections;
  std::map<Peer, std::size_t> connections_of;
  std::function<void()> on_removed;
  // Of all bodies that are here. Taken on the loop's thread, given back on any.
  std::atomic<std::size_t> body_memory = 0;

 private:
  static constexpr std::size_t scratch_size = 64 * 1024;
  std::unique_ptr<char[]> scratch_;
};

// What one body takes of the memory that all of them may have together. Not kept longer than the core.
class BodyMemory {
 public:
  explicit BodyMemory(ServerCore& core) : core_(&core) {}
  BodyMemory(BodyMemory&& other) noexcept : core_(other.core_), held_(std::exchange(other.held_, 0)) {}
  BodyMemory& operator=(BodyMemory&&) = delete;
  ~BodyMemory() { core_->body_memory -= held_; }
  // From now on this many bytes; false, and nothing is changed, where they are not left.
  bool hold(std::size_t bytes) {
    if (core_->body_memory - held_ + bytes > core_->options.body_memory_max) return false;
    core_->body_memory += bytes - held_;
    held_ = bytes;
    return true;
  }

 private:
  ServerCore* core_;
  std::size_t held_ = 0;
};

}  // namespace slipway::net
