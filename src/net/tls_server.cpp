#include "net/tls_server.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <utility>

#include "net/tls_server_state.h"

namespace slipway::net {

void FreeContext::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

namespace {

constexpr unsigned char session_context[] = "slipway";

tl::unexpected<Error> tls_failed(std::string_view what) {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  ERR_clear_error();
  return fail(ErrorCode::invalid, fmt::format("{}: {}", what, reason != nullptr ? reason : "unknown error"),
              "give a PEM file with the certificate and its issuers, and one with its key");
}

Result<void> trust_clients(SSL_CTX* context, const std::string& authority) {
  BIO* text = BIO_new_mem_buf(authority.data(), static_cast<int>(authority.size()));
  X509* certificate = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
  BIO_free(text);
  if (certificate == nullptr) return tls_failed("the authority of clients is not a certificate");
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate);
  SSL_CTX_add_client_CA(context, certificate);
  X509_free(certificate);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);  // shown ones must be good; none is good, too
  return {};
}

Result<ContextPointer> make_context(const TlsServer::Options& options) {
  ContextPointer context(SSL_CTX_new(TLS_server_method()));
  if (!context) return tls_failed("TLS cannot be set up");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_id_context(context.get(), session_context, sizeof session_context - 1);
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate_file.c_str()) != 1)
    return tls_failed(fmt::format("the certificate {} cannot be used", options.certificate_file));
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return tls_failed(fmt::format("the key {} cannot be used", options.key_file));
  if (SSL_CTX_check_private_key(context.get()) != 1)
    return tls_failed(
        fmt::format("the key {} is not that of certificate {}", options.key_file, options.certificate_file));
  if (!options.client_authority.empty())
    if (auto trusted = trust_clients(context.get(), options.client_authority); !trusted)
      return fail(trusted.error());
  return context;
}

}  // namespace

TlsServer::TlsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsServer::~TlsServer() = default;

Result<std::shared_ptr<TlsServer>> TlsServer::load(Options options) {
  auto context = make_context(options);
  if (!context) return fail(context.error());
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  state->context = std::move(*context);
  return std::shared_ptr<TlsServer>(new TlsServer(std::move(state)));
}

Result<void> TlsServer::reload() {
  auto context = make_context(state_->options);
  if (!context) return fail(context.error());
  unsigned char keys[80];  // of tickets: what was begun before may be resumed
  if (SSL_CTX_get_tlsext_ticket_keys(state_->context.get(), keys, sizeof keys) == 1)
    SSL_CTX_set_tlsext_ticket_keys(context->get(), keys, sizeof keys);
  OPENSSL_cleanse(keys, sizeof keys);
  state_->context = std::move(*context);
  return {};
}

SslPointer TlsServer::State::accept(int socket) const {
  SslPointer ssl(SSL_new(context.get()));
  if (!ssl) return ssl;
  attach(ssl.get(), socket);
  SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace slipway::net
