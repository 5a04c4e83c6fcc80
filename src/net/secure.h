#pragma once
// OpenSSL as both ends of net use it: contexts, and one connection's state over a socket that does not block.
// Private to net.
#include <memory>
#include <string>
#include <string_view>

#include "net/client.h"

using SSL = struct ssl_st;  // of OpenSSL, whose headers are heavy

namespace slipway::net {

struct FreeSsl {
  void operator()(SSL* ssl) const;
};
using SslPointer = std::unique_ptr<SSL, FreeSsl>;

// Speaks over the socket, which it borrows; written with MSG_NOSIGNAL.
void attach(SSL* ssl, int socket);

// Client's side, ready to connect. Trusts what this machine trusts; where the URL has a fingerprint, only a
// server that shows a certificate with it, or one that this one signed.
Result<SslPointer> make_client(const Url& url);
// Why the last call on it failed; `system_error` is the errno it left.
std::string explain(SSL* ssl, int system_error);
// What was read from the socket and not asked for yet.
bool has_pending(SSL* ssl);
// Says so to the other side, whether it can be sent or not.
void shut_down(SSL* ssl);
// The common name of the certificate the other side showed; empty without one.
std::string peer_name_of(SSL* ssl);

enum class Moved { some, nothing, ended, broken };  // nothing: it would block
struct TlsTransfer {
  Moved moved = Moved::nothing;
  std::size_t bytes = 0;
  bool waits_to_write = false;  // what it waits for where nothing moved
};
TlsTransfer read_from(SSL* ssl, void* into, std::size_t size);
TlsTransfer write_to(SSL* ssl, const void* from, std::size_t size);

}  // namespace slipway::net
