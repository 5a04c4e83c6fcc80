#include "net/server.h"

#include "net/test_support.h"

namespace slipway::net::test {
namespace {

TEST(Server, AnswersOnOneConnectionAgainAndAgain) {
  TestServer server(echo);
  RawClient client(server.port);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
    const std::string answer = client.read_answer();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\nPOST /a abc")) << answer;
    EXPECT_NE(answer.find("\r\nContent-Length: 11\r\n"), std::string::npos);
    EXPECT_NE(answer.find("\r\nDate: "), std::string::npos);
  }
}

TEST(Server, TakesRequestsApart) {
  TestServer server([](const auto& exchange) {
    const Request& request = exchange->request();
    std::string seen = request.path + "|" + request.peer;
    for (const auto& [name, value] : request.query) seen += "|" + name + "=" + value;
    exchange->send(text(seen + "|" + request.header("x-one").value_or("none")));
  });
  struct Row {
    const char* target;
    const char* seen;
  };
  const Row rows[] = {
      {"/a%20b?x=1&y=a%26b&z&q=a+b", "/a%20b|127.0.0.1|x=1|y=a&b|z=|q=a b|1"},
      {"http://host:1/p?x=", "/p|127.0.0.1|x=|1"},
      {"/?", "/|127.0.0.1|1"},
  };
  RawClient client(server.port);
  for (const Row& row : rows) {
    client.send(std::string("GET ") + row.target + " HTTP/1.1\r\nX-One:  1 \r\n\r\n");
    EXPECT_TRUE(client.read_answer().ends_with(std::string("\r\n\r\n") + row.seen)) << row.target;
  }
  client.send("GET /?x=%zz HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client.read_to_end().starts_with("HTTP/1.1 400 "));
}

TEST(Server, TakesARequestByteByByte) {
  TestServer server(echo);
  RawClient client(server.port);
  for (const char c : std::string("\r\nPOST /slow HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"))
    ASSERT_TRUE(client.send({&c, 1}));
  EXPECT_TRUE(client.read_answer().ends_with("POST /slow abcde"));
}

TEST(Server, TakesAnEmptyChunkedBodyByteByByte) {
  TestServer server(echo);
  RawClient client(server.port);
  for (const char c : std::string("POST /slow HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
    ASSERT_TRUE(client.send({&c, 1}));
  EXPECT_TRUE(client.read_answer().ends_with("POST /slow "));
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  // Every third is answered later, in a turn of its own.
  std::vector<std::shared_ptr<Loop::Timer>> timers;
  Loop* loop = nullptr;
  int count = 0;
  TestServer server([&](std::shared_ptr<Exchange> exchange) {
    if (++count % 3 != 0) return echo(exchange);
    timers.push_back(loop->after(Duration(100), [exchange] { echo(exchange); }));
  });
  loop = &server.loop.loop;
  RawClient client(server.port);
  std::string all;
  constexpr int requests = 2000;
  for (int i = 0; i < requests; ++i) all += "GET /" + std::to_string(i) + " HTTP/1.1\r\n\r\n";
  std::jthread sender([&] { client.send(all); });
  for (int i = 0; i < requests; ++i)
    ASSERT_TRUE(client.read_answer().ends_with("GET /" + std::to_string(i) + " ")) << i;
  server.loop.call([&] { timers.clear(); });
}

TEST(Server, HeadAndEmptyStatusesHaveNoBody) {
  TestServer server([](const auto& exchange) {
    exchange->send(text("12345", exchange->request().path == "/none" ? 204 : 200));
  });
  RawClient client(server.port);
  client.send(
      "HEAD / HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\nGET /last HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string all = client.read_to_end();
  EXPECT_EQ(all.find("12345"), all.size() - 5) << all;
  EXPECT_NE(all.find("Content-Length: 5\r\n\r\nHTTP/1.1 204 No Content\r\n"), std::string::npos) << all;
  EXPECT_NE(all.find("Connection: close\r\n"), std::string::npos);
}

TEST(Server, SupportsHttp10) {
  TestServer server(echo);
  RawClient closing(server.port);
  closing.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_NE(closing.read_to_end().find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(closing.ended);
  RawClient keeping(server.port);
  for (int i = 0; i < 2; ++i) {
    keeping.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_NE(keeping.read_answer().find("Connection: keep-alive\r\n"), std::string::npos);
  }
}

TEST(Server, HonoursExpectContinue) {
  TestServer server(echo, {}, [](const Request& request) {
    return BodyPolicy{.size_max = request.path == "/small" ? 2u : 100u, .spool_folder = "", .refuse = {}};
  });
  RawClient client(server.port);
  client.send("POST /big HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_TRUE(client.read_answer().ends_with("POST /big abc"));
  client.send("POST /small HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_TRUE(client.read_to_end().starts_with("HTTP/1.1 413 "));
}

TEST(Server, SpoolsBodiesAndRemovesThoseNobodyGot) {
  const TemporaryFolder folder;
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path),
                         std::filesystem::directory_iterator());
  };
  TestServer server(
      [](const auto& exchange) {
        const Request& request = exchange->request();
        const auto content = read_file(request.body_file->path());
        exchange->send(text(std::to_string(request.body_size) + (request.body.empty() ? " " : "!") +
                            (content ? content->substr(0, 3) : content.error().what)));
      },
      {},
      [&](const Request&) {
        return BodyPolicy{.size_max = 1 << 20, .spool_folder = folder.path, .refuse = {}};
      });
  RawClient client(server.port);
  client.send("PUT / HTTP/1.1\r\nContent-Length: 300000\r\n\r\nabc" + std::string(299997, 'x'));
  EXPECT_TRUE(client.read_answer().ends_with("300000 abc"));
  EXPECT_TRUE(server.loop.eventually([&] { return files() == 0; })) << "the handler left it";
  client.send("PUT / HTTP/1.1\r\nContent-Length: 300000\r\n\r\nabc");
  ASSERT_TRUE(server.loop.eventually([&] { return files() == 1; }));
  client.close();
  EXPECT_TRUE(server.loop.eventually([&] { return files() == 0; }));
}

TEST(Server, UnwritableSpoolIsReported) {
  TestServer server(echo, {}, [](const Request&) {
    return BodyPolicy{.size_max = 100, .spool_folder = "/nonexistent", .refuse = {}};
  });
  RawClient client(server.port);
  client.send("PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  const std::string answer = client.read_to_end();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
  EXPECT_NE(answer.find("/nonexistent"), std::string::npos) << answer;
}

TEST(Server, PolicyRefusesBeforeTheBody) {
  TestServer server(echo, {}, [](const Request&) {
    BodyPolicy policy;
    policy.refuse = text("who are you?", 401);
    return policy;
  });
  RawClient client(server.port);
  client.send("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client.read_answer().starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(client.read_answer().ends_with("who are you?")) << "without a body the connection continues";
  client.send("POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\nbegins");
  EXPECT_TRUE(client.read_to_end().ends_with("who are you?"));
  EXPECT_TRUE(client.ended);
}

TEST(Server, AnExchangeDroppedIs500) {
  TestServer server([](const auto&) {});
  RawClient client(server.port);
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client.read_answer().starts_with("HTTP/1.1 500 "));
}

TEST(Server, HeaderValuesCannotBreakOut) {
  TestServer server([](const auto& exchange) {
    exchange->send({200, {{"X-Name", "a\r\nSet-Cookie: b"}, {"Content-Length", "7"}}, "x"});
  });
  RawClient client(server.port);
  client.send("GET / HTTP/1.1\r\n\r\n");
  const std::string answer = client.read_answer();
  EXPECT_NE(answer.find("X-Name: a  Set-Cookie: b\r\n"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("Content-Length: 7"), std::string::npos) << answer;
}

TEST(Server, ReportsAClientThatDisconnectsBeforeTheAnswer) {
  Mailbox<std::shared_ptr<Exchange>> exchanges;
  Mailbox<bool> gone;
  TestServer server([&](std::shared_ptr<Exchange> exchange) {
    exchange->on_closed([&] { gone.put(true); });
    exchanges.put(std::move(exchange));
  });
  RawClient client(server.port);
  client.send("GET / HTTP/1.1\r\n\r\n");
  auto exchange = exchanges.take();
  ASSERT_TRUE(exchange);
  client.close();
  EXPECT_TRUE(gone.take());
  server.loop.call([&] {  // too late, and harmless
    (*exchange)->send(text("late"));
    exchange->reset();
  });
  EXPECT_TRUE(server.has_connections(0));
}

TEST(Server, AClientThatOnlyEndsItsSendingStillGetsTheAnswer) {
  Mailbox<std::shared_ptr<Exchange>> exchanges;
  Mailbox<bool> gone;
  TestServer server([&](std::shared_ptr<Exchange> exchange) {
    exchange->on_closed([&] { gone.put(true); });
    exchanges.put(std::move(exchange));
  });
  RawClient client(server.port);
  client.send("GET / HTTP/1.1\r\n\r\n");
  client.end_sending();
  ASSERT_TRUE(gone.take());
  auto exchange = exchanges.take();
  server.loop.call([&] {
    (*exchange)->send(text("late"));
    exchange->reset();
  });
  EXPECT_TRUE(client.read_to_end().ends_with("late"));
  EXPECT_TRUE(client.ended);
}

TEST(Server, StopClosesEverythingAndWhatIsLeftIsHarmless) {
  Mailbox<std::shared_ptr<Exchange>> exchanges;
  Mailbox<bool> gone;
  LoopThread loop;
  std::unique_ptr<Server> server;
  loop.call([&] {
    server = *Server::listen(loop.loop, {}, {}, [&](std::shared_ptr<Exchange> exchange) {
      exchange->on_closed([&] { gone.put(true); });
      exchanges.put(std::move(exchange));
    });
  });
  RawClient idle(server->port());
  RawClient waiting(server->port());
  waiting.send("GET / HTTP/1.1\r\n\r\n");
  auto exchange = exchanges.take();
  ASSERT_TRUE(exchange);
  const std::uint16_t port = server->port();
  loop.call([&] { server.reset(); });
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_EQ(waiting.read_to_end(), "");
  EXPECT_TRUE(gone.take());
  EXPECT_FALSE(RawClient(port).connected);
  loop.call([&] {
    auto stream = (*exchange)->start_stream(200, {});
    stream->write("x", [] {});
    stream->write("y", [] {});
    stream->finish();
    exchange->reset();
  });
}

TEST(Server, MayBeDestroyedByItsOwnHandler) {
  LoopThread loop;
  std::unique_ptr<Server> server;
  loop.call([&] {
    server = *Server::listen(loop.loop, {}, {}, [&](const std::shared_ptr<Exchange>& exchange) {
      server.reset();
      exchange->send(text("too late"));
    });
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.read_to_end(), "");
  loop.call([&] { EXPECT_EQ(server, nullptr); });
}

TEST(Server, LoopMayBeDestroyedWhileRequestsWait) {
  auto loop = std::make_unique<Loop>();
  auto server = *Server::listen(*loop, {}, {}, [&](std::shared_ptr<Exchange> exchange) {
    // Owned by the loop alone: destroyed, unanswered, with it.
    loop->post([kept = std::move(exchange)] { ADD_FAILURE() << "ran after stop"; });
    loop->stop();
  });
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\n\r\n");
  loop->run();
  server.reset();
  loop.reset();
  EXPECT_EQ(client.read_to_end(), "");
}

TEST(Server, AnAddressInUseIsAConflictThatNamesIt) {
  TestServer server(echo);
  Loop loop;
  ServerOptions options;
  options.port = server.port;
  const auto second = Server::listen(loop, options, {}, echo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
  EXPECT_EQ(second.error().what,
            "cannot listen on 127.0.0.1:" + std::to_string(server.port) + ": Address already in use");
}

TEST(Server, AnAddressOfAnotherMachineIsRefused) {
  Loop loop;
  ServerOptions options;
  options.address = "192.0.2.1";
  EXPECT_FALSE(Server::listen(loop, options, {}, echo));
}

}  // namespace
}  // namespace slipway::net::test
