// A start server and those who mistreat it.
#include "gang_exec/start_server.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "base/random.h"
#include "base/sha256.h"

namespace slipway::gang_exec {
namespace {

constexpr auto patience = 30s;

class Served {  // a server on a free port of its own thread
 public:
  explicit Served(ServeOptions options = {}) : stop_(::eventfd(0, EFD_CLOEXEC)) {
    gang.nodes = {{"lab-1", "127.0.0.1", 0}};
    gang.secret = "0123456789abcdef";
    server_ =
        StartServer::listen(gang, {{"PATH", "/usr/bin:/bin"}, {"SLIPWAY_NODE", "lab-1"}}, options).value();
    gang.nodes[0].port = server_->port();
    thread_ = std::jthread([this] { server_->serve(stop_.get()); });
  }
  ~Served() { stop(); }
  void stop() {
    const std::uint64_t one = 1;
    if (thread_.joinable() && ::write(stop_.get(), &one, sizeof one) == sizeof one) thread_.join();
  }
  Channel dial() const { return {connect_to(gang.nodes[0], Steady::now() + patience).value(), request_max}; }
  Gang gang;

 private:
  Fd stop_;
  std::unique_ptr<StartServer> server_;
  std::jthread thread_;
};

// The next frame, or nothing when the connection is closed.
std::optional<Frame> next(Channel& channel) {
  const auto deadline = Steady::now() + patience;
  while (Steady::now() < deadline) {
    auto frame = channel.next();
    if (!frame) return std::nullopt;
    if (*frame) return std::move(**frame);
    if (!channel.flush()) return std::nullopt;
    ::pollfd wanted{channel.fd(), static_cast<short>(POLLIN | (channel.queued() > 0 ? POLLOUT : 0)), 0};
    ::poll(&wanted, 1, 1000);
    if ((wanted.revents & (POLLIN | POLLHUP)) != 0 && !channel.receive()) return std::nullopt;
  }
  ADD_FAILURE() << "the server neither answers nor closes";
  return std::nullopt;
}

Nonces greet(Channel& channel) {
  Nonces nonces{random_hex(nonce_size / 2), {}};
  channel.send(FrameKind::hello, std::string(hello_line) + nonces.client);
  const auto challenge = next(channel);
  if (!challenge || challenge->kind != FrameKind::challenge) ADD_FAILURE() << "no challenge";
  if (challenge) nonces.server = challenge->payload.substr(0, nonce_size);
  return nonces;
}

void ask(Channel& channel, const std::string& secret, const std::string& payload) {
  const Nonces nonces = greet(channel);
  const std::string digest = sha256_hex(payload);
  channel.send(FrameKind::proof, digest + client_proof(secret, nonces, digest));
  channel.encrypt(client_key(secret, nonces), server_key(secret, nonces));
  channel.send(FrameKind::request, payload);
  channel.set_max(data_max);
}

void ask_to_run(Channel& channel, const Served& served, const std::string& line) {
  ask(channel, served.gang.secret,
      format_request({{"/bin/sh", "-c", line}, {{"SLIPWAY_NODE", "x"}, {"A", "b"}}}));
}

// Everything the command wrote, and how it ended.
std::pair<std::string, std::optional<ExitStatus>> finish(Channel& channel) {
  std::string text;
  while (auto frame = next(channel)) {
    if (frame->kind == FrameKind::ended) return {text, parse_end(frame->payload).value()};
    text += frame->payload;
  }
  return {text, std::nullopt};
}

bool ends(pid_t pid) {
  const auto deadline = Steady::now() + patience;
  while (Steady::now() < deadline) {
    if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
    ::poll(nullptr, 0, 10);
  }
  return false;
}

TEST(StartServer, RunsCommandsOfAuthenticatedPeers) {
  Served served;
  Channel channel = served.dial(), other = served.dial();
  ask_to_run(channel, served, "read word; echo $word $SLIPWAY_NODE $A; echo wrong >&2; exit 3");
  ask_to_run(other, served, "cat | wc -c");
  const std::string piece(data_max, 'x');
  for (int i = 0; i < 32; ++i) other.send(FrameKind::input, piece);
  other.send(FrameKind::input_end, {});
  channel.send(FrameKind::input, "hello\n");
  const auto [text, end] = finish(channel);
  EXPECT_TRUE(text == "hello lab-1 b\nwrong\n" || text == "wrong\nhello lab-1 b\n") << text;
  EXPECT_EQ(end, (ExitStatus{false, 3}));
  EXPECT_EQ(finish(other).first, std::to_string(32 * data_max) + "\n");
}

// H7: environments and output went in the clear.
TEST(StartServer, H7_WhatIsSentBetweenNodesIsEncrypted) {
  Served served;
  const std::string request = format_request({{"/bin/sh", "-c", "true"}, {}});
  {
    SCOPED_TRACE("a peer that asks for plain frames");
    Channel channel = served.dial();
    channel.send(FrameKind::hello, std::string(plain_hello_line) + std::string(nonce_size, 'a'));
    EXPECT_FALSE(next(channel));
  }
  {
    SCOPED_TRACE("a plain request after the proof");
    Channel channel = served.dial();
    const Nonces nonces = greet(channel);
    const std::string digest = sha256_hex(request);
    channel.send(FrameKind::proof, digest + client_proof(served.gang.secret, nonces, digest));
    channel.send(FrameKind::request, request);
    const auto frame = next(channel);  // encrypted: what it says is not for us
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->kind, FrameKind::refused);
    EXPECT_EQ(frame->payload.find("changed"), std::string::npos);
  }
  {
    SCOPED_TRACE("what goes over the wire");
    Channel channel = served.dial();
    const Nonces nonces = greet(channel);
    const std::string asked = format_request({{"/bin/sh", "-c", "echo $WORD"}, {{"WORD", "hush-hush"}}});
    const std::string digest = sha256_hex(asked);
    channel.send(FrameKind::proof, digest + client_proof(served.gang.secret, nonces, digest));
    MessageCipher seals(client_key(served.gang.secret, nonces));
    MessageCipher opens(server_key(served.gang.secret, nonces));
    const std::string sealed = seals.seal(static_cast<unsigned char>(FrameKind::request), asked);
    EXPECT_EQ(sealed.find("hush-hush"), std::string::npos);
    channel.send(FrameKind::request, sealed);
    const auto answer = next(channel);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->payload.find("hush-hush"), std::string::npos);
    EXPECT_EQ(opens.open(static_cast<unsigned char>(answer->kind), answer->payload).value(), "hush-hush\n");
  }
}

TEST(StartServer, ReportsSignalsAndFailedStarts) {
  Served served;
  Channel killed = served.dial(), missing = served.dial();
  ask_to_run(killed, served, "kill -TERM $$");
  EXPECT_EQ(finish(killed).second, (ExitStatus{true, SIGTERM}));
  ask(missing, served.gang.secret, format_request({{"no-such-program"}, {}}));
  const auto frame = next(missing);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, FrameKind::refused);
  EXPECT_NE(frame->payload.find("no-such-program"), std::string::npos);
}

TEST(StartServer, ProvesThatItKnowsTheSecret) {
  Served served;
  Channel channel = served.dial();
  Nonces nonces{std::string(nonce_size, 'a'), {}};
  channel.send(FrameKind::hello, std::string(hello_line) + nonces.client);
  const auto challenge = next(channel);
  ASSERT_TRUE(challenge);
  nonces.server = challenge->payload.substr(0, nonce_size);
  EXPECT_EQ(challenge->payload.substr(nonce_size), server_proof(served.gang.secret, nonces));
}

TEST(StartServer, DropsUnauthenticatedPeers) {
  Served served;
  const std::string request = format_request({{"/bin/sh", "-c", "echo ran"}, {}});
  {
    SCOPED_TRACE("another secret");
    Channel channel = served.dial();
    ask(channel, "another secret of theirs", request);
    EXPECT_FALSE(next(channel));
  }
  {
    SCOPED_TRACE("another request than was proved");
    Channel channel = served.dial();
    const Nonces nonces = greet(channel);
    const std::string digest = sha256_hex("other");
    channel.send(FrameKind::proof, digest + client_proof(served.gang.secret, nonces, digest));
    channel.encrypt(client_key(served.gang.secret, nonces), server_key(served.gang.secret, nonces));
    channel.send(FrameKind::request, request);
    const auto frame = next(channel);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->kind, FrameKind::refused);
  }
  {
    SCOPED_TRACE("a request before the proof");
    Channel channel = served.dial();
    greet(channel);
    channel.send(FrameKind::request, request);
    EXPECT_FALSE(next(channel));
  }
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(1000, '\0'),
        std::string("\x01\xff\xff\xff\xff", 5), std::string("\x01\x00\x00\x00\x02hi", 7)}) {
    SCOPED_TRACE(bytes);
    const Channel channel = served.dial();
    ASSERT_EQ(::send(channel.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    ::pollfd wanted{channel.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&wanted, 1, 30'000), 1);
    char byte = 0;
    EXPECT_LE(::recv(channel.fd(), &byte, 1, 0), 0) << "an unauthenticated peer gets no answer";
  }
}

TEST(StartServer, BoundsWhatAKnownPeerSends) {
  Served served;
  Channel channel = served.dial();
  ask_to_run(channel, served, "echo $$; exec sleep 1000");
  const auto frame = next(channel);
  ASSERT_TRUE(frame);
  const pid_t pid = std::stoi(frame->payload);
  channel.send(FrameKind::input, std::string(data_max + 1, 'x'));
  EXPECT_FALSE(finish(channel).second);
  EXPECT_TRUE(ends(pid));
}

TEST(StartServer, DropsPeersThatSendNothing) {
  Served served({.greeting_max = 50ms});
  Channel channel = served.dial();
  EXPECT_FALSE(next(channel));
}

TEST(StartServer, DropsTheOldestUnauthenticatedPeerBeyondTheLimit) {
  Served served({.unauthenticated_max = 2});
  Channel first = served.dial(), second = served.dial(), third = served.dial();
  EXPECT_FALSE(next(first));
  ask_to_run(third, served, "echo fine");
  EXPECT_EQ(finish(third).first, "fine\n");
}

TEST(StartServer, ACommandEndsWithItsPeer) {
  Served served({.grace = 100ms});
  for (const char* line :
       {"echo $$; exec sleep 1000", "trap '' TERM; echo $$; while :; do sleep 1000; done"}) {
    SCOPED_TRACE(line);
    std::optional<Channel> channel = served.dial();
    ask_to_run(*channel, served, line);
    const auto frame = next(*channel);
    ASSERT_TRUE(frame);
    channel.reset();
    EXPECT_TRUE(ends(std::stoi(frame->payload)));
  }
}

TEST(StartServer, EndsItsCommandsWhenItStops) {
  Served served({.grace = 100ms});
  Channel channel = served.dial();
  ask_to_run(channel, served, "trap '' TERM; echo $$; while :; do sleep 1000; done");
  const auto frame = next(channel);
  ASSERT_TRUE(frame);
  served.stop();
  EXPECT_TRUE(ends(std::stoi(frame->payload)));
  EXPECT_FALSE(finish(channel).second);
}

TEST(StartServer, PeerThatReadsNothingBlocksOnlyItsCommand) {
  Served served;
  Channel slow = served.dial(), quick = served.dial();
  ask_to_run(slow, served, "head -c 20000000 /dev/zero");
  slow.flush();
  ask_to_run(quick, served, "echo fine");
  EXPECT_EQ(finish(quick).first, "fine\n");
  const auto [text, end] = finish(slow);
  EXPECT_EQ(text.size(), 20'000'000u);
  EXPECT_EQ(end, (ExitStatus{false, 0}));
}

TEST(StartServer, ReportsATakenPort) {
  const Served served;
  const auto second = StartServer::listen(served.gang, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
  EXPECT_NE(second.error().what.find(std::to_string(served.gang.nodes[0].port)), std::string::npos);
}

}  // namespace
}  // namespace slipway::gang_exec
