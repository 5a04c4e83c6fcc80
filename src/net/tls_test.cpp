// TLS of the server and of both clients: what they trust, what they refuse, and that nothing is lost in it.
#include "net/tls_server.h"

#include <fcntl.h>

#include <atomic>

#include "net/certificates.h"
#include "net/test_support.h"

namespace slipway::net::test {
namespace {

// An authority and a server's certificate from it, in files.
struct Files {
  explicit Files(Duration lifetime = 24h, const std::vector<std::string>& hosts = {"127.0.0.1"})
      : authority(make_authority("test").value()) {
    issue(authority, lifetime, hosts);
  }
  void issue(const CertifiedKey& from, Duration lifetime,
             const std::vector<std::string>& hosts = {"127.0.0.1"}) {
    const CertifiedKey made = issue_server(from, hosts, lifetime).value();
    EXPECT_TRUE(write_file(options().certificate_file, made.certificate, 0600));
    EXPECT_TRUE(write_file(options().key_file, made.key, 0600));
  }
  TlsServer::Options options() const {
    return {folder.path + "/server.crt", folder.path + "/server.key", authority.certificate};
  }
  std::string fingerprint() const { return read_certificate(authority.certificate)->fingerprint; }

  TemporaryFolder folder;
  CertifiedKey authority;
};

struct SecureServer {
  explicit SecureServer(const Files& files, Server::Handler handler = echo)
      : tls(TlsServer::load(files.options()).value()),
        server(std::move(handler), ServerOptions{.tls = tls}),
        fingerprint(files.fingerprint()) {}
  Url url() const {
    Url url = server.url();
    url.is_secure = true;
    url.fingerprint = fingerprint;
    return url;
  }
  std::shared_ptr<TlsServer> tls;
  TestServer server;
  std::string fingerprint;
};

TEST(Tls, AnswersAreWholeAndConnectionsAreKept) {
  const Files files;
  const TemporaryFolder folder;
  const std::string path = folder.path + "/file";
  std::string content;
  for (int i = 0; i < 300'000; ++i) content += std::to_string(i);
  ASSERT_TRUE(write_file(path, content));
  SecureServer server(files, [&](const std::shared_ptr<Exchange>& exchange) {
    const Request& request = exchange->request();
    if (request.path == "/file")
      return exchange->send_file(200, {}, Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), 0, content.size());
    if (request.path == "/large") return exchange->send(text(content));
    exchange->send(text(request.method + std::to_string(request.body.size())));
  });
  Client client(server.url());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.request("GET", "/file")->body, content);
    EXPECT_EQ(client.request("GET", "/large")->body, content);
    EXPECT_EQ(client.request("POST", "/", {.body = content.substr(0, 1 << 20)})->body, "POST1048576");
  }
  EXPECT_TRUE(server.server.has_connections(1)) << "it dialled again";
}

TEST(Tls, WebSocketsCarryMessagesOfEverySize) {
  const Files files;
  std::shared_ptr<WebSocket> socket;
  SecureServer server(files, [&](const std::shared_ptr<Exchange>& exchange) {
    WebSocketCallbacks callbacks;
    callbacks.binary = [&](std::string message) { socket->send_binary(std::move(message)); };
    socket = exchange->accept_websocket(std::move(callbacks));
  });
  Mailbox<std::string> got;
  Mailbox<std::string> failed;
  std::shared_ptr<WebSocket> own;
  LoopThread loop;
  loop.call([&] {
    WebSocketCallbacks callbacks;
    callbacks.binary = [&](std::string message) { got.put(std::move(message)); };
    connect_websocket(loop.loop, server.url(), "/", {}, std::move(callbacks), [&](auto opened) {
      failed.put(opened ? "" : opened.error().what);
      if (opened) own = *opened;
    });
  });
  ASSERT_EQ(failed.take(), "");
  for (const std::size_t size : {0u, 1u, 16'000u, 16'384u, 70'000u, 5'000'000u}) {
    std::string message(size, 'x');
    for (std::size_t i = 0; i < size; i += 97) message[i] = static_cast<char>(i);
    loop.call([&] { own->send_binary(message); });
    EXPECT_TRUE(got.take() == message) << size;
  }
  loop.call([&] { own.reset(); });
  server.server.loop.call([&] { socket.reset(); });
}

TEST(Tls, TrustsThePinnedCertificateAndNoOther) {
  const Files files;
  SecureServer server(files);
  EXPECT_TRUE(Client(server.url()).request("GET", "/"));
  Url own = server.url();  // the server's certificate itself
  own.fingerprint = read_certificate(*read_file(files.options().certificate_file))->fingerprint;
  EXPECT_TRUE(Client(own).request("GET", "/"));

  Url other = server.url();
  other.fingerprint = std::string(64, 'a');
  const auto refused = Client(other).request("GET", "/");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("does not have the fingerprint"), std::string::npos)
      << refused.error().what;
  other.fingerprint.clear();  // what this machine trusts does not include a made-up authority
  EXPECT_FALSE(Client(other).request("GET", "/"));
}

TEST(Tls, RefusesACertificateThatExpired) {
  Files files;
  files.issue(files.authority, -60s);
  SecureServer server(files);
  const auto refused = Client(server.url()).request("GET", "/");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("expired"), std::string::npos) << refused.error().what;
}

// Signed by the authority, but for a client: a node must not pass for the service.
TEST(Tls, RefusesACertificateOfANodeAsTheServers) {
  const Files files;
  const std::string key = make_key().value();
  const std::string node =
      sign_client(files.authority, make_certificate_request(key).value(), "n1", 24h).value();
  ASSERT_TRUE(write_file(files.options().certificate_file, node + files.authority.certificate));
  ASSERT_TRUE(write_file(files.options().key_file, key));
  SecureServer server(files);
  EXPECT_FALSE(Client(server.url()).request("GET", "/"));
}

TEST(Tls, AClientsCertificateIsItsName) {
  const Files files;
  SecureServer server(files, [](const std::shared_ptr<Exchange>& exchange) {
    exchange->send(text("peer " + exchange->request().peer_name));
  });
  int made = 0;
  const auto with = [&](const CertifiedKey& authority, Duration lifetime) {
    const std::string key = make_key().value();
    Url url = server.url();
    url.certificate_file = files.folder.path + "/node" + std::to_string(++made);
    url.key_file = url.certificate_file + ".key";
    EXPECT_TRUE(write_file(url.key_file, key));
    EXPECT_TRUE(write_file(
        url.certificate_file,
        sign_client(authority, make_certificate_request(key).value(), "token_1", lifetime).value()));
    return url;
  };
  EXPECT_EQ(Client(server.url()).request("GET", "/")->body, "peer ");
  const Url good = with(files.authority, 24h);
  for (int i = 0; i < 3; ++i)  // the second and third resume the first one's session
    EXPECT_EQ(Client(good).request("GET", "/")->body, "peer token_1");
  EXPECT_FALSE(Client(with(files.authority, -60s)).request("GET", "/")) << "an expired one was taken";
  EXPECT_FALSE(Client(with(make_authority("other").value(), 24h)).request("GET", "/"));
}

// Requests continue while the certificate is replaced; new connections get the new one.
TEST(Tls, IsRotatedUnderLoad) {
  Files files;
  SecureServer server(files);
  std::atomic<bool> stop = false;
  std::atomic<int> answered = 0;
  std::vector<std::string> problems(3);
  std::vector<std::jthread> askers;
  for (std::size_t i = 0; i < problems.size(); ++i)
    askers.emplace_back([&, i] {
      Client kept(server.url());
      while (!stop) {
        const auto old = kept.request("GET", "/kept");
        const auto fresh = Client(server.url()).request("GET", "/fresh");
        if (!old || !fresh) problems[i] = (old ? fresh : old).error().what;
        ++answered;
      }
    });
  for (int i = 0; i < 20; ++i) {
    const int before = answered;
    files.issue(files.authority, 24h, {"127.0.0.1", "host-" + std::to_string(i)});
    server.server.loop.call([&] { EXPECT_TRUE(server.tls->reload()); });
    EXPECT_TRUE(server.server.loop.eventually([&] { return answered > before + 3; }));
  }
  stop = true;
  askers.clear();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");

  ASSERT_TRUE(write_file(files.options().key_file, "nothing"));
  server.server.loop.call([&] { EXPECT_FALSE(server.tls->reload()); });
  EXPECT_TRUE(Client(server.url()).request("GET", "/")) << "a broken file took the good certificate away";
}

TEST(Tls, SaysSoToOneWhoSpeaksPlain) {
  const Files files;
  SecureServer server(files);
  RawClient client(server.server.port);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.read_to_end().find("this port speaks TLS"), std::string::npos);
  Url plain = server.server.url();
  EXPECT_EQ(Client(plain).request("GET", "/")->status, 400);
}

TEST(Tls, AHandshakeThatStopsHoldsNothingUp) {
  const Files files;
  SecureServer server(files);
  RawClient idle(server.server.port);
  RawClient garbage(server.server.port);
  garbage.send("\x16\x03\x01\x02");
  EXPECT_TRUE(Client(server.url()).request("GET", "/"));
  garbage.send(std::string(4000, 'z'));
  garbage.read_to_end();
  EXPECT_TRUE(Client(server.url()).request("GET", "/"));
}

TEST(Url, CarriesAFingerprint) {
  const std::string pin(64, 'b');
  const auto url = parse_url("https://head:8470#sha256:" + pin);
  ASSERT_TRUE(url);
  EXPECT_EQ(url->fingerprint, pin);
  EXPECT_EQ(url->origin(), "https://head:8470");
  EXPECT_EQ(parse_url("https://head")->port, 443);
  for (const std::string& wrong :
       {"http://head#sha256:" + pin, "https://head#sha256:" + pin.substr(1), std::string("https://head#x"),
        "https://head#sha256:" + pin + "0", "https://head#sha1:" + pin})
    EXPECT_FALSE(parse_url(wrong)) << wrong;
}

TEST(Certificates, RequestsAreSignedByTheirKeyAndRenewedInTime) {
  const CertifiedKey authority = make_authority("a").value();
  EXPECT_FALSE(sign_client(authority, "nothing", "n", 1h));
  const std::string made =
      sign_client(authority, make_certificate_request(make_key().value()).value(), "n", 3h).value();
  const auto facts = read_certificate(made).value();
  EXPECT_EQ(facts.name, "n");
  EXPECT_FALSE(should_renew(made, facts.not_before + 1h));
  EXPECT_TRUE(should_renew(made, facts.not_before + 4h));
  EXPECT_TRUE(should_renew("", facts.not_before));
  const auto server = issue_server(authority, {"localhost", "::1", "10.1.2.3"}, 1h).value();
  EXPECT_EQ(read_certificate(server.certificate)->hosts,
            (std::vector<std::string>{"localhost", "::1", "10.1.2.3"}));
  EXPECT_EQ(read_certificate(server.certificate, true)->fingerprint,
            read_certificate(authority.certificate)->fingerprint);
}

}  // namespace
}  // namespace slipway::net::test
