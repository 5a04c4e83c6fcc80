#include "net/test_support.h"

namespace slipway::net::test {
namespace {

// A server whose handler accepts every WebSocket and echoes, and what the tests see of it.
struct EchoServer {
  explicit EchoServer(ServerOptions options = {})
      : server([this](std::shared_ptr<Exchange> exchange) { handle(std::move(exchange)); }, options) {}
  ~EchoServer() {
    server.loop.call([&] { sockets.clear(); });
  }

  void handle(std::shared_ptr<Exchange> exchange) {
    const Request& request = exchange->request();
    if (request.path == "/denied") return exchange->send(text("the token is wrong\n", 401));
    if (request.path == "/twice") return exchange->send(text("gpu-03 is connected already", 409));
    if (!exchange->wants_websocket()) return exchange->send(text("no upgrade", 426));
    const std::size_t at = sockets.size();
    WebSocketCallbacks callbacks;
    callbacks.text = [this, at](std::string message) {
      if (message == "close") return sockets[at]->close("asked to");
      if (message == "flood") return flood(at);
      if (message == "drop") return sockets[at].reset();
      sockets[at]->send_text(std::move(message));
    };
    callbacks.binary = [this, at](std::string message) { sockets[at]->send_binary(std::move(message)); };
    callbacks.closed = [this](std::string why) { closed.put(std::move(why)); };
    authorization.put(request.header("Authorization").value_or(""));
    sockets.push_back(exchange->accept_websocket(std::move(callbacks)));
  }
  void flood(std::size_t at) {
    for (int i = 0; i < 64; ++i) sockets[at]->send_binary(std::string(1 << 20, 'x'));
    queued.put(sockets[at]->queued_bytes());
    sockets[at]->close("flooded");
  }

  Mailbox<std::string> closed;
  Mailbox<std::string> authorization;
  Mailbox<std::size_t> queued;
  std::vector<std::shared_ptr<WebSocket>> sockets;  // the loop's
  TestServer server;
};

// A client's side, on a loop of its own.
struct Peer {
  explicit Peer(const Url& url, const std::string& target = "/", const Headers& headers = {}) {
    loop.call([&] {
      WebSocketCallbacks callbacks;
      callbacks.text = [this](std::string message) { texts.put(std::move(message)); };
      callbacks.binary = [this](std::string message) { binaries.put(std::move(message)); };
      callbacks.closed = [this](std::string why) { closed.put(std::move(why)); };
      connect_websocket(loop.loop, url, target, headers, std::move(callbacks), [this](auto opened) {
        if (opened) socket = *opened;
        error.put(opened ? Error{} : opened.error());
      });
    });
    outcome = error.take();
  }
  ~Peer() {
    loop.call([&] { socket.reset(); });
  }
  void send(std::string message) {
    loop.call([&] { socket->send_text(std::move(message)); });
  }

  Mailbox<std::string> texts;
  Mailbox<std::string> binaries;
  Mailbox<std::string> closed;
  Mailbox<Error> error;
  std::optional<Error> outcome;
  std::shared_ptr<WebSocket> socket;
  LoopThread loop;
};

TEST(WebSocket, EchoesInOrderTextAndBinary) {
  EchoServer server;
  Peer peer(server.server.url(), "/", {{"Authorization", "Bearer t"}});
  ASSERT_TRUE(peer.socket) << peer.outcome->what;
  EXPECT_EQ(server.authorization.take(), "Bearer t");
  peer.loop.call([&] {
    for (int i = 0; i < 1000; ++i) peer.socket->send_text(std::to_string(i));
    peer.socket->send_binary(std::string("\0\xff", 2));
    peer.socket->send_text("");
  });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(peer.texts.take(), std::to_string(i));
  EXPECT_EQ(peer.binaries.take(), std::string("\0\xff", 2));
  EXPECT_EQ(peer.texts.take(), "");
  EXPECT_TRUE(peer.loop.eventually([&] { return peer.socket->queued_bytes() == 0; }));
}

TEST(WebSocket, APausedPeerIsNotReadUntilItIsResumed) {
  EchoServer server;
  Peer peer(server.server.url());
  ASSERT_TRUE(peer.socket) << peer.outcome->what;
  peer.loop.call([&] { peer.socket->pause(); });
  peer.send("first");
  peer.send("second");
  EXPECT_EQ(peer.texts.take(), "first") << "the read that was under way is delivered";
  // The server has answered both before it answers this one, so the second has arrived.
  Peer other(server.server.url());
  other.send("later");
  EXPECT_EQ(other.texts.take(), "later");
  for (int i = 0; i < 10; ++i) peer.loop.call([] {});
  EXPECT_EQ(peer.texts.take(0ms), std::nullopt);
  peer.loop.call([&] { peer.socket->resume(); });
  EXPECT_EQ(peer.texts.take(), "second");
  peer.send("third");
  EXPECT_EQ(peer.texts.take(), "third");
  peer.loop.call([&] {
    peer.socket->pause();
    peer.socket->close("done");
  });
  EXPECT_EQ(peer.closed.take(), "done") << "closing needs no resume";
}

TEST(WebSocket, CarriesLargeMessagesWhole) {
  EchoServer server;
  Peer peer(server.server.url());
  ASSERT_TRUE(peer.socket);
  std::string large(20 << 20, 'a');
  for (std::size_t i = 0; i < large.size(); i += 4093) large[i] = static_cast<char>(i);
  peer.loop.call([&] { peer.socket->send_binary(large); });
  EXPECT_TRUE(peer.binaries.take() == large);
}

TEST(WebSocket, AMessageOverTheLimitEndsIt) {
  ServerOptions options;
  options.websocket_message_max = 1000;
  EchoServer server(options);
  Peer peer(server.server.url());
  ASSERT_TRUE(peer.socket);
  peer.send(std::string(1000, 'x'));
  EXPECT_EQ(peer.texts.take(), std::string(1000, 'x'));
  peer.send(std::string(1001, 'x'));
  EXPECT_TRUE(server.closed.take());
  EXPECT_TRUE(peer.closed.take());
}

TEST(WebSocket, ClosesFromEitherSideWithTheReasonOnce) {
  EchoServer server;
  {
    Peer peer(server.server.url());
    ASSERT_TRUE(peer.socket);
    peer.send("close");
    EXPECT_EQ(peer.closed.take(), "asked to");
    EXPECT_EQ(server.closed.take(), "asked to");
    peer.loop.call([&] {  // over, and harmless
      peer.socket->send_text("late");
      peer.socket->close("late");
    });
    EXPECT_EQ(peer.closed.take(1ms), std::nullopt);
  }
  Peer peer(server.server.url());
  ASSERT_TRUE(peer.socket);
  peer.loop.call([&] {
    peer.socket->send_text("last words");
    peer.socket->close("bye");
    peer.socket->close("again");
  });
  EXPECT_EQ(server.closed.take(), "bye");
  EXPECT_EQ(peer.closed.take(), "bye");
  EXPECT_TRUE(server.server.has_connections(0));
}

TEST(WebSocket, DroppingTheHandleClosesEvenInsideACallback) {
  EchoServer server;
  Peer peer(server.server.url());
  ASSERT_TRUE(peer.socket);
  peer.send("drop");
  EXPECT_TRUE(server.closed.take());
  EXPECT_TRUE(peer.closed.take());
}

TEST(WebSocket, WhatIsQueuedIsSentBeforeTheClose) {
  EchoServer server;
  Peer peer(server.server.url());
  ASSERT_TRUE(peer.socket);
  peer.send("flood");
  EXPECT_EQ(server.queued.take(), 64u << 20);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(peer.binaries.take()->size(), 1u << 20);
  EXPECT_EQ(peer.closed.take(), "flooded");
}

TEST(WebSocket, APeerThatDoesNotReadCannotHoldUpTheClose) {
  EchoServer server;
  RawClient client(server.server.port, 4096);
  client.send(
      "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
  const std::string answer = client.read_until("\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << answer;
  EXPECT_NE(answer.find("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), std::string::npos) << "RFC 6455 §1.3";
  // "flood", masked with zeros; then nothing is read.
  client.send(std::string("\x81\x85\0\0\0\0flood", 11));
  EXPECT_TRUE(server.queued.take());
  EXPECT_EQ(server.closed.take(), "the peer did not answer the close");
  EXPECT_TRUE(server.server.has_connections(0));
}

TEST(WebSocket, GarbageInsteadOfFramesEndsIt) {
  EchoServer server;
  RawClient client(server.server.port);
  client.send(
      "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
  client.read_until("\r\n\r\n");
  client.send(std::string(1000, '\xff'));
  client.read_to_end();
  client.close();
  EXPECT_TRUE(server.closed.take());
  EXPECT_TRUE(server.server.has_connections(0));
}

TEST(WebSocket, RefusedUpgradeReportsWhy) {
  EchoServer server;
  struct Row {
    const char* target;
    ErrorCode code;
    const char* ending;
  };
  const Row rows[] = {
      {"/denied", ErrorCode::denied, "/denied refused the connection with status 401: the token is wrong"},
      {"/twice", ErrorCode::conflict,
       "/twice refused the connection with status 409: gpu-03 is connected already"},
  };
  for (const Row& row : rows) {
    Peer peer(server.server.url(), row.target);
    ASSERT_TRUE(peer.outcome);
    EXPECT_EQ(peer.outcome->code, row.code);
    EXPECT_TRUE(peer.outcome->what.ends_with(row.ending)) << peer.outcome->what;
    EXPECT_EQ(peer.closed.take(1ms), std::nullopt) << "what never opened does not close";
  }
}

TEST(WebSocket, MissingServerIsUnavailable) {
  Url url{"127.0.0.1", 1, ""};
  Peer peer(url);
  ASSERT_TRUE(peer.outcome);
  EXPECT_EQ(peer.outcome->code, ErrorCode::unavailable);
  EXPECT_EQ(peer.outcome->what, "cannot reach http://127.0.0.1:1: Connection refused");
}

TEST(WebSocket, ResolvesNames) {
  EchoServer server;
  Url url = server.server.url();
  url.host = "localhost";
  Peer peer(url);
  ASSERT_TRUE(peer.socket) << peer.outcome->what;
  peer.send("x");
  EXPECT_EQ(peer.texts.take(), "x");
  EXPECT_TRUE(
      Peer({"no-such-host.invalid", 1, ""}).outcome->what.starts_with("cannot reach http://no-such-host"));
}

TEST(WebSocket, StoppingTheServerClosesItAndTheHandleIsHarmless) {
  EchoServer server;
  Peer peer(server.server.url());
  ASSERT_TRUE(peer.socket);
  peer.send("x");
  EXPECT_EQ(peer.texts.take(), "x");
  server.server.loop.call([&] { server.server.server->stop(); });
  EXPECT_EQ(server.closed.take(), "the server stopped");
  EXPECT_TRUE(peer.closed.take());
  server.server.loop.call([&] {
    server.sockets[0]->send_text("late");
    server.sockets[0]->close("late");
    EXPECT_EQ(server.sockets[0]->queued_bytes(), 0u);
    EXPECT_EQ(server.server.server->connections(), 0u);
  });
}

TEST(WebSocket, AcceptingAfterTheClientLeftClosesAtOnce) {
  Mailbox<std::shared_ptr<Exchange>> exchanges;
  Mailbox<std::string> closed;
  TestServer server([&](std::shared_ptr<Exchange> exchange) { exchanges.put(std::move(exchange)); });
  RawClient client(server.port);
  client.send("GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  auto exchange = exchanges.take();
  ASSERT_TRUE(exchange);
  Mailbox<bool> gone;
  server.loop.call([&] { (*exchange)->on_closed([&] { gone.put(true); }); });
  client.close();
  ASSERT_TRUE(gone.take());
  std::shared_ptr<WebSocket> socket;
  server.loop.call([&] {
    WebSocketCallbacks callbacks;
    callbacks.closed = [&](std::string why) { closed.put(std::move(why)); };
    socket = (*exchange)->accept_websocket(std::move(callbacks));
    socket->send_text("x");
    exchange->reset();
  });
  EXPECT_EQ(closed.take(), "the client went away");
  server.loop.call([&] { socket.reset(); });
}

}  // namespace
}  // namespace slipway::net::test
