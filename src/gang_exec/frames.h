#pragma once
// The protocol between a start server and its client: frames of one byte of kind, four bytes of length
// (most significant first) and the payload. Pure; every length is checked before anything is kept.
//
//   client  hello      protocol line, then a nonce
//   server  challenge  a nonce, then its proof that it knows the secret
//   client  proof      digest of the request, then its proof over both nonces and that digest
//   client  request    what to run; then input …, input_end
//   server  output / error_output …, then ended; or refused with the reason
//
// Both sides authenticate: neither runs nor reveals anything to an unknown process that took the port. From
// the request on the payloads are encrypted (base/message_cipher.h), with a key of this connection for each
// direction; unless the hello says `slipway-start 1`, which is only taken where the network is trusted.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gang_exec/environment.h"

namespace slipway::gang_exec {

enum class FrameKind : std::uint8_t {
  hello = 1,
  challenge = 2,
  proof = 3,
  request = 4,
  input = 5,
  input_end = 6,
  output = 7,
  error_output = 8,
  ended = 9,
  refused = 10,
};

struct Frame {
  FrameKind kind{};
  std::string payload;
};

inline constexpr std::size_t greeting_max = 256;      // hello, challenge, proof
inline constexpr std::size_t request_max = 4u << 20;  // arguments and environment
inline constexpr std::size_t data_max = 64u << 10;    // input, output
inline constexpr std::string_view hello_line = "slipway-start 2\n";
inline constexpr std::string_view plain_hello_line = "slipway-start 1\n";  // of the same length
inline constexpr std::size_t nonce_size = 32;                              // characters of hexadecimal
inline constexpr std::size_t mac_size = 64;

std::string format_frame(FrameKind kind, std::string_view payload);

class FrameReader {  // add() what arrives, then take next() until there is none
 public:
  explicit FrameReader(std::size_t payload_max) : payload_max_(payload_max) {}
  void set_max(std::size_t payload_max) { payload_max_ = payload_max; }
  void add(std::string_view bytes) { buffer_.append(bytes); }
  // Error `invalid` for an unknown kind, `too_large` for a payload over the limit; nothing is read after it.
  Result<std::optional<Frame>> next();
  std::size_t buffered() const { return buffer_.size(); }

 private:
  std::size_t payload_max_;
  std::string buffer_;
};

struct StartRequest {
  std::vector<std::string> argv;  // not empty
  Environment variables;
};
std::string format_request(const StartRequest& request);
Result<StartRequest> parse_request(std::string_view payload);

std::string format_end(const ExitStatus& end);
Result<ExitStatus> parse_end(std::string_view payload);

// HMAC-SHA256 as hexadecimal.
std::string mac(std::string_view secret, std::string_view message);

struct Nonces {
  std::string client;
  std::string server;
};
std::string server_proof(std::string_view secret, const Nonces& nonces);
// The keys of a connection's ciphers, one for what each side sends.
std::string client_key(std::string_view secret, const Nonces& nonces);
std::string server_key(std::string_view secret, const Nonces& nonces);
std::string client_proof(std::string_view secret, const Nonces& nonces, std::string_view request_digest);

}  // namespace slipway::gang_exec
