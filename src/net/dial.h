#pragma once
// A TCP connection one waits on, with a deadline, and TLS on it for https: what the blocking client stands
// on.
#include <netdb.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"
#include "net/client.h"
#include "net/tls.h"

namespace slipway::net {

// When and by what a wait ends before its time.
struct WaitLimit {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  int cancel_fd = -1;  // readable: give up
};

enum class Ready { readable, writable, timed_out, cancelled };

class BlockingSocket {
 public:
  bool is_open() const { return static_cast<bool>(socket_); }
  void close() {
    tls_.reset();
    socket_.reset();
  }

  // Tries each address of the host. The error has no context: "Connection refused".
  Result<void> dial(const Url& url, const WaitLimit& limit);
  // Whether the peer ended or broke the connection, or sent something nobody asked for.
  bool is_stale() const;

  // The two below: bytes moved, 0 when it would block, or -1 with errno. receive() gives -1 with errno 0 at
  // the end.
  ssize_t send(std::string_view bytes);
  ssize_t receive(char* into, std::size_t size);
  // Until one of these is possible; readable comes first. With TLS only who sends can say what it waits for:
  // then a wait to write never reports an answer that came early.
  Ready wait(bool for_reading, bool for_writing, const WaitLimit& limit) const;

 private:
  Result<void> dial_one(const ::addrinfo& address, const WaitLimit& limit);
  Result<void> secure(const Url& url, const WaitLimit& limit);
  Ready poll(short events, const WaitLimit& limit) const;
  Fd socket_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace slipway::net
