#include "net/client.h"

#include <fcntl.h>

#include <fstream>

#include "net/test_support.h"

namespace slipway::net::test {
namespace {

// A server that does with each connection exactly what the test asks for.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::function<void(int)>> connections) {
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
    thread_ = std::jthread([this, scripts = std::move(connections)] {
      for (const auto& script : scripts) {
        const Fd client(::accept(listener_.get(), nullptr, nullptr));
        if (!client) return;
        script(client.get());
      }
    });
  }
  ~ScriptedServer() { ::shutdown(listener_.get(), SHUT_RDWR); }
  static void answer(int client, std::string_view bytes) {
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(client, buffer, sizeof buffer, 0);
      if (got <= 0) return;
      request.append(buffer, static_cast<std::size_t>(got));
    }
    ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  Url url() const { return {"127.0.0.1", port, ""}; }
  std::uint16_t port = 0;

 private:
  Fd listener_;
  std::jthread thread_;
};

constexpr std::string_view fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST(Client, KeepsItsConnection) {
  TestServer server([](const auto& exchange) {
    const Request& request = exchange->request();
    exchange->send(text(request.method + " " + request.target + " " + request.body + " " +
                        request.header("authorization").value_or("") + " " +
                        request.header("X").value_or("")));
  });
  Url url = server.url();
  url.path = "/base";
  Client client(url, {{"Authorization", "Bearer t"}, {"X", "always"}});
  for (int i = 0; i < 3; ++i) {
    const auto response = client.request("POST", "/v1/x?y=1", {.body = "abc", .headers = {{"X", "once"}}});
    ASSERT_TRUE(response) << response.error().what;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "POST /base/v1/x?y=1 abc Bearer t once");
    EXPECT_EQ(find_header(response->headers, "content-type"), "text/plain");
  }
  EXPECT_TRUE(server.has_connections(1));
  const auto head = client.request("HEAD", "/x");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->body, "");
  EXPECT_TRUE(client.request("GET", "/x"));
  EXPECT_TRUE(server.has_connections(1));
}

TEST(Client, RedialsWhenTheServerClosedTheIdleConnection) {
  ServerOptions options;
  options.idle_max = 200ms;
  TestServer server(echo, options);
  Client client(server.url());
  for (int i = 0; i < 3; ++i) {
    const auto response = client.request("POST", "/", {.body = "abc"});
    ASSERT_TRUE(response) << response.error().what;
    EXPECT_EQ(response->body, "POST / abc");
    ASSERT_TRUE(server.has_connections(0));
  }
}

TEST(Client, RedialsOnceAndOnlyWhatMayBeSentTwice) {
  const auto answer_then_vanish = [](int client) {
    ScriptedServer::answer(client, fine);
    ScriptedServer::answer(client, "");  // reads the second request and closes
  };
  struct Row {
    const char* rule;
    const char* method;
    Headers headers;
    bool succeeds;
  };
  const Row rows[] = {
      {"a GET is sent again", "GET", {}, true},
      {"a POST may have been acted upon", "POST", {}, false},
      {"a POST with a key is recognised", "POST", {{"Idempotency-Key", "k"}}, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    ScriptedServer server({answer_then_vanish, [](int client) { ScriptedServer::answer(client, fine); }});
    Client client(server.url());
    ASSERT_TRUE(client.request("GET", "/"));
    const auto second = client.request(row.method, "/", {.headers = row.headers});
    EXPECT_EQ(second.has_value(), row.succeeds) << (second ? "" : second.error().what);
  }
  // A fresh connection that vanishes is not tried again.
  ScriptedServer server({[](int client) { ScriptedServer::answer(client, ""); },
                         [](int client) { ScriptedServer::answer(client, fine); }});
  const auto response = Client(server.url()).request("GET", "/");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::unavailable);
  EXPECT_TRUE(response.error().what.ends_with(" closed the connection without an answer"))
      << response.error().what;
  EXPECT_TRUE(Client(server.url()).request("GET", "/"));
}

TEST(Client, ReportsTheUnreachableAddress) {
  const auto refused = Client({"127.0.0.1", 1, ""}).request("GET", "/");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_EQ(refused.error().what, "cannot reach http://127.0.0.1:1: Connection refused");
  EXPECT_EQ(Client({"127.0.0.1", 1, ""}).request("GET", "/a b").error().code, ErrorCode::invalid);
  const auto unknown = Client({"no-such-host.invalid", 1, ""}).request("GET", "/");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::unavailable);
}

TEST(Client, KeepsItsDeadlineAndCanBeInterrupted) {
  TestServer server([kept = std::vector<std::shared_ptr<Exchange>>()](auto exchange) mutable {
    kept.push_back(std::move(exchange));
  });
  Client client(server.url());
  const auto late = client.request("GET", "/", {.deadline = 30ms});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::unavailable);
  EXPECT_TRUE(late.error().what.ends_with("did not answer within 30 ms")) << late.error().what;

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  const auto interrupted = client.request("GET", "/", {.cancel_fd = ends[0]});
  ASSERT_FALSE(interrupted);
  EXPECT_TRUE(interrupted.error().what.ends_with("interrupted"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Client, ReadsEveryFraming) {
  struct Row {
    const char* answer;
    const char* outcome;  // the body, or "!" and the error's end
  };
  const Row rows[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", "ok"},
      {"HTTP/1.0 200 OK\r\n\r\nok", "ok"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"},
      {"HTTP/1.1 204 No Content\r\n\r\n", ""},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "!in the middle of its answer"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "!in the middle of its answer"},
      {"220 mail.example ESMTP\r\n\r\n", "!bad version"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "!bad chunk"},
  };
  for (const Row& row : rows) {
    ScriptedServer server({[&](int client) { ScriptedServer::answer(client, row.answer); }});
    const auto response = Client(server.url()).request("GET", "/");
    if (*row.outcome != '!') {
      ASSERT_TRUE(response) << row.answer << response.error().what;
      EXPECT_EQ(response->body, row.outcome);
    } else {
      ASSERT_FALSE(response) << row.answer;
      EXPECT_TRUE(response.error().what.ends_with(row.outcome + 1)) << response.error().what;
    }
  }
}

TEST(Client, AnswersHaveABound) {
  ScriptedServer server({[](int client) {
    ScriptedServer::answer(client, "HTTP/1.1 200 OK\r\nX: ");
    const std::string much(1 << 16, 'x');
    while (::send(client, much.data(), much.size(), MSG_NOSIGNAL) > 0) {
    }
  }});
  const auto response = Client(server.url()).request("GET", "/");
  ASSERT_FALSE(response);
  EXPECT_TRUE(response.error().what.find("protocol error") != std::string::npos);
}

TEST(Client, StreamsPiecesAndStopsOnRequest) {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/sparse";
  constexpr std::uint64_t size = 400u << 20;  // more than a body held in memory may have
  std::ofstream(path).close();
  std::filesystem::resize_file(path, size);
  TestServer server([&](const auto& exchange) {
    if (exchange->request().path == "/error") return exchange->send(text("not a piece", 404));
    exchange->send_file(200, {}, Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), 0, size);
  });
  Client client(server.url());
  std::uint64_t total = 0;
  const auto whole = client.request("GET", "/", {.on_piece = [&](std::string_view piece) {
                                      total += piece.size();
                                      return true;
                                    }});
  ASSERT_TRUE(whole) << whole.error().what;
  EXPECT_EQ(total, size);
  EXPECT_EQ(whole->body, "");
  const auto too_large = client.request("GET", "/");
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, ErrorCode::too_large);
  int pieces = 0;
  EXPECT_TRUE(client.request("GET", "/", {.on_piece = [&](std::string_view) { return ++pieces < 3; }}));
  EXPECT_EQ(pieces, 3);
  EXPECT_TRUE(server.has_connections(0)) << "the rest is not read";
  const auto error = client.request("GET", "/error", {.on_piece = [](std::string_view) { return false; }});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->body, "not a piece");
}

TEST(Client, UploadsFiles) {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/upload";
  std::string content(3'000'000, 'x');
  for (std::size_t i = 0; i < content.size(); i += 997) content[i] = static_cast<char>(i);
  std::ofstream(path, std::ios::binary) << content;
  TestServer server([&](const auto& exchange) {
    exchange->send(text(exchange->request().body == content ? "same" : "different"));
  });
  Client client(server.url());
  for (int i = 0; i < 2; ++i) {
    const auto response = client.request("PUT", "/", {.body_file = path});
    ASSERT_TRUE(response) << response.error().what;
    EXPECT_EQ(response->body, "same");
  }
  EXPECT_TRUE(server.has_connections(1));
  const auto missing = client.request("PUT", "/", {.body_file = folder.path + "/none"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_FALSE(client.request("PUT", "/", {.body_file = folder.path}));
}

TEST(Client, ReportsWhyAnUploadWasRejectedMidway) {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/sparse";
  std::ofstream(path).close();
  std::filesystem::resize_file(path, 64u << 20);
  TestServer server(echo);  // takes 16 MiB
  const auto response = Client(server.url()).request("PUT", "/", {.body_file = path});
  ASSERT_TRUE(response) << response.error().what;
  EXPECT_EQ(response->status, 413);
  EXPECT_NE(response->body.find("the body has 67108864 bytes; 16777216 are allowed"), std::string::npos)
      << response->body;
}

}  // namespace
}  // namespace slipway::net::test
