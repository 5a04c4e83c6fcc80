// One connection or many that ask as fast as they are answered, and the least a server could do for them.
//
//   serve_load client PORT PATH BODY_FILE CONNECTIONS SECONDS [JSON_SIZE]   JSON: requests per second, p50,
//   p99, failures serve_load floor MODEL_FILE                                             prints its port;
//   one thread, epoll, our parser
//                                                                           and model, no HTTP but
//                                                                           Content-Length
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "serve/native_model.h"
#include "serve/tf_answer.h"
#include "serve/tf_request.h"

using namespace slipway;
using Steady = std::chrono::steady_clock;

namespace {

// The whole size of the message at the front, or 0 where more has to come.
std::size_t message_size(const std::string& text) {
  const std::size_t head = text.find("\r\n\r\n");
  if (head == std::string::npos) return 0;
  const char* length = ::strcasestr(text.c_str(), "\r\ncontent-length:");
  const std::size_t body = length == nullptr ? 0 : std::strtoul(length + 17, nullptr, 10);
  const std::size_t whole = head + 4 + body;
  return text.size() >= whole ? whole : 0;
}

struct Peer {
  int fd = -1;
  std::string in, out;
  std::size_t sent = 0;
  Steady::time_point asked{};
};

// False when the connection ended.
bool read_more(Peer& peer) {
  char part[65536];
  const ssize_t got = ::read(peer.fd, part, sizeof part);
  if (got > 0) peer.in.append(part, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EAGAIN);
}
void write_more(Peer& peer, int poll) {
  while (peer.sent < peer.out.size()) {
    const ssize_t put = ::write(peer.fd, peer.out.data() + peer.sent, peer.out.size() - peer.sent);
    if (put <= 0) break;
    peer.sent += static_cast<std::size_t>(put);
  }
  epoll_event event{};
  event.events = peer.sent < peer.out.size() ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.fd = peer.fd;
  ::epoll_ctl(poll, EPOLL_CTL_MOD, peer.fd, &event);
}
void add(int poll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  ::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

int client(char** arguments) {
  const auto port = static_cast<std::uint16_t>(std::atoi(arguments[0]));
  const auto body = read_file(arguments[2]);
  SLIPWAY_CHECK(body.has_value());
  const int connections = std::atoi(arguments[3]);
  const double wanted = std::atof(arguments[4]);
  std::string request =
      fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", arguments[1], body->size());
  if (arguments[5] != nullptr)
    request += fmt::format("Inference-Header-Content-Length: {}\r\n", arguments[5]);
  request += "\r\n" + *body;
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  std::unordered_map<int, Peer> peers;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < connections; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SLIPWAY_CHECK(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    Peer& peer = peers[fd] = {fd, {}, request, 0, Steady::now()};
    add(poll, fd);
    write_more(peer, poll);
  }
  std::vector<double> latencies;
  std::size_t failures = 0;
  const auto begun = Steady::now();
  const auto warm = begun + std::chrono::milliseconds(300),
             end = warm + std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(wanted));
  epoll_event events[256];
  while (Steady::now() < end) {
    const int count = ::epoll_wait(poll, events, 256, 100);
    for (int i = 0; i < count; ++i) {
      Peer& peer = peers.at(events[i].data.fd);
      if ((events[i].events & EPOLLOUT) != 0) write_more(peer, poll);
      if ((events[i].events & EPOLLIN) == 0) continue;
      SLIPWAY_CHECK(read_more(peer));
      const std::size_t size = message_size(peer.in);
      if (size == 0) continue;
      const auto now = Steady::now();
      if (!peer.in.starts_with("HTTP/1.1 200")) ++failures;
      if (now > warm)
        latencies.push_back(std::chrono::duration<double, std::micro>(now - peer.asked).count());
      peer.in.erase(0, size);
      peer.sent = 0;
      peer.asked = now;
      write_more(peer, poll);
    }
  }
  std::sort(latencies.begin(), latencies.end());
  const auto at = [&](double part) {
    return latencies.empty()
               ? 0
               : latencies[static_cast<std::size_t>(part * static_cast<double>(latencies.size() - 1))];
  };
  fmt::print("{{\"requests_per_s\": {:.0f}, \"p50_us\": {:.1f}, \"p99_us\": {:.1f}, \"failures\": {}}}\n",
             static_cast<double>(latencies.size()) / wanted, at(0.5), at(0.99), failures);
  return 0;
}

std::string answer(const serve::Model& model, const std::string& message) {
  const auto json = serve::parse_body(std::string_view(message).substr(message.find("\r\n\r\n") + 4));
  SLIPWAY_CHECK(json.has_value());
  const serve::Signature& signature = model.signatures().find(serve::default_signature)->second;
  const auto inputs = serve::parse_predict(json->root(), signature);
  SLIPWAY_CHECK(inputs.has_value());
  const auto outputs = model.run(serve::default_signature, inputs->tensors);
  const auto text = serve::format_predict(*outputs, inputs->format);
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", text->size(), *text);
}

int floor_server(const char* file) {
  const auto model = serve::load_native_model(file);
  SLIPWAY_CHECK(model.has_value());
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  SLIPWAY_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0 &&
                ::listen(listener, 1024) == 0);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size);
  fmt::print("listens on http://127.0.0.1:{}\n", ntohs(own.sin_port));
  std::fflush(stdout);
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  add(poll, listener);
  std::unordered_map<int, Peer> peers;
  epoll_event events[256];
  for (;;) {
    const int count = ::epoll_wait(poll, events, 256, -1);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == listener) {
        const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        const int on = 1;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        peers[fd].fd = fd;
        add(poll, fd);
        continue;
      }
      Peer& peer = peers.at(events[i].data.fd);
      if (!read_more(peer)) {
        ::close(peer.fd);
        peers.erase(events[i].data.fd);
        continue;
      }
      const std::size_t whole = message_size(peer.in);
      if (whole == 0) continue;
      peer.out = answer(**model, peer.in);
      peer.in.erase(0, whole);
      [[maybe_unused]] const ssize_t put = ::write(peer.fd, peer.out.data(), peer.out.size());
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count >= 7 && std::strcmp(arguments[1], "client") == 0) return client(arguments + 2);
  if (count == 3 && std::strcmp(arguments[1], "floor") == 0) return floor_server(arguments[2]);
  fmt::print(
      stderr,
      "usage: serve_load client PORT PATH BODY_FILE CONNECTIONS SECONDS [JSON_SIZE] | floor MODEL_FILE\n");
  return 2;
}
