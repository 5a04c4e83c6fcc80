#pragma once
// Certificates: an authority of one's own, and what it signs. Keys are elliptic (P-256). Everything is text
// in PEM; a fingerprint is the SHA-256 of a certificate's DER form, in hexadecimal.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace slipway::net {

struct CertifiedKey {
  std::string certificate;  // of a server: with its issuer behind it
  std::string key;
};

// A key and a certificate that may sign others, for ten years.
Result<CertifiedKey> make_authority(const std::string& name);
// For a server that is reached by these names and addresses.
Result<CertifiedKey> issue_server(const CertifiedKey& authority, const std::vector<std::string>& hosts,
                                  Duration lifetime);

Result<std::string> make_key();
// Asks for a certificate for this key; who signs decides the name.
Result<std::string> make_certificate_request(const std::string& key);
// For a client; the request proves that the asker has the key.
Result<std::string> sign_client(const CertifiedKey& authority, const std::string& request,
                                const std::string& name, Duration lifetime);

struct CertificateFacts {
  std::string name;  // the common name of its subject
  std::string fingerprint;
  TimePoint not_before{};
  TimePoint not_after{};
  std::vector<std::string> hosts;  // names and addresses it is for
};
// Of the first certificate in the text, or of the last: the issuer that a server sends along.
Result<CertificateFacts> read_certificate(std::string_view pem, bool last = false);

// Past two thirds of its lifetime; also where it cannot be read.
bool should_renew(std::string_view pem, TimePoint now);

}  // namespace slipway::net
