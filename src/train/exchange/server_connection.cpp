#include "train/exchange/server_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "train/exchange/socket.h"

namespace slipway::train {

Result<bool> ServerConnection::receive() {
  for (;;) {
    if (state_ == State::header_done) return true;  // the payload's destination is not known yet
    const bool in_header = state_ == State::header;
    const std::size_t owed = in_header ? frame_bytes : static_cast<std::size_t>(frame_.bytes);
    if (got_ == owed) {
      if (!in_header) return true;
      auto parsed = parse_frame(std::span<const std::uint8_t, frame_bytes>(header_));
      if (!parsed) return fail(parsed.error());
      frame_ = *parsed;
      state_ = State::header_done;
      return true;
    }
    std::uint8_t* to = in_header ? header_ : target_;
    const ssize_t got = ::recv(fd_.get(), to + got_, owed - got_, 0);
    if (got > 0)
      got_ += static_cast<std::size_t>(got);
    else if (got == 0)
      return fail(lost(name_, "closed the connection"));
    else if (errno == EAGAIN)
      return false;
    else if (errno != EINTR)
      return fail(lost(name_, fmt::format("is gone: {}", std::strerror(errno))));
  }
}

Result<void> ServerConnection::expect(std::size_t most) {
  if (frame_.bytes > most)
    return fail(ErrorCode::too_large,
                fmt::format("it announced {} bytes where at most {} belong", frame_.bytes, most));
  buffer_.resize(static_cast<std::size_t>(frame_.bytes));
  in_place_ = false;
  target_ = buffer_.data();
  got_ = 0;
  state_ = State::payload;
  return {};
}

Result<void> ServerConnection::expect_into(void* to) {
  in_place_ = true;
  target_ = static_cast<std::uint8_t*>(to);
  got_ = 0;
  state_ = State::payload;
  return {};
}

void ServerConnection::next() {
  if (state_ != State::payload || got_ != frame_.bytes) return;
  state_ = State::header;
  got_ = 0;
}

void ServerConnection::introduce(int worker) {
  worker_ = worker;
  name_ = fmt::format("worker {}", worker);
}

short ServerConnection::events() const {
  return static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT);
}

void ServerConnection::send(Frame frame, std::string_view payload) {
  frame.bytes = payload.size();
  const auto header = format_frame(frame);
  Piece piece;
  piece.own.assign(reinterpret_cast<const char*>(header.data()), header.size());
  piece.own += payload;
  out_.push_back(std::move(piece));
  flush();
}

void ServerConnection::send_values(Frame frame, const Tail& tail, std::span<const float> values, bool copy) {
  frame.bytes = sizeof tail + values.size_bytes();
  const auto header = format_frame(frame);
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  Piece piece;
  piece.own.reserve(frame_bytes + sizeof tail + (copy ? values.size_bytes() : 0));
  piece.own.assign(reinterpret_cast<const char*>(header.data()), header.size());
  piece.own.append(reinterpret_cast<const char*>(&tail), sizeof tail);
  if (copy)
    piece.own.append(bytes, values.size_bytes());
  else
    piece.borrowed = {bytes, values.size_bytes()};
  out_.push_back(std::move(piece));
  flush();
}

bool ServerConnection::flush() {
  while (!out_.empty() && fd_) {
    Piece& piece = out_.front();
    iovec parts[2];
    std::size_t count = 0, skip = piece.sent;
    for (const std::span<const char> part : {std::span<const char>(piece.own), piece.borrowed}) {
      if (skip < part.size()) parts[count++] = {const_cast<char*>(part.data()) + skip, part.size() - skip};
      skip -= std::min(skip, part.size());
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t put = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN;
    piece.sent += static_cast<std::size_t>(put);
    if (piece.sent == piece.size()) out_.pop_front();
  }
  return true;
}

}  // namespace slipway::train
