#pragma once
// One worker's connection as the server's loop sees it: frames in pieces as they arrive, answers in pieces as
// the socket takes them. For parameter_server.cpp.
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "train/exchange/frame.h"

namespace slipway::train {

class ServerConnection {
 public:
  ServerConnection(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}
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
  bool closed() const { return !fd_; }
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }
  short events() const;

 private:
  enum class State { header, header_done, payload };
  struct Piece {
    std::string own;                 // header, tail, and values where copied
    std::span<const char> borrowed;  // values that stay as they are
    std::size_t sent = 0;
    std::size_t size() const { return own.size() + borrowed.size(); }
  };

  Fd fd_;
  std::string name_;
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
