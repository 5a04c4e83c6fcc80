#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cerrno>

#include "net/secure.h"

namespace slipway::net {

struct Tls::State {
  SslPointer ssl;
  bool waits_to_write = false;

  ssize_t moved(const TlsTransfer& transfer) {
    waits_to_write = transfer.waits_to_write;
    if (transfer.moved == Moved::some) return static_cast<ssize_t>(transfer.bytes);
    return transfer.moved == Moved::nothing ? 0 : -1;
  }
};

Tls::Tls(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tls::~Tls() = default;

Result<std::unique_ptr<Tls>> Tls::start(int socket, const Url& url, const Wait& wait) {
  auto ssl = make_client(url);
  if (!ssl) return fail(ssl.error());
  auto state = std::make_unique<State>();
  state->ssl = std::move(*ssl);
  attach(state->ssl.get(), socket);
  for (;;) {
    ERR_clear_error();
    errno = 0;
    const int done = SSL_connect(state->ssl.get());
    if (done == 1) return std::unique_ptr<Tls>(new Tls(std::move(state)));
    const int system_error = errno;
    const int error = SSL_get_error(state->ssl.get(), done);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
      return fail(ErrorCode::unavailable, explain(state->ssl.get(), system_error),
                  SSL_get_verify_result(state->ssl.get()) == X509_V_OK ? ""
                  : url.fingerprint.empty()
                      ? "let SSL_CERT_FILE name a file with the certificates to trust, if it is yours"
                      : "ask the service for its fingerprint: slipway node join-command");
    if (auto waited = wait(error == SSL_ERROR_WANT_WRITE); !waited) return fail(std::move(waited.error()));
  }
}

ssize_t Tls::send(std::string_view bytes) {
  return state_->moved(write_to(state_->ssl.get(), bytes.data(), bytes.size()));
}

ssize_t Tls::receive(char* into, std::size_t size) {
  return state_->moved(read_from(state_->ssl.get(), into, size));
}

bool Tls::is_stale() {
  char byte = 0;
  ERR_clear_error();
  const int got = SSL_peek(state_->ssl.get(), &byte, 1);
  return got > 0 || SSL_get_error(state_->ssl.get(), got) != SSL_ERROR_WANT_READ;
}

bool Tls::waits_to_write() const { return state_->waits_to_write; }

}  // namespace slipway::net
