// The body of POST /v1/nodes/certificate, and what is signed there.
#include "net/certificates.h"
#include "target.h"
#include "wire/records.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const net::CertifiedKey authority = net::make_authority("fuzz").value();
  fuzz::check_explained(wire::parse_certificate_request(fuzz::text(data, size)));
  fuzz::check_explained(net::sign_client(authority, std::string(fuzz::text(data, size)), "n", 1h));
  fuzz::check_explained(net::read_certificate(fuzz::text(data, size)));
  return 0;
}
