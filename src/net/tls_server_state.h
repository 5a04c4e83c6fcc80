#pragma once
// The inside of TlsServer, for the connections of net.
#include "net/secure.h"
#include "net/tls_server.h"

using SSL_CTX = struct ssl_ctx_st;  // of OpenSSL, whose headers are heavy

namespace slipway::net {

struct FreeContext {
  void operator()(SSL_CTX* context) const;
};
using ContextPointer = std::unique_ptr<SSL_CTX, FreeContext>;

struct TlsServer::State {
  Options options;
  ContextPointer context;
  // Of a connection that was accepted; null without memory.
  SslPointer accept(int socket) const;
};

}  // namespace slipway::net
