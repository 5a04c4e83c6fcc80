#pragma once
// TLS over a connected socket that does not block, client's side. The server proves that it is the host that
// was dialled, by the certificates this machine trusts (or those of SSL_CERT_FILE and SSL_CERT_DIR); or,
// where the URL has a fingerprint, that it has the certificate with it, or one signed by that.
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipway::net {

struct Url;

class Tls {
 public:
  // `wait` waits until the socket can be read (or written, when asked to) and says why it gave up.
  using Wait = std::function<Result<void>(bool for_writing)>;
  // Borrows the socket. The error has no context: "its certificate is not trusted: …".
  static Result<std::unique_ptr<Tls>> start(int socket, const Url& url, const Wait& wait);
  ~Tls();

  // As those of BlockingSocket: bytes moved, 0 when it would block, -1 with errno, which is 0 at the end.
  ssize_t send(std::string_view bytes);
  ssize_t receive(char* into, std::size_t size);
  // Whether the peer ended, or sent what nobody asked for; what TLS itself sends between is none.
  bool is_stale();
  // What the last call that moved nothing waits for: TLS may have to read in order to write, and vice versa.
  bool waits_to_write() const;

 private:
  struct State;
  explicit Tls(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace slipway::net
