#include "train/exchange/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <numeric>
#include <thread>

#include "base/message_cipher.h"

namespace slipway::train {
namespace {

using namespace std::chrono_literals;

const WaitLimit soon{20s, nullptr};
const CipherKeys keys{std::string(32, 's'), std::string(32, 'r')};
const CipherKeys crossed{keys.receiving, keys.sending};

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    a = Connection(Fd(fds[0]));
    b = Connection(Fd(fds[1]));
  }
  Connection a, b;
};

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  return bytes;
}

TEST(Connection, CarriesEverySizePlainAndEncrypted) {
  for (const bool encrypted : {false, true})
    for (const std::size_t size :
         {std::size_t{1}, record_max - 1, record_max, record_max + 1, 5 * record_max + 77}) {
      SCOPED_TRACE(std::to_string(size) + (encrypted ? " encrypted" : " plain"));
      Pair pair;
      if (encrypted) {
        pair.a.encrypt(keys);
        pair.b.encrypt(crossed);
      }
      const std::string sent = pattern(size);
      std::jthread sender([&] {
        const std::size_t half = size / 2;
        iovec parts[3] = {{const_cast<char*>(sent.data()), half},
                          {nullptr, 0},
                          {const_cast<char*>(sent.data()) + half, size - half}};
        const auto done = send_all(pair.a, parts, "b", soon);
        EXPECT_TRUE(done) << done.error().what;
      });
      std::string got(size, '\0');
      const auto done = receive_all(pair.b, got.data(), size, "a", soon);
      ASSERT_TRUE(done) << done.error().what;
      EXPECT_EQ(got, sent);
    }
}

// What `a` puts on the wire for one message, encrypted.
std::string sealed(Pair& pair, const std::string& message) {
  pair.a.encrypt(keys);
  iovec part{const_cast<char*>(message.data()), message.size()};
  EXPECT_TRUE(send_all(pair.a, {&part, 1}, "b", soon));
  std::string wire(message.size() + 4 + MessageCipher::overhead, '\0');
  EXPECT_TRUE(receive_all(pair.b, wire.data(), wire.size(), "a", soon));
  return wire;
}

TEST(Connection, HidesWhatItCarriesAndNoticesEveryChange) {
  const std::string message = "gradients, gradients";
  Pair recorded;
  const std::string wire = sealed(recorded, message);
  EXPECT_EQ(wire.find("gradients"), std::string::npos);
  const auto received = [&](const std::string& bytes) -> Result<std::string> {
    Pair pair;
    pair.b.encrypt(crossed);
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    EXPECT_TRUE(send_all(pair.a, {&part, 1}, "b", soon));
    pair.a.close();
    std::string got(message.size(), '\0');
    if (auto done = receive_all(pair.b, got.data(), got.size(), "a", soon); !done) return fail(done.error());
    return got;
  };
  EXPECT_EQ(received(wire).value(), message);
  for (std::size_t at = 0; at < wire.size(); ++at) {
    std::string changed = wire;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    const auto got = received(changed);
    ASSERT_FALSE(got) << at;
    EXPECT_EQ(got.error().code, ErrorCode::unavailable) << "as a peer that was lost";
  }
  EXPECT_FALSE(received(std::string(4, '\xff'))) << "nothing is kept for a record of 4 GiB";
}

TEST(Connection, DoesNotWaitForAPeerThatDoesNotRead) {
  for (const bool encrypted : {false, true}) {
    Pair pair;
    if (encrypted) pair.a.encrypt(keys);
    const std::string bytes = pattern(record_max);
    const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    std::size_t taken = 0;
    for (;;) {
      const auto put = pair.a.send({&part, 1}, "b");
      ASSERT_TRUE(put);
      if (*put == 0) break;
      taken += *put;
    }
    EXPECT_GT(taken, 0U);
    EXPECT_EQ(pair.a.has_unsent(), encrypted) << "the rest of a record";
    if (encrypted) pair.b.encrypt(crossed);
    std::string got(taken, '\0');
    std::jthread reader([&] { EXPECT_TRUE(receive_all(pair.b, got.data(), got.size(), "a", soon)); });
    EXPECT_TRUE(send_all(pair.a, {}, "b", soon)) << "sends what is left";
    EXPECT_FALSE(pair.a.has_unsent());
  }
}

}  // namespace
}  // namespace slipway::train
