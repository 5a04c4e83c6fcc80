#include "train/exchange/server_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/uio.h>

#include "base/random.h"

namespace slipway::train {
namespace {

constexpr std::size_t unauthenticated_max = 64 * 1024;  // of a frame

}  // namespace

ServerConnection::ServerConnection(Connection connection, std::string name, const GangKey& key)
    : connection_(std::move(connection)),
      name_(std::move(name)),
      handshake_(key, is_same_host(connection_.fd()), random_hex(nonce_bytes / 2)) {}

Result<bool> ServerConnection::receive() {
  for (;;) {
    auto arrived = receive_frame();
    if (!arrived || !*arrived || handshake_.is_done()) return arrived;
    // Read to its end even when it is refused: what is left unread would reset the connection before the
    // peer has read why.
    const auto taken = has_payload() ? take_handshake() : expect(unauthenticated_max);
    if (!taken) return fail(taken.error());
  }
}

Result<void> ServerConnection::take_handshake() {
  const auto answer = handshake_.take(frame_, text());
  if (!answer) return fail(answer.error());
  next();
  if (*answer) send((*answer)->frame, (*answer)->payload);
  if (const auto keys = handshake_.keys()) connection_.encrypt(*keys);
  return {};
}

Result<bool> ServerConnection::receive_frame() {
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
    const auto got = connection_.receive(to + got_, owed - got_, name_);
    if (!got) return fail(got.error());
    if (*got == 0) return false;
    got_ += *got;
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
  const bool is_empty = out_.empty() && !connection_.has_unsent();
  return static_cast<short>(is_empty ? POLLIN : POLLIN | POLLOUT);
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
  while (!out_.empty() && !closed()) {
    Piece& piece = out_.front();
    iovec parts[2];
    std::size_t count = 0, skip = piece.sent;
    for (const std::span<const char> part : {std::span<const char>(piece.own), piece.borrowed}) {
      if (skip < part.size()) parts[count++] = {const_cast<char*>(part.data()) + skip, part.size() - skip};
      skip -= std::min(skip, part.size());
    }
    const auto sent = connection_.send({parts, count}, name_);
    if (!sent) return false;
    if (*sent == 0) return true;
    piece.sent += *sent;
    if (piece.sent == piece.size()) out_.pop_front();
  }
  return closed() || connection_.flush(name_).has_value();
}

void ServerConnection::refuse(const Error& why) {
  send({.kind = FrameKind::refuse}, format_refusal(why));
  close();
}

}  // namespace slipway::train
