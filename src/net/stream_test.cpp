#include <fcntl.h>

#include <fstream>

#include "net/test_support.h"

namespace slipway::net::test {
namespace {

// Gives the test each stream its handler starts.
struct StreamServer {
  StreamServer()
      : server([this](const std::shared_ptr<Exchange>& exchange) {
          streams.put(exchange->start_stream(200, {{"Content-Type", "text/event-stream"}}));
        }) {}

  std::shared_ptr<Stream> next(const std::string& request, RawClient& client) {
    client.send(request);
    auto stream = streams.take();
    EXPECT_TRUE(stream);
    return stream ? *stream : nullptr;
  }
  void write(const std::shared_ptr<Stream>& stream, std::string piece) {
    server.loop.call([&] { stream->write(std::move(piece), [this] { written.put(true); }); });
  }

  Mailbox<std::shared_ptr<Stream>> streams;
  Mailbox<bool> written;
  Mailbox<bool> gone;
  TestServer server;
};

const std::string get = "GET / HTTP/1.1\r\n\r\n";

TEST(Stream, WritesChunksAtOnceAndContinues) {
  StreamServer server;
  RawClient client(server.server.port);
  for (int round = 0; round < 2; ++round) {
    auto stream = server.next(get, client);
    const std::string head = client.read_until("\r\n\r\n");  // before the first piece
    EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n"), std::string::npos) << head;
    server.write(stream, "hello");
    EXPECT_EQ(client.read_until("hello\r\n"), "5\r\nhello\r\n");
    ASSERT_TRUE(server.written.take());
    server.write(stream, "");  // must not end the stream
    ASSERT_TRUE(server.written.take());
    server.write(stream, std::string(100'000, 'x'));
    EXPECT_EQ(client.read(7 + 100'000 + 2), "186a0\r\n" + std::string(100'000, 'x') + "\r\n");
    ASSERT_TRUE(server.written.take());
    server.server.loop.call([&] {
      stream->finish();
      stream.reset();
    });
    EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  }
}

TEST(Stream, PacesItsWriter) {
  StreamServer server;
  RawClient client(server.server.port, 4096);
  auto stream = server.next(get, client);
  constexpr std::size_t piece = 12u << 20;  // more than the kernel holds
  server.write(stream, std::string(piece, 'x'));
  EXPECT_EQ(server.written.take(50ms), std::nullopt) << "nobody has read it yet";
  server.server.loop.call([&] { stream->finish(); });  // after what is being written
  const std::string all = client.read_until("\r\n0\r\n\r\n");
  EXPECT_GT(all.size(), piece);
  EXPECT_TRUE(server.written.take());
  server.server.loop.call([&] { stream.reset(); });
}

TEST(Stream, ReportsADisconnectWhileIdle) {
  StreamServer server;
  for (const bool politely : {true, false}) {
    RawClient client(server.server.port);
    auto stream = server.next(get, client);
    server.server.loop.call([&] { stream->on_closed([&] { server.gone.put(true); }); });
    client.read_until("\r\n\r\n");
    if (!politely) {
      const linger reset{1, 0};
      ::setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    client.close();
    EXPECT_TRUE(server.gone.take());
    server.server.loop.call([&] {  // harmless by now
      stream->write("x", [] {});
      stream->write("y", [] {});
      stream->finish();
      stream.reset();
    });
    EXPECT_TRUE(server.server.has_connections(0));
  }
}

TEST(Stream, ReportsADisconnectWhileAPieceIsStuck) {
  StreamServer server;
  RawClient client(server.server.port, 4096);
  auto stream = server.next(get, client);
  server.server.loop.call([&] { stream->on_closed([&] { server.gone.put(true); }); });
  server.write(stream, std::string(32u << 20, 'x'));
  client.close();
  EXPECT_TRUE(server.gone.take());
  EXPECT_EQ(server.written.take(1ms), std::nullopt);
  server.server.loop.call([&] { stream.reset(); });
}

TEST(Stream, DroppedWithoutFinishIsSeenAsBroken) {
  StreamServer server;
  RawClient modern(server.server.port);
  auto stream = server.next(get, modern);
  server.write(stream, "half");
  ASSERT_TRUE(server.written.take());
  modern.read_until("half\r\n");
  server.server.loop.call([&] { stream.reset(); });
  EXPECT_EQ(modern.read_to_end(), "") << "no last chunk";

  RawClient old(server.server.port);
  stream = server.next("GET / HTTP/1.0\r\n\r\n", old);
  server.write(stream, "half");
  ASSERT_TRUE(server.written.take());
  old.read_until("half");
  server.server.loop.call([&] { stream.reset(); });
  old.read_to_end();
  EXPECT_FALSE(old.ended) << "an end would look like the end of the stream: it must be an error";
}

TEST(Stream, OldClientsGetItUntilTheEnd) {
  StreamServer server;
  RawClient client(server.server.port);
  auto stream = server.next("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", client);
  server.write(stream, "plain");
  ASSERT_TRUE(server.written.take());
  server.server.loop.call([&] {
    stream->finish();
    stream.reset();
  });
  const std::string all = client.read_to_end();
  EXPECT_TRUE(all.ends_with("\r\n\r\nplain")) << all;
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  EXPECT_TRUE(client.ended);
}

TEST(Stream, HeadGetsNoBody) {
  StreamServer server;
  RawClient client(server.server.port);
  auto stream = server.next("HEAD / HTTP/1.1\r\n\r\n", client);
  server.write(stream, "hidden");
  ASSERT_TRUE(server.written.take());
  server.server.loop.call([&] { stream->finish(); });
  stream = server.next(get, client);
  server.write(stream, "seen");
  const std::string all = client.read_until("seen\r\n");
  EXPECT_EQ(all.find("hidden"), std::string::npos) << all;
  server.server.loop.call([&] { stream.reset(); });
}

TEST(Stream, ClientThatSendsRequestsDuringItsStreamIsCutOff) {
  StreamServer server;
  RawClient client(server.server.port);
  auto stream = server.next(get, client);
  server.server.loop.call([&] { stream->on_closed([&] { server.gone.put(true); }); });
  client.send(std::string(1 << 20, 'x'));
  EXPECT_TRUE(server.gone.take());
  server.server.loop.call([&] { stream.reset(); });
}

class SentFile : public ::testing::Test {
 protected:
  Fd open() const { return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); }
  void make(std::uint64_t size) {
    std::ofstream(path).close();
    std::filesystem::resize_file(path, size);
  }
  // In memory where there is such a place: the holes of a sparse file cost nothing there.
  TemporaryFolder folder{std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp"};
  const std::string path = folder.path + "/file";
};

TEST_F(SentFile, IsSentInPartBeyondTwoGiB) {
  constexpr std::uint64_t size = (5ull << 30) + 10;  // sparse
  constexpr std::uint64_t sent = (2ull << 30) + (1u << 20);
  make(size);
  std::fstream(path, std::ios::in | std::ios::out).seekp(static_cast<std::streamoff>(size - 10))
      << "0123456789";
  TestServer server([&](const auto& exchange) {
    if (exchange->request().path == "/end") return exchange->send_file(206, {}, open(), size - 10, 10);
    if (exchange->request().path == "/none") return exchange->send_file(200, {}, open(), 0, 0);
    exchange->send_file(200, {{"Content-Type", "a/b"}}, open(), 7, sent);
  });
  RawClient client(server.port);
  client.send("GET /end HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client.read_answer().ends_with("Content-Length: 10\r\n\r\n0123456789"));
  EXPECT_TRUE(client.read_answer().ends_with("Content-Length: 0\r\n\r\n"));
  EXPECT_TRUE(client.read_until("\r\n\r\n").ends_with("Content-Length: 2148532224\r\n\r\n"));
  std::uint64_t total = 0;
  const auto whole = Client(server.url()).request("GET", "/", {.on_piece = [&](std::string_view piece) {
                                                    total += piece.size();
                                                    return true;
                                                  }});
  ASSERT_TRUE(whole) << whole.error().what;
  EXPECT_EQ(total, sent);
}

TEST_F(SentFile, ThatShrinksCutsTheConnection) {
  make(64u << 20);
  TestServer server([&](const auto& exchange) { exchange->send_file(200, {}, open(), 0, 64u << 20); });
  RawClient client(server.port, 4096);
  client.send(get);
  EXPECT_TRUE(client.read_until("\r\n\r\n").ends_with("Content-Length: 67108864\r\n\r\n"));
  std::filesystem::resize_file(path, 100);  // while most of it is still to come
  EXPECT_LT(client.read_to_end().size(), 64u << 20);
  EXPECT_TRUE(server.has_connections(0));
}

TEST_F(SentFile, DisconnectOfTheClientIsNoticed) {
  make(64u << 20);
  TestServer server([&](const auto& exchange) { exchange->send_file(200, {}, open(), 0, 64u << 20); });
  RawClient client(server.port, 4096);
  client.send(get);
  client.read(1000);
  client.close();
  EXPECT_TRUE(server.has_connections(0));
}

TEST_F(SentFile, DoesNotBlockOthers) {
  make(4ull << 30);
  TestServer server([&](const auto& exchange) {
    if (exchange->request().path == "/small") return exchange->send(text("small"));
    exchange->send_file(200, {}, open(), 0, 4ull << 30);
  });
  std::atomic<bool> small_came = false;
  std::uint64_t read_before = 0;
  std::jthread other([&] { small_came = Client(server.url()).request("GET", "/small").has_value(); });
  EXPECT_TRUE(Client(server.url()).request("GET", "/", {.on_piece = [&](std::string_view piece) {
                                             read_before += piece.size();
                                             return !small_came;
                                           }}));
  EXPECT_LT(read_before, 4ull << 30) << "the small answer came while the large one was under way";
}

}  // namespace
}  // namespace slipway::net::test
