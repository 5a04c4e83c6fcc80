#pragma once
// A TCP connection between two processes of a run: plain bytes, or, once keys are agreed on, records of at
// most `record_max` bytes, each encrypted and with the number it has in its direction as the nonce.
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "train/exchange/handshake.h"
#include "train/exchange/socket.h"

namespace slipway::train {

inline constexpr std::size_t record_max = std::size_t{64} << 10;

class Connection {
 public:
  Connection();
  explicit Connection(Fd socket);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  explicit operator bool() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.get(); }
  void close();

  // From now on, both ways.
  void encrypt(const CipherKeys& keys);

  // None of these waits; `peer` is for messages, and error `unavailable` says that it is gone.
  // How many bytes were taken. They have been sent when has_unsent() is false; flush() sends more of them.
  Result<std::size_t> send(std::span<const iovec> parts, const std::string& peer);
  Result<void> flush(const std::string& peer);
  bool has_unsent() const;
  // 0: nothing is there; only then is it time to poll.
  Result<std::size_t> receive(void* to, std::size_t size, const std::string& peer);

 private:
  struct Records;
  Fd socket_;
  std::unique_ptr<Records> records_;  // null: plain
};

// All of it, or why not. EOF and a time-out are `unavailable`.
Result<void> send_all(Connection& connection, std::span<iovec> parts, const std::string& peer,
                      const WaitLimit& wait_limit);
Result<void> receive_all(Connection& connection, void* to, std::size_t size, const std::string& peer,
                         const WaitLimit& wait_limit);

// The connecting side of the handshake, where there is a key.
Result<void> authenticate(Connection& connection, const GangKey& key, const std::string& peer,
                          const WaitLimit& wait_limit);

// A refusal that a peer sent: the error it carries, after what it said.
Error refused_by(const std::string& peer, std::string_view refusal);
std::string format_refusal(const Error& why);

// Removes what has been sent from the front of `parts`.
std::span<iovec> after(std::span<iovec> parts, std::size_t sent);

}  // namespace slipway::train
