#include "train/exchange/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/crc32c.h"

namespace slipway::train {
namespace {

constexpr std::uint32_t magic = 0x57504c53;  // "SLPW"
constexpr std::uint16_t version = 2;

template <class T>
void put(std::uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
T get(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

std::array<std::uint8_t, frame_bytes> format_frame(const Frame& frame) {
  std::array<std::uint8_t, frame_bytes> bytes{};
  put(&bytes[0], magic);
  put(&bytes[4], version);
  put(&bytes[6], static_cast<std::uint16_t>(frame.kind));
  put(&bytes[8], frame.flags);
  put(&bytes[12], frame.sender);
  put(&bytes[16], frame.step);
  put(&bytes[24], frame.bytes);
  put(&bytes[36], crc32c(bytes.data(), 36));
  return bytes;
}

Result<Frame> parse_frame(std::span<const std::uint8_t, frame_bytes> bytes) {
  if (get<std::uint32_t>(&bytes[0]) != magic)
    return fail(ErrorCode::invalid, "protocol error: it is no process of slipway-train",
                "check that the address belongs to a process of this run");
  if (get<std::uint16_t>(&bytes[4]) != version)
    return fail(ErrorCode::invalid,
                fmt::format("its protocol version is {}, that of this program {}",
                            get<std::uint16_t>(&bytes[4]), version),
                "run the same slipway-train everywhere");
  if (get<std::uint32_t>(&bytes[36]) != crc32c(bytes.data(), 36))
    return fail(ErrorCode::invalid, "it sent a damaged header");
  const auto kind = get<std::uint16_t>(&bytes[6]);
  if (kind < static_cast<std::uint16_t>(FrameKind::hello) ||
      kind > static_cast<std::uint16_t>(FrameKind::proof))
    return fail(ErrorCode::invalid, fmt::format("it sent an unknown message {}", kind));
  return Frame{static_cast<FrameKind>(kind), get<std::uint32_t>(&bytes[8]), get<std::uint32_t>(&bytes[12]),
               get<std::uint64_t>(&bytes[16]), get<std::uint64_t>(&bytes[24])};
}

Result<Compression> parse_compression(std::string_view text) {
  if (text == "none") return Compression{};
  if (text == "fp16") return Compression{Compression::Kind::half};
  Compression top{Compression::Kind::top};
  if (text.starts_with("topk=")) {
    const std::string_view share = text.substr(5);
    const auto [end, error] = std::from_chars(share.data(), share.data() + share.size(), top.share);
    if (error == std::errc() && end == share.data() + share.size() && top.share > 0 && top.share <= 1)
      return top;
  }
  return fail(ErrorCode::invalid, fmt::format("--compress {} is not known", text),
              "use none, fp16, or topk=0.01 for the largest hundredth of the gradients");
}

std::size_t top_bytes_max(std::size_t values) { return 4 + values * 8; }

void compress_top(std::span<const float> values, std::span<float> rest, double share, std::string& out) {
  const std::size_t n = values.size();
  for (std::size_t i = 0; i < n; ++i) rest[i] += values[i];
  const std::size_t count = std::clamp<std::size_t>(
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(n))), std::min<std::size_t>(n, 1), n);
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  // Ties are broken by position, so that the choice does not depend on the library.
  const auto larger = [&](std::uint32_t a, std::uint32_t b) {
    const float x = std::abs(rest[a]), y = std::abs(rest[b]);
    return x != y ? x > y : a < b;
  };
  if (count < n)
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), larger);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
  out.resize(top_bytes_max(count));
  const auto sent = static_cast<std::uint32_t>(count);
  std::memcpy(out.data(), &sent, 4);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out.data() + 4 + i * 4, &order[i], 4);
    std::memcpy(out.data() + 4 + count * 4 + i * 4, &rest[order[i]], 4);
    rest[order[i]] = 0;
  }
}

Result<void> expand_top(std::span<const std::uint8_t> bytes, std::span<float> out) {
  const auto wrong = [] {
    return fail(ErrorCode::invalid, "it sent compressed gradients that make no sense");
  };
  if (bytes.size() < 4) return wrong();
  const std::size_t count = get<std::uint32_t>(bytes.data());
  if (count > out.size() || bytes.size() != top_bytes_max(count)) return wrong();
  std::fill(out.begin(), out.end(), 0.0F);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = get<std::uint32_t>(bytes.data() + 4 + i * 4);
    if (at >= out.size()) return wrong();
    out[at] = get<float>(bytes.data() + 4 + count * 4 + i * 4);
  }
  return {};
}

}  // namespace slipway::train
