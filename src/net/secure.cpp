#include "net/secure.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <mutex>

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

struct Pin {
  std::string fingerprint;
  std::string session;  // what a session is kept under
};

int pin_index() {
  static const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* pin, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<Pin*>(pin); });
  return index;
}

bool has_fingerprint(X509* certificate, const std::string& wanted) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return false;
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[digest[i] >> 4];
    text += digits[digest[i] & 15];
  }
  return text == wanted;
}

// The pinned certificate is the only thing that is trusted, be it the server's own or its issuer. Whose name
// is in it does not matter: it was named itself.
int verify_pinned(X509_STORE_CTX* shown, void*) {
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(shown, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto* pin = static_cast<const Pin*>(SSL_get_ex_data(ssl, pin_index()));
  STACK_OF(X509)* const chain = X509_STORE_CTX_get0_untrusted(shown);
  X509* pinned = nullptr;
  for (int i = 0; i < sk_X509_num(chain); ++i)
    if (has_fingerprint(sk_X509_value(chain, i), pin->fingerprint)) pinned = sk_X509_value(chain, i);
  if (pinned == nullptr) {
    X509_STORE_CTX_set_error(shown, X509_V_ERR_CERT_UNTRUSTED);
    return 0;
  }
  X509_STORE* store = X509_STORE_new();
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  int good = 0;
  if (store != nullptr && context != nullptr && X509_STORE_add_cert(store, pinned) == 1 &&
      X509_STORE_CTX_init(context, store, X509_STORE_CTX_get0_cert(shown), chain) == 1) {
    X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER);
    X509_STORE_CTX_set_flags(context, X509_V_FLAG_PARTIAL_CHAIN);
    good = X509_verify_cert(context) == 1 ? 1 : 0;
    X509_STORE_CTX_set_error(shown, X509_STORE_CTX_get_error(context));
  }
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return good;
}

// The last session with each server, so that the next connection to it costs less.
class Sessions {
 public:
  ~Sessions() {
    for (const auto& [key, session] : kept_) SSL_SESSION_free(session);
  }
  void keep(const std::string& key, SSL_SESSION* session) {
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= kept_max) clear();
    SSL_SESSION*& slot = kept_[key];
    SSL_SESSION_free(slot);
    slot = session;
  }
  void offer(const std::string& key, SSL* ssl) {
    const std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(key); found != kept_.end()) SSL_set_session(ssl, found->second);
  }

 private:
  static constexpr std::size_t kept_max = 64;
  void clear() {
    for (const auto& [key, session] : kept_) SSL_SESSION_free(session);
    kept_.clear();
  }
  std::mutex mutex_;
  std::map<std::string, SSL_SESSION*> kept_;  // guarded by mutex_
};

Sessions& sessions() {
  static Sessions kept;
  return kept;
}

SSL_CTX* new_context(int version_min) {
  SSL_CTX* made = SSL_CTX_new(TLS_client_method());
  SLIPWAY_CHECK(made != nullptr);
  SSL_CTX_set_min_proto_version(made, version_min);
  SSL_CTX_set_mode(
      made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(made, [](SSL* ssl, SSL_SESSION* session) {
    const auto* pin = static_cast<const Pin*>(SSL_get_ex_data(ssl, pin_index()));
    if (pin == nullptr) return 0;
    sessions().keep(pin->session, session);
    return 1;
  });
  return made;
}

// What is trusted, read once: some hundred certificates. Where OpenSSL was not built for this system, its
// usual places are tried as well.
SSL_CTX* trusting_context() {
  static SSL_CTX* const context = [] {
    SSL_CTX* made = new_context(TLS1_2_VERSION);
    SSL_CTX_set_default_verify_paths(made);
    if (std::getenv("SSL_CERT_FILE") == nullptr)
      for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"})
        if (::access(path, R_OK) == 0 && SSL_CTX_load_verify_locations(made, path, nullptr) == 1) break;
    ERR_clear_error();
    return made;
  }();
  return context;
}

SSL_CTX* pinning_context() {
  static SSL_CTX* const context = [] {
    SSL_CTX* made = new_context(TLS1_3_VERSION);
    SSL_CTX_set_cert_verify_callback(made, verify_pinned, nullptr);
    return made;
  }();
  return context;
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

TlsTransfer result_of(SSL* ssl, int result) {
  if (result > 0) return {Moved::some, static_cast<std::size_t>(result)};
  const int saved = errno;
  const int error = SSL_get_error(ssl, result);
  errno = saved;
  switch (error) {
    case SSL_ERROR_WANT_READ: return {Moved::nothing, 0, false};
    case SSL_ERROR_WANT_WRITE: return {Moved::nothing, 0, true};
    case SSL_ERROR_ZERO_RETURN: errno = 0; return {Moved::ended};
    case SSL_ERROR_SYSCALL:
      if (errno == 0) errno = ECONNRESET;  // an end without a farewell
      return {Moved::broken};
    default: errno = EPROTO; return {Moved::broken};
  }
}

}  // namespace

void attach(SSL* ssl, int socket) {
  BIO* bio = BIO_new(socket_method());
  SLIPWAY_CHECK(bio != nullptr);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
}

Result<SslPointer> make_client(const Url& url) {
  const bool is_pinned = !url.fingerprint.empty();
  SslPointer ssl(SSL_new(is_pinned ? pinning_context() : trusting_context()));
  SLIPWAY_CHECK(ssl != nullptr);
  auto pin = std::make_unique<Pin>(
      Pin{url.fingerprint, url.authority() + " " + url.fingerprint + " " + url.certificate_file});
  sessions().offer(pin->session, ssl.get());
  SLIPWAY_CHECK(SSL_set_ex_data(ssl.get(), pin_index(), pin.release()) == 1);
  if (is_address(url.host)) {
    if (!is_pinned) X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), url.host.c_str());
  } else {
    if (!is_pinned) SSL_set1_host(ssl.get(), url.host.c_str());
    SSL_set_tlsext_host_name(ssl.get(), url.host.c_str());
  }
  if (!url.certificate_file.empty() && ::access(url.certificate_file.c_str(), R_OK) == 0) {
    if (SSL_use_certificate_file(ssl.get(), url.certificate_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_use_PrivateKey_file(ssl.get(), url.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
      ERR_clear_error();
      return fail(ErrorCode::invalid, "the certificate " + url.certificate_file + " cannot be used",
                  "delete it: another is asked for");
    }
  }
  SSL_set_connect_state(ssl.get());
  return ssl;
}

std::string explain(SSL* ssl, int system_error) {
  if (const long verified = SSL_get_verify_result(ssl); verified != X509_V_OK) {
    if (verified == X509_V_ERR_CERT_UNTRUSTED && SSL_get_SSL_CTX(ssl) == pinning_context())
      return "its certificate does not have the fingerprint that was given";
    return std::string("its certificate is not trusted: ") + X509_verify_cert_error_string(verified);
  }
  const unsigned long code = ERR_peek_last_error();
  if (code != 0) {
    const char* reason = ERR_reason_error_string(code);
    return std::string("no TLS connection: ") + (reason != nullptr ? reason : "unknown error");
  }
  return std::string("no TLS connection: ") +
         (system_error != 0 ? std::strerror(system_error) : "the server closed it");
}

// As if both had closed: else OpenSSL takes the session for one that must not be resumed.
void FreeSsl::operator()(SSL* ssl) const {
  if (SSL_in_init(ssl) == 0) SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_free(ssl);
}

bool has_pending(SSL* ssl) { return SSL_pending(ssl) > 0; }

void shut_down(SSL* ssl) {
  if (SSL_in_init(ssl) != 0) return;
  SSL_shutdown(ssl);
  ERR_clear_error();
}

std::string peer_name_of(SSL* ssl) {
  X509* certificate = SSL_get0_peer_certificate(ssl);
  char name[256] = {};
  if (certificate != nullptr && SSL_get_verify_result(ssl) == X509_V_OK)
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  return name;
}

TlsTransfer read_from(SSL* ssl, void* into, std::size_t size) {
  ERR_clear_error();
  errno = 0;
  return result_of(ssl, SSL_read(ssl, into, static_cast<int>(std::min<std::size_t>(size, INT_MAX))));
}

TlsTransfer write_to(SSL* ssl, const void* from, std::size_t size) {
  ERR_clear_error();
  errno = 0;
  return result_of(ssl, SSL_write(ssl, from, static_cast<int>(std::min<std::size_t>(size, INT_MAX))));
}

}  // namespace slipway::net
