#pragma once
// A non-blocking TCP connection that carries frames, for whoever polls it; and how it comes to be.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/message_cipher.h"
#include "base/result.h"
#include "gang_exec/frames.h"
#include "gang_exec/gang.h"

namespace slipway::gang_exec {

using Steady = std::chrono::steady_clock;

// Error `conflict` when the port is taken.
Result<Fd> listen_on(const GangNode& node);
// Tries until the deadline while the connection is refused: the node may be starting its server.
Result<Fd> connect_to(const GangNode& node, Steady::time_point deadline);
// TCP keepalive: a peer that vanished is noticed within a minute.
void notice_loss(const Fd& socket);

class Channel {
 public:
  Channel(Fd socket, std::size_t payload_max) : socket_(std::move(socket)), reader_(payload_max) {}
  int fd() const { return socket_.get(); }
  void set_max(std::size_t payload_max) {
    reader_.set_max(payload_max + (opens_ ? MessageCipher::overhead : 0));
  }
  // What is sent from now on, and what is taken with next() from now on, is encrypted; then set_max().
  void encrypt(std::string_view sending_key, std::string_view receiving_key) {
    seals_.emplace(sending_key);
    opens_.emplace(receiving_key);
  }

  // Takes in what has arrived. False when the peer ended or broke the connection.
  bool receive();
  Result<std::optional<Frame>> next();

  void send(FrameKind kind, std::string_view payload);  // queued; flush() and poll for writability
  bool flush();                                         // false when the connection is broken
  std::size_t queued() const { return out_.size() - sent_; }

 private:
  Fd socket_;
  FrameReader reader_;
  std::optional<MessageCipher> seals_, opens_;
  std::string out_;
  std::size_t sent_ = 0;
};

}  // namespace slipway::gang_exec
