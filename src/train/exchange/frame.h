#pragma once
// The unit of our wire protocol: 40 bytes of header with their own checksum, then `bytes` bytes of payload.
//
// A stranger that connects (a port scan, an HTTP client, a process of another version) is recognized by its
// first header and refused by name; it cannot make us allocate, because payload sizes are known beforehand.
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipway::train {

enum class FrameKind : std::uint16_t {
  hello = 1,  // who connects, with its plan as text
  welcome,    // the other side's state as text
  start,      // the chief gives a server values, or names the checkpoint to load
  pull,       // asks for values of a step
  values,     // answer to pull and push
  push,       // gradients of a step
  bye,        // leaves on purpose
  refuse,     // and why, as text
  table,      // who is where: the answer of rank 0 to the ranks of an all-reduce
  ready,      // a rank has what the table asks of it
  challenge,  // handshake.h; before all others
  answer,
  proof,
};

enum FrameFlag : std::uint32_t {
  flag_half = 1U << 0,        // gradients as 16-bit floats
  flag_top = 1U << 1,         // only the largest gradients, as indices and values
  flag_checkpoint = 1U << 2,  // save after this step
  flag_finish = 1U << 3,      // the run is over; this step is not applied
  flag_stop = 1U << 4,        // the sender leaves after this step
  flag_dropped = 1U << 5,     // your gradients came too late and were not used
  flag_not_finite = 1U << 6,  // the loss is not a number; the step was not applied
  flag_restore = 1U << 7,     // in start: load your checkpoint of this step
  flag_ready = 1U << 8,       // in welcome: this server has values
  flag_missing = 1U << 9,     // in values: the step asked for is no longer here
  flag_encrypt = 1U << 10,    // in challenge and answer
};

struct Frame {
  FrameKind kind = FrameKind::hello;
  std::uint32_t flags = 0;
  std::uint32_t sender = 0;
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

inline constexpr std::size_t frame_bytes = 40;
std::array<std::uint8_t, frame_bytes> format_frame(const Frame& frame);
// Error `invalid` when it is not one of our headers.
Result<Frame> parse_frame(std::span<const std::uint8_t, frame_bytes> bytes);

// A few numbers that travel with gradients, before them; summed like them.
struct Tail {
  float loss = 0;
  float correct = 0;
  float samples = 0;
  float stop = 0;    // how many want to stop after this step
  float finish = 0;  // how many say that the run is over
  float padding[11] = {};
};
static_assert(sizeof(Tail) == 64);
inline constexpr std::size_t tail_floats = sizeof(Tail) / sizeof(float);
inline Tail read_tail(const void* from) {
  Tail tail;
  std::memcpy(static_cast<void*>(&tail), from, sizeof tail);
  return tail;
}

// Gradients made smaller for the wire. Top sends the largest `share` of values by size as (count, indices,
// values); what is not sent stays in `rest` and is added the next time, so nothing is lost for good.
struct Compression {
  enum class Kind : std::uint8_t { none, half, top } kind = Kind::none;
  double share = 0.01;
};
Result<Compression> parse_compression(std::string_view text);
void compress_top(std::span<const float> values, std::span<float> rest, double share, std::string& out);
// Error `invalid` when the bytes do not describe values below out.size().
Result<void> expand_top(std::span<const std::uint8_t> bytes, std::span<float> out);
std::size_t top_bytes_max(std::size_t values);

}  // namespace slipway::train
