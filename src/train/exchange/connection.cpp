#include "train/exchange/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/message_cipher.h"
#include "base/random.h"

namespace slipway::train {
namespace {

constexpr std::size_t length_bytes = 4;
constexpr unsigned char record_kind = 0;
constexpr std::size_t refusal_max = 64 << 10;

// Bytes put, 0 when the socket takes none now.
Result<std::size_t> put_on(int fd, std::span<const iovec> parts, const std::string& peer) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  for (;;) {
    const ssize_t put = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) return static_cast<std::size_t>(put);
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return fail(lost(peer, fmt::format("is gone: {}", std::strerror(errno))));
  }
}

// Bytes got, 0 when there are none now.
Result<std::size_t> get_from(int fd, void* to, std::size_t size, const std::string& peer) {
  for (;;) {
    const ssize_t got = ::recv(fd, to, size, MSG_DONTWAIT);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) return fail(lost(peer, "closed the connection"));
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return fail(lost(peer, fmt::format("is gone: {}", std::strerror(errno))));
  }
}

std::size_t bytes_in(std::span<const iovec> parts) {
  std::size_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  return size;
}

}  // namespace

// One record on its way out, one on its way in: a length, that many bytes, and their tag.
struct Connection::Records {
  explicit Records(const CipherKeys& keys) : seals(keys.sending), opens(keys.receiving) {}

  MessageCipher seals, opens;
  std::array<unsigned char, length_bytes + record_max + MessageCipher::overhead> out, in;
  std::size_t out_sent = 0, out_size = 0;
  std::size_t in_got = 0;                   // of the record that comes
  std::size_t clear_at = 0, clear_end = 0;  // what of `in` is open and not yet taken

  std::size_t in_owed() const {
    if (in_got < length_bytes) return length_bytes;
    std::uint32_t length = 0;
    std::memcpy(&length, in.data(), length_bytes);
    return length_bytes + std::size_t{length} + MessageCipher::overhead;
  }
  std::size_t take(void* to, std::size_t size) {
    const std::size_t taken = std::min(size, clear_end - clear_at);
    std::memcpy(to, in.data() + clear_at, taken);
    clear_at += taken;
    return taken;
  }
};

Connection::Connection() = default;
Connection::Connection(Fd socket) : socket_(std::move(socket)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

void Connection::close() {
  socket_.reset();
  records_.reset();
}

void Connection::encrypt(const CipherKeys& keys) { records_ = std::make_unique<Records>(keys); }

bool Connection::has_unsent() const { return records_ && records_->out_sent < records_->out_size; }

Result<void> Connection::flush(const std::string& peer) {
  while (has_unsent()) {
    Records& r = *records_;
    const iovec rest{r.out.data() + r.out_sent, r.out_size - r.out_sent};
    const auto put = put_on(socket_.get(), {&rest, 1}, peer);
    if (!put) return fail(put.error());
    if (*put == 0) return {};
    r.out_sent += *put;
  }
  return {};
}

Result<std::size_t> Connection::send(std::span<const iovec> parts, const std::string& peer) {
  if (!records_) return put_on(socket_.get(), parts, peer);
  if (auto flushed = flush(peer); !flushed) return fail(flushed.error());
  if (has_unsent()) return 0;
  Records& r = *records_;
  const std::size_t size = std::min(bytes_in(parts), record_max);
  std::size_t filled = 0;
  for (const iovec& part : parts) {
    const std::size_t piece = std::min(part.iov_len, size - filled);
    std::memcpy(r.out.data() + length_bytes + filled, part.iov_base, piece);
    filled += piece;
  }
  const auto length = static_cast<std::uint32_t>(size);
  std::memcpy(r.out.data(), &length, length_bytes);
  r.seals.seal_in_place(record_kind, std::span(r.out).subspan(length_bytes, size + MessageCipher::overhead));
  r.out_sent = 0;
  r.out_size = length_bytes + size + MessageCipher::overhead;
  if (auto flushed = flush(peer); !flushed) return fail(flushed.error());
  return size;
}

Result<std::size_t> Connection::receive(void* to, std::size_t size, const std::string& peer) {
  if (!records_) return get_from(socket_.get(), to, size, peer);
  Records& r = *records_;
  while (r.clear_at == r.clear_end) {
    const auto got = get_from(socket_.get(), r.in.data() + r.in_got, r.in_owed() - r.in_got, peer);
    if (!got) return got;
    if (*got == 0) return 0;
    r.in_got += *got;
    const auto broken = [&] { return fail(lost(peer, "sent what was changed on its way")); };
    if (r.in_owed() > r.in.size()) return broken();
    if (r.in_got < length_bytes || r.in_got < r.in_owed()) continue;
    if (!r.opens.open_in_place(record_kind, std::span(r.in).subspan(length_bytes, r.in_got - length_bytes)))
      return broken();
    r.clear_at = length_bytes;
    r.clear_end = std::exchange(r.in_got, 0) - MessageCipher::overhead;
  }
  return r.take(to, size);
}

std::span<iovec> after(std::span<iovec> parts, std::size_t sent) {
  while (!parts.empty() && sent >= parts.front().iov_len) {
    sent -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (!parts.empty()) {
    parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + sent;
    parts.front().iov_len -= sent;
  }
  return parts;
}

Result<void> send_all(Connection& connection, std::span<iovec> parts, const std::string& peer,
                      const WaitLimit& wait_limit) {
  const Steady::time_point deadline = Steady::now() + wait_limit.timeout;
  parts = after(parts, 0);  // empty ones
  while (!parts.empty() || connection.has_unsent()) {
    std::size_t taken = 0;
    if (parts.empty()) {
      if (auto flushed = connection.flush(peer); !flushed) return flushed;
      if (!connection.has_unsent()) break;
    } else {
      const auto sent = connection.send(parts, peer);
      if (!sent) return fail(sent.error());
      taken = *sent;
      parts = after(parts, taken);
    }
    if (taken > 0) continue;
    if (auto ready = wait_for(connection.fd(), POLLOUT, peer, deadline, wait_limit.stop); !ready)
      return ready;
  }
  return {};
}

Result<void> receive_all(Connection& connection, void* to, std::size_t size, const std::string& peer,
                         const WaitLimit& wait_limit) {
  auto* bytes = static_cast<char*>(to);
  const Steady::time_point deadline = Steady::now() + wait_limit.timeout;
  while (size > 0) {
    const auto got = connection.receive(bytes, size, peer);
    if (!got) return fail(got.error());
    bytes += *got;
    size -= *got;
    if (*got > 0) continue;
    if (auto ready = wait_for(connection.fd(), POLLIN, peer, deadline, wait_limit.stop); !ready) return ready;
  }
  return {};
}

std::string format_refusal(const Error& why) { return why.what + "\n" + why.hint; }

Error refused_by(const std::string& peer, std::string_view refusal) {
  const std::size_t line = std::min(refusal.find('\n'), refusal.size());
  return {ErrorCode::conflict, fmt::format("{} refused this process: {}", peer, refusal.substr(0, line)),
          std::string(refusal.substr(std::min(line + 1, refusal.size())))};
}

Result<void> authenticate(Connection& connection, const GangKey& key, const std::string& peer,
                          const WaitLimit& wait_limit) {
  if (!key.is_set()) return {};
  const auto send = [&](HandshakeMessage message) {
    auto header = format_frame(message.frame);
    iovec parts[2] = {{header.data(), header.size()}, {message.payload.data(), message.payload.size()}};
    return send_all(connection, parts, peer, wait_limit);
  };
  ConnectingHandshake handshake(key, is_same_host(connection.fd()), random_hex(nonce_bytes / 2));
  if (auto sent = send(handshake.challenge()); !sent) return sent;
  std::array<std::uint8_t, frame_bytes> header{};
  if (auto got = receive_all(connection, header.data(), header.size(), peer, wait_limit); !got) return got;
  const auto frame = parse_frame(header);
  if (!frame) return fail(frame.error().code, peer + ": " + frame.error().what, frame.error().hint);
  if (frame->bytes > refusal_max)
    return fail(ErrorCode::too_large, fmt::format("{} announced {} bytes", peer, frame->bytes));
  std::string payload(static_cast<std::size_t>(frame->bytes), '\0');
  if (auto got = receive_all(connection, payload.data(), payload.size(), peer, wait_limit); !got) return got;
  if (frame->kind == FrameKind::refuse) return fail(refused_by(peer, payload));
  auto proof = handshake.take(*frame, payload, peer);
  if (!proof) return fail(proof.error());
  if (auto sent = send(std::move(*proof)); !sent) return sent;
  if (const auto keys = handshake.keys()) connection.encrypt(*keys);
  return {};
}

}  // namespace slipway::train
