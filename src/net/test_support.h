#pragma once
// What net's tests share: a loop on a thread of its own, a server on it, and a client that can misbehave.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "base/file.h"
#include "net/client.h"
#include "net/loop.h"
#include "net/server.h"

namespace slipway::net::test {

using namespace std::literals;
inline constexpr auto patience = 20s;  // for things that must happen; never waited out when they do

// Values from one thread to another.
template <class T>
class Mailbox {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  std::optional<T> take(std::chrono::milliseconds wait = patience) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, wait, [&] { return !values_.empty(); })) return std::nullopt;
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;  // guarded by mutex_
};

class LoopThread {
 public:
  LoopThread() : thread_([this] { loop.run(); }) {}
  ~LoopThread() {
    loop.stop();
    thread_.join();
  }
  // Runs `work` on the loop and waits for it.
  template <class Work>
  auto call(Work work) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    loop.post([&task] { task(); });
    return result.get();
  }
  // Until the condition, looked at on the loop, holds.
  template <class Condition>
  bool eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!call(condition)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

  Loop loop;

 private:
  std::thread thread_;
};

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string pattern = parent / "slipway-net.XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

// A TCP client that sends what it is given, byte for byte.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0) {
    socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{20, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (receive_buffer > 0)
      ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  // False when the server does not take it any more.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }
  // Reads until this text came (and gives all up to its end), or the end, or an error.
  std::string read_until(std::string_view text) {
    std::size_t at = 0;
    while ((at = received_.find(text)) == std::string::npos && receive()) {
    }
    const std::size_t end = at == std::string::npos ? received_.size() : at + text.size();
    std::string result = received_.substr(0, end);
    received_.erase(0, end);
    return result;
  }
  std::string read(std::size_t size) {
    while (received_.size() < size && receive()) {
    }
    std::string result = received_.substr(0, size);
    received_.erase(0, result.size());
    return result;
  }
  std::string read_to_end() {
    while (receive()) {
    }
    return std::exchange(received_, {});
  }
  // One answer with a Content-Length: head and body.
  std::string read_answer() {
    std::string answer = read_until("\r\n\r\n");
    const std::size_t at = answer.find("Content-Length: ");
    if (at == std::string::npos) return answer;
    return answer + read(std::strtoul(answer.c_str() + at + 16, nullptr, 10));
  }
  bool receive() {
    char buffer[65536];
    const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
    ended = got == 0;
    if (got <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }
  void end_sending() { ::shutdown(socket_.get(), SHUT_WR); }
  void close() { socket_.reset(); }
  int fd() const { return socket_.get(); }

  bool connected = false;
  bool ended = false;  // the server closed in order

 private:
  Fd socket_;
  std::string received_;
};

// A server on its own loop.
class TestServer {
 public:
  explicit TestServer(Server::Handler handler, ServerOptions options = {}, Server::Policy policy = {}) {
    loop.call([&] {
      auto made = Server::listen(loop.loop, options, std::move(policy), std::move(handler));
      EXPECT_TRUE(made) << made.error().what;
      server = std::move(*made);
    });
    port = server->port();
  }
  ~TestServer() {
    loop.call([&] { server.reset(); });
  }
  bool has_connections(std::size_t count) {
    return loop.eventually([&] { return server->connections() == count; });
  }
  Url url() const { return {"127.0.0.1", port, ""}; }

  LoopThread loop;
  std::unique_ptr<Server> server;
  std::uint16_t port = 0;
};

inline Response text(std::string body, int status = 200) {
  return {status, {{"Content-Type", "text/plain"}}, std::move(body)};
}

// Answers with the method, the path and the body.
inline void echo(const std::shared_ptr<Exchange>& exchange) {
  const Request& request = exchange->request();
  exchange->send(text(request.method + " " + request.path + " " + request.body));
}

}  // namespace slipway::net::test
