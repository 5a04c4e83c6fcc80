#pragma once
// The accepting side of a connection, for whoever polls it: frames in pieces as they arrive, answers in
// pieces as the socket takes them. Where there is a gang key, frames come only from a peer that has proved to
// know it.
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/exchange/connection.h"
#include "train/exchange/frame.h"
#include "train/exchange/handshake.h"

namespace slipway::train {

class ServerConnection {
 public:
  ServerConnection(Connection connection, std::string name, const GangKey& key);
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  // Reads on. True: a header is complete and expect() or expect_into() is wanted (has_payload() is false), or
  // the whole frame is (has_payload() is true); then call next(). False: nothing more has arrived.
  Result<bool> receive();
  bool has_payload() const { return state_ == State::payload; }
  // Where the payload goes: a buffer of our own, refused above `most` bytes, or memory of the right size.
  Result<void> expect(std::size_t most);
  Result<void> expect_into(void* to);
  void next();

  const Frame& frame() const { return frame_; }
  // Empty when it was received in place.
  std::span<const std::uint8_t> payload() const {
    return in_place_ ? std::span<const std::uint8_t>() : std::span(buffer_);
  }
  std::string_view text() const { return {reinterpret_cast<const char*>(buffer_.data()), buffer_.size()}; }

  void send(Frame frame, std::string_view payload);
  // Values with their tail; a `copy` is made where they may change before they are sent.
  void send_values(Frame frame, const Tail& tail, std::span<const float> values, bool copy);
  // Sends what the socket takes. False: the peer is gone.
  bool flush();

  int worker() const { return worker_; }
  void introduce(int worker);
  const std::string& name() const { return name_; }
  // Says why, as far as the socket takes it, and closes.
  void refuse(const Error& why);
  bool closed() const { return !connection_; }
  void close() { connection_.close(); }
  int fd() const { return connection_.fd(); }
  short events() const;
  // To go on without this object; nothing may be queued.
  Connection release() { return std::move(connection_); }

 private:
  enum class State { header, header_done, payload };
  Result<bool> receive_frame();
  Result<void> take_handshake();
  struct Piece {
    std::string own;                 // header, tail, and values where copied
    std::span<const char> borrowed;  // values that stay as they are
    std::size_t sent = 0;
    std::size_t size() const { return own.size() + borrowed.size(); }
  };

  Connection connection_;
  std::string name_;
  AcceptingHandshake handshake_;
  int worker_ = -1;
  State state_ = State::header;
  std::uint8_t header_[frame_bytes] = {};
  std::size_t got_ = 0;
  Frame frame_;
  std::vector<std::uint8_t> buffer_;
  std::uint8_t* target_ = nullptr;
  bool in_place_ = false;
  std::deque<Piece> out_;
};

}  // namespace slipway::train
