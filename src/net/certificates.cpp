#include "net/certificates.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <memory>

namespace slipway::net {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using SigningRequest = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;

constexpr long day = 24 * 60 * 60;
constexpr Duration authority_lifetime = 24h * 3652;
// Clocks of machines differ.
constexpr long backdated_max_s = 60 * 60;

tl::unexpected<Error> crypto_failed(std::string_view what) {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  ERR_clear_error();
  return fail(ErrorCode::invalid, fmt::format("{}: {}", what, reason != nullptr ? reason : "unknown error"));
}

Bio reader(std::string_view text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::string pem_of(X509* certificate) {
  const Bio out(BIO_new(BIO_s_mem()));
  return PEM_write_bio_X509(out.get(), certificate) == 1 ? text_of(out) : std::string();
}

Result<std::string> pem_of(EVP_PKEY* key) {
  const Bio out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return crypto_failed("a key cannot be written");
  return text_of(out);
}

Result<PrivateKey> generate() {
  PrivateKey key(EVP_EC_gen("P-256"));
  if (!key) return crypto_failed("a key cannot be made");
  return key;
}

Result<PrivateKey> read_key(std::string_view pem) {
  PrivateKey key(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, nullptr, nullptr));
  if (!key) return crypto_failed("this is not a private key");
  return key;
}

Result<Certificate> parse_certificate(std::string_view pem, bool last) {
  const Bio in = reader(pem);
  Certificate found(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  if (!found) return crypto_failed("this is not a certificate");
  while (last) {
    Certificate next(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
    if (!next) break;
    found = std::move(next);
  }
  ERR_clear_error();  // the end of the text is none
  return found;
}

bool add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

struct Wanted {
  std::string name;
  EVP_PKEY* key = nullptr;
  Duration lifetime{};
  std::vector<std::pair<int, std::string>> extensions;
};

// Signed by `issuer`, or by itself where that is null.
Result<Certificate> make_certificate(const Wanted& wanted, X509* issuer, EVP_PKEY* issuer_key) {
  Certificate made(X509_new());
  unsigned char serial[16];
  if (!made || RAND_bytes(serial, sizeof serial) != 1) return crypto_failed("a certificate cannot be made");
  serial[0] &= 0x7f;
  const std::unique_ptr<BIGNUM, Freed<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  X509_NAME* subject = X509_get_subject_name(made.get());
  const long lifetime_s = std::chrono::duration_cast<std::chrono::seconds>(wanted.lifetime).count();
  const long backdated_s = lifetime_s > 0 ? std::min(backdated_max_s, lifetime_s / 10) : backdated_max_s;
  bool good =
      number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(made.get())) != nullptr &&
      X509_set_version(made.get(), X509_VERSION_3) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(wanted.name.c_str()), -1, -1,
                                 0) == 1 &&
      X509_set_issuer_name(made.get(), issuer != nullptr ? X509_get_subject_name(issuer) : subject) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(made.get()), -backdated_s) != nullptr &&
      X509_time_adj_ex(X509_getm_notAfter(made.get()), static_cast<int>(lifetime_s / day), lifetime_s % day,
                       nullptr) != nullptr &&
      X509_set_pubkey(made.get(), wanted.key) == 1;
  for (const auto& [id, value] : wanted.extensions)
    good = good && add_extension(made.get(), issuer != nullptr ? issuer : made.get(), id, value);
  if (!good || X509_sign(made.get(), issuer_key, EVP_sha256()) == 0)
    return crypto_failed("a certificate cannot be made");
  return made;
}

bool is_ip_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

TimePoint time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return TimePoint{};
  return TimePoint(std::chrono::seconds(::timegm(&parts)));
}

std::string fingerprint_of(X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  std::string text;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::vector<std::string> hosts_of(X509* certificate) {
  std::vector<std::string> hosts;
  auto* names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    const ASN1_STRING* text = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const unsigned char* bytes = ASN1_STRING_get0_data(text);
    const int size = ASN1_STRING_length(text);
    char address[INET6_ADDRSTRLEN] = {};
    if (name->type == GEN_DNS)
      hosts.emplace_back(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    else if (name->type == GEN_IPADD &&
             ::inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, address, sizeof address) != nullptr)
      hosts.emplace_back(address);
  }
  GENERAL_NAMES_free(names);
  return hosts;
}

}  // namespace

Result<CertifiedKey> make_authority(const std::string& name) {
  auto key = generate();
  if (!key) return fail(key.error());
  auto made = make_certificate({name,
                                key->get(),
                                authority_lifetime,
                                {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                 {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                 {NID_subject_key_identifier, "hash"}}},
                               nullptr, key->get());
  if (!made) return fail(made.error());
  return pem_of(key->get()).map([&](std::string text) {
    return CertifiedKey{pem_of(made->get()), std::move(text)};
  });
}

Result<CertifiedKey> issue_server(const CertifiedKey& authority, const std::vector<std::string>& hosts,
                                  Duration lifetime) {
  auto issuer = parse_certificate(authority.certificate, false);
  if (!issuer) return fail(issuer.error());
  auto issuer_key = read_key(authority.key);
  if (!issuer_key) return fail(issuer_key.error());
  auto key = generate();
  if (!key) return fail(key.error());
  std::string names;
  for (const std::string& host : hosts)
    names += (names.empty() ? "" : ",") + std::string(is_ip_address(host) ? "IP:" : "DNS:") + host;
  auto made = make_certificate({"slipway",
                                key->get(),
                                lifetime,
                                {{NID_basic_constraints, "critical,CA:FALSE"},
                                 {NID_key_usage, "critical,digitalSignature"},
                                 {NID_ext_key_usage, "serverAuth"},
                                 {NID_authority_key_identifier, "keyid"},
                                 {NID_subject_alt_name, names}}},
                               issuer->get(), issuer_key->get());
  if (!made) return fail(made.error());
  return pem_of(key->get()).map([&](std::string text) {
    return CertifiedKey{pem_of(made->get()) + pem_of(issuer->get()), std::move(text)};
  });
}

Result<std::string> make_key() {
  auto key = generate();
  if (!key) return fail(key.error());
  return pem_of(key->get());
}

Result<std::string> make_certificate_request(const std::string& key) {
  auto own = read_key(key);
  if (!own) return fail(own.error());
  const SigningRequest request(X509_REQ_new());
  if (!request || X509_REQ_set_pubkey(request.get(), own->get()) != 1 ||
      X509_REQ_sign(request.get(), own->get(), EVP_sha256()) == 0)
    return crypto_failed("a certificate request cannot be made");
  const Bio out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_REQ(out.get(), request.get()) != 1)
    return crypto_failed("a certificate request cannot be written");
  return text_of(out);
}

Result<std::string> sign_client(const CertifiedKey& authority, const std::string& request,
                                const std::string& name, Duration lifetime) {
  auto issuer = parse_certificate(authority.certificate, false);
  if (!issuer) return fail(issuer.error());
  auto issuer_key = read_key(authority.key);
  if (!issuer_key) return fail(issuer_key.error());
  const SigningRequest asked(PEM_read_bio_X509_REQ(reader(request).get(), nullptr, nullptr, nullptr));
  if (!asked) return crypto_failed("this is not a certificate request");
  EVP_PKEY* key = X509_REQ_get0_pubkey(asked.get());
  if (key == nullptr || X509_REQ_verify(asked.get(), key) != 1)
    return crypto_failed("the certificate request is not signed by its key");
  auto made = make_certificate({name,
                                key,
                                lifetime,
                                {{NID_basic_constraints, "critical,CA:FALSE"},
                                 {NID_key_usage, "critical,digitalSignature"},
                                 {NID_ext_key_usage, "clientAuth"},
                                 {NID_authority_key_identifier, "keyid"}}},
                               issuer->get(), issuer_key->get());
  if (!made) return fail(made.error());
  return pem_of(made->get());
}

Result<CertificateFacts> read_certificate(std::string_view pem, bool last) {
  const auto certificate = parse_certificate(pem, last);
  if (!certificate) return fail(certificate.error());
  CertificateFacts facts;
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate->get()), NID_commonName, name, sizeof name);
  facts.name = name;
  facts.fingerprint = fingerprint_of(certificate->get());
  facts.not_before = time_of(X509_get0_notBefore(certificate->get()));
  facts.not_after = time_of(X509_get0_notAfter(certificate->get()));
  facts.hosts = hosts_of(certificate->get());
  return facts;
}

bool should_renew(std::string_view pem, TimePoint now) {
  const auto facts = read_certificate(pem);
  return !facts || now >= facts->not_before + (facts->not_after - facts->not_before) * 2 / 3;
}

}  // namespace slipway::net
