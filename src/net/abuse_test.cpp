// What a server must survive. Each case here once was, or could be, an outage.
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "net/server_core.h"
#include "net/test_support.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

namespace slipway::net::test {
namespace {

ServerOptions hasty() {
  ServerOptions options;
  options.header_deadline = 50ms;
  options.body_stall_max = 50ms;
  options.body_rate_grace = 50ms;
  options.idle_max = 10s;
  return options;
}

std::string status_of(const std::string& answer) { return answer.substr(0, answer.find("\r\n")); }

TEST(Abuse, BytesThatAreNotHttpAre400AtOnce) {
  TestServer server(echo);
  const std::string rows[] = {
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // TLS
      "SSH-2.0-OpenSSH_9.2\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET /\r\n\r\n",
      "GET / HTTP/1.1\n\n",
      "GET  / HTTP/1.1\r\n\r\n",
      "GET nowhere HTTP/1.1\r\n\r\n",
      " / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nNo colon here\r\n\r\n",
      "GET / HTTP/1.1\r\nName : x\r\n\r\n",
      "GET / HTTP/1.1\r\nA: b\0c\r\n\r\n"s,
      "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(40'000, '1'),
      std::string(100, 'A'),
  };
  for (const std::string& row : rows) {
    RawClient client(server.port);
    client.send(row);
    EXPECT_EQ(status_of(client.read_to_end()), "HTTP/1.1 400 Bad Request") << row.substr(0, 80);
    EXPECT_TRUE(client.ended);
  }
  RawClient client(server.port);
  client.send("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n");
  EXPECT_EQ(status_of(client.read_to_end()), "HTTP/1.1 501 Not Implemented");
}

TEST(Abuse, EndlessHeadersAre431AndUseNoMemory) {
  ServerOptions options;
  options.linger_max = patience;  // the machine may be busy
  TestServer server(echo, options);
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  RawClient client(server.port);
  client.send("GET / HTTP/1.1\r\n");
  const std::string line = "X-Garbage: " + std::string(1000, 'g') + "\r\n";
  // All 200 MiB: the server lets them pass for a while so that the answer is not lost with the connection.
  for (std::size_t sent = 0; sent < (200u << 20) && client.send(line); sent += line.size()) {
  }
  EXPECT_EQ(status_of(client.read_to_end()), "HTTP/1.1 431 Request Header Fields Too Large");
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 20'000) << "KiB";

  RawClient exact(server.port);
  const std::string request = "GET / HTTP/1.1\r\nX: ";
  exact.send(request + std::string(32 * 1024 - request.size() - 4, 'x') + "\r\n\r\n");
  EXPECT_EQ(status_of(exact.read_answer()), "HTTP/1.1 200 OK") << "32 KiB are allowed";
  exact.send(request + std::string(32 * 1024 - request.size() - 3, 'x') + "\r\n\r\n");
  EXPECT_EQ(status_of(exact.read_to_end()), "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST(Abuse, H5_TheMemoryForBodiesIsLimitedInAll) {
  ServerOptions options;
  options.body_memory_max = 1 << 20;
  TestServer server(echo, options);
  const std::string most(900 << 10, 'x');
  const auto ask = [&] {
    RawClient other(server.port);
    other.send(fmt::format("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", most.size()) + most);
    return status_of(other.read_answer());
  };
  const std::string full = "HTTP/1.1 503 Service Unavailable";
  const auto deadline = std::chrono::steady_clock::now() + patience;
  // While it is being read another may take the memory first, and this one is refused: then anew. It has the
  // memory when two in a row are refused.
  std::optional<RawClient> first;
  for (bool holds = false; !holds;) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nobody was refused";
    first.emplace(server.port);
    first->send(fmt::format("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", most.size() + 1) + most);
    for (int tries = 0; tries < 20 && !holds; ++tries) holds = ask() == full && ask() == full;
  }
  RawClient small(server.port);
  small.send("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(status_of(small.read_answer()), "HTTP/1.1 200 OK");
  first->send("x");
  EXPECT_EQ(status_of(first->read_answer()), "HTTP/1.1 200 OK");
  std::string last = full;
  while (last == full && std::chrono::steady_clock::now() < deadline) last = ask();
  EXPECT_EQ(last, "HTTP/1.1 200 OK") << "what was answered holds none";
}

TEST(Abuse, H5_ConnectionsAreLimited) {
  ServerOptions options;
  options.connections_max = 3;
  TestServer server(echo, options);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port));
    clients.back()->send("GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(status_of(clients.back()->read_answer()), "HTTP/1.1 200 OK");
  }
  RawClient refused(server.port);
  EXPECT_EQ(status_of(refused.read_to_end()), "HTTP/1.1 503 Service Unavailable");
  clients.back()->close();
  ASSERT_TRUE(server.has_connections(2));
  RawClient next(server.port);
  next.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(status_of(next.read_answer()), "HTTP/1.1 200 OK");
}

TEST(Abuse, H5_OneAddressLeavesConnectionsToOthers) {
  ServerOptions options;
  options.connections_per_address_max = 2;
  TestServer server(echo, options);
  RawClient first(server.port);
  auto second = std::make_unique<RawClient>(server.port);
  ASSERT_TRUE(server.has_connections(2));
  EXPECT_EQ(status_of(RawClient(server.port).read_to_end()), "HTTP/1.1 503 Service Unavailable");
  second->close();
  ASSERT_TRUE(server.has_connections(1));
  RawClient next(server.port);
  next.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(status_of(next.read_answer()), "HTTP/1.1 200 OK");
}

TEST(Abuse, H5_AnAddressIsCountedAsANetwork) {
  const auto peer = [](const char* text) { return ServerCore::peer_of(asio::ip::make_address(text)); };
  EXPECT_EQ(peer("10.0.0.1"), peer("::ffff:10.0.0.1"));
  EXPECT_NE(peer("10.0.0.1"), peer("10.0.0.2"));
  EXPECT_EQ(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::9"));
  EXPECT_NE(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
}

TEST(Abuse, H5_AConnectionThatSaysNothingIsClosed) {
  ServerOptions options;
  options.first_byte_deadline = 50ms;
  TestServer server(echo, options);
  RawClient client(server.port);
  client.read_to_end();
  EXPECT_TRUE(client.ended);
}

TEST(Abuse, ASlowHeadIs408) {
  TestServer server(echo, hasty());
  RawClient client(server.port);
  std::jthread dripping([&](const std::stop_token& stop) {
    client.send("GET / HTTP/1.1\r\nX: ");
    while (!stop.stop_requested() && client.send("x")) std::this_thread::sleep_for(5ms);
  });
  EXPECT_EQ(status_of(client.read_until("\r\n\r\n")), "HTTP/1.1 408 Request Timeout");
  dripping.request_stop();
}

TEST(Abuse, AStalledBodyIs408) {
  ServerOptions options = hasty();
  options.body_rate_min = 0;
  TestServer server(echo, options);
  RawClient client(server.port);
  client.send("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc");
  EXPECT_EQ(status_of(client.read_to_end()), "HTTP/1.1 408 Request Timeout");
}

TEST(Abuse, SlowBodyIs408) {
  ServerOptions options = hasty();
  options.body_stall_max = 10s;
  TestServer server(echo, options);
  RawClient client(server.port);
  std::jthread dripping([&](const std::stop_token& stop) {
    client.send("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
    while (!stop.stop_requested() && client.send("x")) std::this_thread::sleep_for(5ms);
  });
  EXPECT_EQ(status_of(client.read_until("\r\n\r\n")), "HTTP/1.1 408 Request Timeout");
  dripping.request_stop();
}

TEST(Abuse, ABodyThatKeepsItsRateMayTakeLong) {
  ServerOptions options = hasty();
  options.body_stall_max = 10s;
  options.body_rate_min = 1000;  // 40 bytes each 2 ms is twenty times that
  TestServer server(echo, options);
  RawClient client(server.port);
  client.send("POST / HTTP/1.1\r\nContent-Length: 4000\r\n\r\n" + std::string(400, 'x'));
  for (int i = 0; i < 90; ++i) {
    ASSERT_TRUE(client.send(std::string(40, 'x')));
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_EQ(status_of(client.read_answer()), "HTTP/1.1 200 OK");
}

TEST(Abuse, IdleConnectionsAreClosedQuietly) {
  ServerOptions options;
  options.idle_max = 200ms;
  TestServer server(echo, options);
  RawClient idle(server.port);
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(idle.ended);
  RawClient once(server.port);
  once.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(once.read_to_end().ends_with("GET / "));
  EXPECT_TRUE(once.ended);
}

TEST(Abuse, BodiesOverTheirLimitAre413) {
  std::atomic<int> handled = 0;
  TestServer server(
      [&](const auto& exchange) {
        ++handled;
        echo(exchange);
      },
      {}, [](const Request&) { return BodyPolicy{.size_max = 1000}; });
  RawClient declared(server.port);
  declared.send("POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n");  // not a byte of it
  EXPECT_EQ(status_of(declared.read_to_end()), "HTTP/1.1 413 Payload Too Large");
  RawClient chunked(server.port);
  chunked.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 200 && chunked.send("a\r\n0123456789\r\n"); ++i) {
  }
  EXPECT_EQ(status_of(chunked.read_to_end()), "HTTP/1.1 413 Payload Too Large");
  RawClient at_once(server.port);  // one chunk, larger than it may be
  at_once.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n" +
               std::string(5000, 'x'));
  EXPECT_EQ(status_of(at_once.read_to_end()), "HTTP/1.1 413 Payload Too Large");
  EXPECT_EQ(handled, 0);
  RawClient exact(server.port);
  exact.send("POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x'));
  EXPECT_EQ(status_of(exact.read_answer()), "HTTP/1.1 200 OK");
}

TEST(Abuse, ARefusedClientThatNeverStopsSendingIsCutOff) {
  ServerOptions options;
  options.linger_max = 50ms;
  TestServer server(echo, options, [](const Request&) { return BodyPolicy{.size_max = 10}; });
  RawClient client(server.port);
  client.send("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n");
  const std::string much(1 << 16, 'x');
  while (client.send(much)) {
  }
  EXPECT_TRUE(server.has_connections(0));
}

TEST(Abuse, AClientThatDoesNotReadItsAnswerIsCutOff) {
  ServerOptions options;
  options.answer_stall_max = 50ms;
  TestServer server([](const auto& exchange) { exchange->send(text(std::string(32u << 20, 'x'))); }, options);
  RawClient client(server.port, 4096);
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.read(12), "HTTP/1.1 200");  // and no more
  EXPECT_TRUE(server.has_connections(0));
}

TEST(Abuse, EndlessPipelinedRequestsAreNotBuffered) {
  std::atomic<int> handled = 0;
  std::shared_ptr<Exchange> first;
  TestServer server([&](std::shared_ptr<Exchange> exchange) {
    if (++handled == 1) {
      first = std::move(exchange);
      return;
    }
    echo(exchange);
  });
  RawClient client(server.port);
  std::string some;
  for (int i = 0; i < 1000; ++i) some += "GET / HTTP/1.1\r\n\r\n";
  std::size_t taken = 0;
  for (int i = 0; i < 100'000; ++i) {  // until the kernel takes no more, for the server does not
    const ssize_t put = ::send(client.fd(), some.data(), some.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd full{client.fd(), POLLOUT, 0};
      if (::poll(&full, 1, 200) == 0) break;
      continue;
    }
    ASSERT_GT(put, 0);
    taken += static_cast<std::size_t>(put);
  }
  EXPECT_LT(taken, 64u << 20);
  EXPECT_EQ(handled, 1);
  server.loop.call([&] { std::exchange(first, nullptr)->send(text("go")); });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(status_of(client.read_answer()), "HTTP/1.1 200 OK");
}

// Another process that opens connections, reports that, and holds them until it is asked to end: the two
// sides of 10,000 connections do not fit into one process's descriptors.
class Crowd {
 public:
  // Before any thread is made.
  Crowd() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair_), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::close(pair_[0]);  // or it would never see the end of its orders
      run(pair_[1]);
    }
    ::close(pair_[1]);
  }
  ~Crowd() {
    ::close(pair_[0]);
    ::waitpid(child_, nullptr, 0);
  }
  int connect(std::uint16_t port, int count) {  // how many it has then
    const int order[2] = {port, count};
    EXPECT_EQ(::write(pair_[0], order, sizeof order), static_cast<ssize_t>(sizeof order));
    int made = -1;
    EXPECT_EQ(::read(pair_[0], &made, sizeof made), static_cast<ssize_t>(sizeof made));
    return made;
  }

 private:
  [[noreturn]] static void run(int orders) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    int order[2];
    while (::read(orders, order, sizeof order) == sizeof order) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(order[0]));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      int made = 0;
      for (int i = 0; i < order[1]; ++i) {
        const int client = ::socket(AF_INET, SOCK_STREAM, 0);
        if (client >= 0 && ::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
          ++made;
      }
      if (::write(orders, &made, sizeof made) != sizeof made) break;
    }
    ::_exit(0);
  }
  int pair_[2];
  pid_t child_;
};

std::size_t heap_in_use() { return ::mallinfo2().uordblks; }

TEST(Abuse, TenThousandIdleConnectionsAreCheap) {
  constexpr int count = UNDER_SANITIZER ? 1'000 : 10'000;
  Crowd crowd;
  TestServer server(echo);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max) << "listen() takes what the machine allows";
  if (limit.rlim_max < count + 100) GTEST_SKIP() << "only " << limit.rlim_max << " descriptors are allowed";
  ASSERT_EQ(crowd.connect(server.port, 100), 100);  // what is made once is made
  ASSERT_TRUE(server.has_connections(100));
  const std::size_t before = server.loop.call(heap_in_use);
  ASSERT_EQ(crowd.connect(server.port, count - 100), count - 100);
  ASSERT_TRUE(server.has_connections(count));
  const std::size_t each = (server.loop.call(heap_in_use) - before) / (count - 100);
  RecordProperty("bytes_per_idle_connection", static_cast<int>(each));
  EXPECT_LE(each, UNDER_SANITIZER ? SIZE_MAX : 2048u);

  const auto response = Client(server.url()).request("GET", "/");
  EXPECT_TRUE(response) << "and others are served";
}

double thread_cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

TEST(Abuse, RunningOutOfDescriptorsPausesAcceptAndResumes) {
  TestServer server(echo);
  rlimit saved{};
  ::getrlimit(RLIMIT_NOFILE, &saved);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(std::make_unique<RawClient>(server.port));
  ASSERT_TRUE(server.has_connections(20));
  // No new descriptor for anyone but those below; the clients' own sockets exist already.
  std::vector<Fd> sockets;
  for (int i = 0; i < 5; ++i) sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit tight = saved;
  tight.rlim_cur = static_cast<rlim_t>(sockets.back().get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);

  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string_view request = "GET / HTTP/1.1\r\n\r\n";
  for (const Fd& socket : sockets) {
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
  }
  pollfd unanswered{sockets[0].get(), POLLIN, 0};
  const double before = server.loop.call(thread_cpu_seconds);
  EXPECT_EQ(::poll(&unanswered, 1, 300), 0) << "there is no descriptor for it";
  EXPECT_LT(server.loop.call(thread_cpu_seconds) - before, 0.1) << "waiting must not spin";
  EXPECT_EQ(server.loop.call([&] { return server.server->connections(); }), 20u);

  clients.resize(10);  // the server closes its sides and has descriptors again, before the timer
  for (const Fd& socket : sockets) {
    pollfd answered{socket.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&answered, 1, 10'000), 1);
  }
  ::setrlimit(RLIMIT_NOFILE, &saved);
}

TEST(Abuse, DescriptorsFreedElsewhereAreNoticedToo) {
  TestServer server(echo);
  rlimit saved{};
  ::getrlimit(RLIMIT_NOFILE, &saved);
  const Fd highest(::dup(0));
  RawClient client(server.port);  // takes the last; only its other side is missing
  rlimit tight = saved;
  ASSERT_TRUE(server.has_connections(1));
  const Fd late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  tight.rlim_cur = static_cast<rlim_t>(late.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(late.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  pollfd nothing{late.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&nothing, 1, 50), 0);
  ::setrlimit(RLIMIT_NOFILE, &saved);
  EXPECT_TRUE(server.has_connections(2)) << "after a second at most";
}

}  // namespace
}  // namespace slipway::net::test
