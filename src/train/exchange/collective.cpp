#include "train/exchange/collective.h"

#include <poll.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "train/nn/kernels.h"

namespace slipway::train {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{256} << 10;  // received and added while it is in the cache
constexpr std::size_t halving_floats_max = std::size_t{1}
                                           << 18;  // beyond, the ring is as fast and takes any count

enum class Arrival { add, replace };

// Sends `out` to one peer while receiving `in` from another (or the same): neither can block the other.
Result<void> send_and_receive(Peers& peers, std::uint32_t to, std::span<const float> out, std::uint32_t from,
                              std::span<float> in, Arrival arrival) {
  static thread_local std::vector<char> chunk(chunk_bytes);
  const auto* bytes_out = reinterpret_cast<const char*>(out.data());
  auto* bytes_in = reinterpret_cast<char*>(in.data());
  std::size_t sent = 0, got = 0, held = 0;  // held: bytes in `chunk` not yet added
  Connection &to_peer = peers.sockets[to], &from_peer = peers.sockets[from];
  const Steady::time_point deadline = Steady::now() + peers.wait_limit.timeout;
  const auto add_held = [&] {
    const std::size_t whole = held / sizeof(float);
    float* sum = in.data() + got / sizeof(float);
    const float* both[2] = {sum, reinterpret_cast<const float*>(chunk.data())};
    kernels().sum(sum, both, 2, 0, whole);
    got += whole * sizeof(float);
    held -= whole * sizeof(float);
    std::memmove(chunk.data(), chunk.data() + whole * sizeof(float), held);
  };
  while (sent < out.size_bytes() || to_peer.has_unsent() || got < in.size_bytes()) {
    bool moved = false;
    if (sent < out.size_bytes()) {
      const iovec piece{const_cast<char*>(bytes_out) + sent, std::min(out.size_bytes() - sent, chunk_bytes)};
      const auto put = to_peer.send({&piece, 1}, peers.names[to]);
      if (!put) return fail(put.error());
      sent += *put;
      moved = *put > 0;
    } else if (to_peer.has_unsent()) {
      if (auto flushed = to_peer.flush(peers.names[to]); !flushed) return flushed;
      moved = !to_peer.has_unsent();
    }
    if (got < in.size_bytes()) {
      const bool adds = arrival == Arrival::add;
      const std::size_t size_max =
          adds ? std::min(chunk_bytes - held, in.size_bytes() - got - held) : in.size_bytes() - got;
      const auto came =
          from_peer.receive(adds ? chunk.data() + held : bytes_in + got, size_max, peers.names[from]);
      if (!came) return fail(came.error());
      if (adds) {
        held += *came;
        add_held();
      } else {
        got += *came;
      }
      moved = moved || *came > 0;
    }
    if (moved) continue;
    const Steady::time_point limit =
        peers.wait_limit.stop != nullptr ? peers.wait_limit.stop->limit(deadline) : deadline;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - Steady::now()).count();
    if (left <= 0) return fail(lost(peers.names[got < in.size_bytes() ? from : to], "timed out"));
    const bool sends = sent < out.size_bytes() || to_peer.has_unsent();
    pollfd fds[2] = {{sends ? to_peer.fd() : -1, POLLOUT, 0},
                     {got < in.size_bytes() ? from_peer.fd() : -1, POLLIN, 0}};
    ::poll(fds, 2, static_cast<int>(std::min<long long>(left, 1000)));
  }
  return {};
}

struct Part {
  std::size_t begin, end;
};

std::span<float> of(std::span<float> values, Part part) {
  return values.subspan(part.begin, part.end - part.begin);
}

}  // namespace

Result<void> all_reduce_ring(Peers& peers, std::span<float> values) {
  const std::uint32_t n = peers.count(), me = peers.rank;
  const std::uint32_t right = (me + 1) % n, left = (me + n - 1) % n;
  const auto part = [&](std::uint32_t i) {
    return Part{values.size() * (i % n) / n, values.size() * (i % n + 1) / n};
  };
  for (std::uint32_t round = 0; round + 1 < n; ++round)
    if (auto done = send_and_receive(peers, right, of(values, part(me + n - round)), left,
                                     of(values, part(me + 2 * n - round - 1)), Arrival::add);
        !done)
      return done;
  for (std::uint32_t round = 0; round + 1 < n; ++round)
    if (auto done = send_and_receive(peers, right, of(values, part(me + 1 + n - round)), left,
                                     of(values, part(me + n - round)), Arrival::replace);
        !done)
      return done;
  return {};
}

Result<void> all_reduce_halving(Peers& peers, std::span<float> values) {
  SLIPWAY_CHECK(std::has_single_bit(peers.count()));
  Part mine{0, values.size()};
  std::vector<Part> given;  // what went to the partner in each round, to come back in reverse
  for (std::uint32_t distance = 1; distance < peers.count(); distance *= 2) {
    const std::uint32_t partner = peers.rank ^ distance;
    const std::size_t middle = mine.begin + (mine.end - mine.begin) / 2;
    const Part low{mine.begin, middle}, high{middle, mine.end};
    const bool keep_low = (peers.rank & distance) == 0;
    const Part kept = keep_low ? low : high, other = keep_low ? high : low;
    if (auto done =
            send_and_receive(peers, partner, of(values, other), partner, of(values, kept), Arrival::add);
        !done)
      return done;
    given.push_back(other);
    mine = kept;
  }
  for (std::uint32_t distance = peers.count() / 2; distance > 0; distance /= 2) {
    const std::uint32_t partner = peers.rank ^ distance;
    const Part back = given.back();
    given.pop_back();
    if (auto done =
            send_and_receive(peers, partner, of(values, mine), partner, of(values, back), Arrival::replace);
        !done)
      return done;
    mine = {std::min(mine.begin, back.begin), std::max(mine.end, back.end)};
  }
  return {};
}

Result<void> all_reduce(Peers& peers, std::span<float> values) {
  if (peers.count() < 2) return {};
  const bool halving =
      std::has_single_bit(peers.count()) && (peers.count() == 2 || values.size() <= halving_floats_max);
  return halving ? all_reduce_halving(peers, values) : all_reduce_ring(peers, values);
}

Result<void> broadcast(Peers& peers, std::span<float> values, std::uint32_t from) {
  // A chain: every machine passes on what it has; used once per forming of a group, so its latency does not
  // matter.
  const std::uint32_t n = peers.count(), position = (peers.rank + n - from) % n;
  const std::uint32_t before = (peers.rank + n - 1) % n, after = (peers.rank + 1) % n;
  if (position > 0)
    if (auto got = send_and_receive(peers, before, {}, before, values, Arrival::replace); !got) return got;
  if (position + 1 < n)
    if (auto sent = send_and_receive(peers, after, values, after, {}, Arrival::replace); !sent) return sent;
  return {};
}

void all_reduce_reference(std::vector<std::vector<float>>& arrays) {
  for (std::size_t i = 0; i < arrays[0].size(); ++i) {
    double sum = 0;
    for (const auto& array : arrays) sum += array[i];
    for (auto& array : arrays) array[i] = static_cast<float>(sum);
  }
}

}  // namespace slipway::train
