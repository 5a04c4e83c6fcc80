#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/check.h"

namespace slipway::net {
namespace {

// A socket written with MSG_NOSIGNAL: OpenSSL's own would end the program when the peer went away.
int write_socket(BIO* bio, const char* data, int size) {
  const int socket = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  BIO_clear_retry_flags(bio);
  const ssize_t put = ::send(socket, data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(put);
}

int read_socket(BIO* bio, char* into, int size) {
  const int socket = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(socket, into, static_cast<std::size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    SLIPWAY_CHECK(made != nullptr);
    BIO_meth_set_write(made, write_socket);
    BIO_meth_set_read(made, read_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  return method;
}

// What is trusted, read once: some hundred certificates. Where OpenSSL was not built for this system, its
// usual places are tried as well.
SSL_CTX* shared_context() {
  static SSL_CTX* const context = [] {
    SSL_CTX* made = SSL_CTX_new(TLS_client_method());
    SLIPWAY_CHECK(made != nullptr);
    SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
    SSL_CTX_set_mode(
        made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_default_verify_paths(made);
    if (std::getenv("SSL_CERT_FILE") == nullptr)
      for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"})
        if (::access(path, R_OK) == 0 && SSL_CTX_load_verify_locations(made, path, nullptr) == 1) break;
    ERR_clear_error();
    return made;
  }();
  return context;
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

struct Tls::State {
  ~State() { SSL_free(ssl); }
  SSL* ssl = nullptr;
  bool waits_to_write = false;

  bool would_block(int error) {
    waits_to_write = error == SSL_ERROR_WANT_WRITE;
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }
  std::string explain(int error) const;
  // -1 with errno, for what is neither bytes nor a wait.
  ssize_t broken(int error) const;
};

std::string Tls::State::explain(int error) const {
  const int system_error = errno;
  if (const long verified = SSL_get_verify_result(ssl); verified != X509_V_OK)
    return std::string("its certificate is not trusted: ") + X509_verify_cert_error_string(verified);
  const unsigned long code = ERR_peek_last_error();
  if (error == SSL_ERROR_SSL && code != 0) {
    const char* reason = ERR_reason_error_string(code);
    return std::string("no TLS connection: ") + (reason != nullptr ? reason : "unknown error");
  }
  return std::string("no TLS connection: ") +
         (system_error != 0 ? std::strerror(system_error) : "the server closed it");
}

ssize_t Tls::State::broken(int error) const {
  if (error == SSL_ERROR_ZERO_RETURN) errno = 0;
  if (error == SSL_ERROR_SSL) errno = EPROTO;
  if (error == SSL_ERROR_SYSCALL && errno == 0) errno = ECONNRESET;  // an end without a farewell
  return -1;
}

Tls::Tls(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tls::~Tls() = default;

Result<std::unique_ptr<Tls>> Tls::start(int socket, const std::string& host, const Wait& wait) {
  auto state = std::make_unique<State>();
  state->ssl = SSL_new(shared_context());
  BIO* bio = BIO_new(socket_method());
  SLIPWAY_CHECK(state->ssl != nullptr && bio != nullptr);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(state->ssl, bio, bio);
  if (is_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(state->ssl), host.c_str());
  } else {
    SSL_set1_host(state->ssl, host.c_str());
    SSL_set_tlsext_host_name(state->ssl, host.c_str());
  }
  for (;;) {
    ERR_clear_error();
    errno = 0;
    const int done = SSL_connect(state->ssl);
    if (done == 1) return std::unique_ptr<Tls>(new Tls(std::move(state)));
    const int error = SSL_get_error(state->ssl, done);
    if (!state->would_block(error))
      return fail(ErrorCode::unavailable, state->explain(error),
                  SSL_get_verify_result(state->ssl) != X509_V_OK
                      ? "let SSL_CERT_FILE name a file with the certificates to trust, if it is yours"
                      : "");
    if (auto waited = wait(state->waits_to_write); !waited) return fail(std::move(waited.error()));
  }
}

ssize_t Tls::send(std::string_view bytes) {
  ERR_clear_error();
  errno = 0;
  const int size = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
  const int put = SSL_write(state_->ssl, bytes.data(), size);
  if (put > 0) return put;
  const int error = SSL_get_error(state_->ssl, put);
  return state_->would_block(error) ? 0 : state_->broken(error);
}

ssize_t Tls::receive(char* into, std::size_t size) {
  ERR_clear_error();
  errno = 0;
  const int got = SSL_read(state_->ssl, into, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
  if (got > 0) return got;
  const int error = SSL_get_error(state_->ssl, got);
  return state_->would_block(error) ? 0 : state_->broken(error);
}

bool Tls::waits_to_write() const { return state_->waits_to_write; }

}  // namespace slipway::net
