#pragma once
// How two processes of a run prove to each other that they know the gang's key, before anything else is said.
// Pure: frames in, frames out.
//
//   connecting  challenge  its nonce; flag_encrypt when it wants the connection encrypted
//   accepting   answer     its nonce and its proof; flag_encrypt when either side wants it
//   connecting  proof      its proof
//
// A proof is an HMAC over both nonces and over what was agreed, and so is the key of each direction. Whoever
// changes a flag on the way is found out by the proofs.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "train/exchange/frame.h"

namespace slipway::train {

struct GangKey {
  enum class Encryption { between_hosts, always, never };
  std::string secret = {};  // empty: peers are neither authenticated nor encrypted
  Encryption encryption = Encryption::between_hosts;

  bool is_set() const { return !secret.empty(); }
};

struct CipherKeys {  // 32 bytes each
  std::string sending, receiving;
};

struct HandshakeMessage {
  Frame frame;
  std::string payload;
};

inline constexpr std::size_t nonce_bytes = 32;  // hexadecimal
inline constexpr std::size_t proof_bytes = 32;

// What both sides know after the answer.
struct Agreement {
  std::string connecting_nonce, accepting_nonce;
  bool encrypted = false;
};

class ConnectingHandshake {
 public:
  ConnectingHandshake(const GangKey& key, bool same_host, std::string nonce);
  HandshakeMessage challenge() const;
  // The proof to send, or why the peer is not one of this gang; `peer` is for the message.
  Result<HandshakeMessage> take(const Frame& frame, std::string_view payload, const std::string& peer);
  // After the proof; nothing where the connection stays as it is.
  std::optional<CipherKeys> keys() const;

 private:
  std::string secret_;
  Agreement agreed_;
};

class AcceptingHandshake {
 public:
  AcceptingHandshake(const GangKey& key, bool same_host, std::string nonce);
  // At once where there is no key.
  bool is_done() const { return phase_ == Phase::done; }
  // The answer to send, if one is due, or why the peer is refused. It is not called once it is done.
  Result<std::optional<HandshakeMessage>> take(const Frame& frame, std::string_view payload);
  std::optional<CipherKeys> keys() const;

 private:
  enum class Phase { challenge, proof, done };
  std::string secret_;
  Phase phase_;
  Agreement agreed_;
};

// Of a challenge that comes to a process without a key.
Error has_no_key();

}  // namespace slipway::train
