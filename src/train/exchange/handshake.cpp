#include "train/exchange/handshake.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/hmac.h"

namespace slipway::train {
namespace {

constexpr std::string_view one_key =
    "start every process of the run in one job, or give all of them the same SLIPWAY_GANG_KEY";

bool wants_encryption(const GangKey& key, bool same_host) {
  switch (key.encryption) {
    case GangKey::Encryption::always: return true;
    case GangKey::Encryption::never: return false;
    case GangKey::Encryption::between_hosts: break;
  }
  return !same_host;
}

std::string made_from(const std::string& secret, std::string_view label, const Agreement& agreed) {
  return hmac_sha256(secret, fmt::format("slipway-train {}\n{}{}{}", label, agreed.encrypted ? 'e' : 'p',
                                         agreed.connecting_nonce, agreed.accepting_nonce));
}

std::uint32_t flag_of(bool encrypted) { return encrypted ? std::uint32_t{flag_encrypt} : 0; }
bool is_encrypted(const Frame& frame) { return (frame.flags & flag_encrypt) != 0; }

}  // namespace

Error has_no_key() {
  return {ErrorCode::denied, "it has a gang key (SLIPWAY_GANG_KEY) and this process has none",
          std::string(one_key)};
}

ConnectingHandshake::ConnectingHandshake(const GangKey& key, bool same_host, std::string nonce)
    : secret_(key.secret), agreed_{std::move(nonce), {}, wants_encryption(key, same_host)} {
  SLIPWAY_CHECK(key.is_set() && agreed_.connecting_nonce.size() == nonce_bytes);
}

HandshakeMessage ConnectingHandshake::challenge() const {
  return {{.kind = FrameKind::challenge, .flags = flag_of(agreed_.encrypted), .bytes = nonce_bytes},
          agreed_.connecting_nonce};
}

Result<HandshakeMessage> ConnectingHandshake::take(const Frame& frame, std::string_view payload,
                                                   const std::string& peer) {
  const auto stranger = [&] {
    return fail(ErrorCode::denied,
                fmt::format("{} does not know the gang key (SLIPWAY_GANG_KEY) of this process", peer),
                "another program may listen there; " + std::string(one_key));
  };
  if (frame.kind != FrameKind::answer || payload.size() != nonce_bytes + proof_bytes) return stranger();
  if (agreed_.encrypted && !is_encrypted(frame)) return stranger();  // it may only ask for more
  agreed_.encrypted = is_encrypted(frame);
  agreed_.accepting_nonce = payload.substr(0, nonce_bytes);
  if (!is_equal_in_constant_time(payload.substr(nonce_bytes), made_from(secret_, "accepting", agreed_)))
    return stranger();
  return HandshakeMessage{{.kind = FrameKind::proof, .bytes = proof_bytes},
                          made_from(secret_, "connecting", agreed_)};
}

std::optional<CipherKeys> ConnectingHandshake::keys() const {
  if (!agreed_.encrypted) return std::nullopt;
  return CipherKeys{made_from(secret_, "connecting key", agreed_),
                    made_from(secret_, "accepting key", agreed_)};
}

AcceptingHandshake::AcceptingHandshake(const GangKey& key, bool same_host, std::string nonce)
    : secret_(key.secret),
      phase_(key.is_set() ? Phase::challenge : Phase::done),
      agreed_{{}, std::move(nonce), key.is_set() && wants_encryption(key, same_host)} {
  SLIPWAY_CHECK(agreed_.accepting_nonce.size() == nonce_bytes);
}

Result<std::optional<HandshakeMessage>> AcceptingHandshake::take(const Frame& frame,
                                                                 std::string_view payload) {
  if (phase_ == Phase::challenge && frame.kind == FrameKind::challenge && payload.size() == nonce_bytes) {
    agreed_.connecting_nonce = payload;
    agreed_.encrypted = agreed_.encrypted || is_encrypted(frame);
    phase_ = Phase::proof;
    return HandshakeMessage{
        {.kind = FrameKind::answer, .flags = flag_of(agreed_.encrypted), .bytes = nonce_bytes + proof_bytes},
        agreed_.accepting_nonce + made_from(secret_, "accepting", agreed_)};
  }
  if (phase_ == Phase::proof && frame.kind == FrameKind::proof) {
    if (!is_equal_in_constant_time(payload, made_from(secret_, "connecting", agreed_)))
      return fail(ErrorCode::denied, "its gang key (SLIPWAY_GANG_KEY) is another than that of this run",
                  std::string(one_key));
    phase_ = Phase::done;
    return std::nullopt;
  }
  return fail(ErrorCode::denied, "it has no gang key (SLIPWAY_GANG_KEY) and this run has one",
              std::string(one_key));
}

std::optional<CipherKeys> AcceptingHandshake::keys() const {
  if (!is_done() || !agreed_.encrypted) return std::nullopt;
  return CipherKeys{made_from(secret_, "accepting key", agreed_),
                    made_from(secret_, "connecting key", agreed_)};
}

}  // namespace slipway::train
