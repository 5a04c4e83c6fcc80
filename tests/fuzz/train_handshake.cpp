// What a stranger sends before it has proved itself: to a process that accepts, and as the answer to one that
// connects: frames one after another.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "base/crc32c.h"
#include "target.h"
#include "train/exchange/handshake.h"

using namespace slipway;
using namespace slipway::train;

namespace {

const GangKey key{"a key that no input has"};
const std::string nonce(nonce_bytes, 'n');

// The next frame and its payload of the input; its checksum is repaired, or few inputs would pass it.
std::optional<HandshakeMessage> next(std::string_view& bytes) {
  if (bytes.size() < frame_bytes) return std::nullopt;
  std::array<std::uint8_t, frame_bytes> header{};
  std::memcpy(header.data(), bytes.data(), frame_bytes);
  const std::uint32_t crc = slipway::crc32c(header.data(), 36);
  std::memcpy(header.data() + 36, &crc, 4);
  bytes.remove_prefix(frame_bytes);
  const auto frame = parse_frame(header);
  fuzz::check_explained(frame);
  if (!frame) return std::nullopt;
  const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(frame->bytes, bytes.size()));
  HandshakeMessage message{*frame, std::string(bytes.substr(0, size))};
  bytes.remove_prefix(size);
  return message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text(data, size);
  for (const bool same_host : {true, false}) {
    AcceptingHandshake accepting(key, same_host, nonce);
    for (std::string_view rest = input;;) {
      const auto message = next(rest);
      if (!message) break;
      const auto answer = accepting.take(message->frame, message->payload);
      fuzz::check_explained(answer);
      SLIPWAY_CHECK(!accepting.is_done());  // nobody guesses a proof
      if (!answer) break;
    }
    ConnectingHandshake connecting(key, same_host, nonce);
    std::string_view rest = input;
    if (const auto message = next(rest)) {
      const auto proof = connecting.take(message->frame, message->payload, "a peer");
      SLIPWAY_CHECK(!proof && !proof.error().what.empty());
    }
  }
  return 0;
}
