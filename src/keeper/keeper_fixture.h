#pragma once
// A real keeper in a folder of its own, for tests. Everything it started is gone with the object.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "keeper/keeper.h"
#include "keeper/protocol.h"
#include "keeper/socket.h"

namespace slipway::keeper {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "slipway-node-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path;
};

// Waits for a condition that nothing reports; false after half a minute.
inline bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

inline bool is_alive(pid_t pid) {  // and not a zombie
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return false;
  const char state = (*stat)[stat->rfind(')') + 2];
  return state != 'Z' && state != 'X';
}

// The pid a test's script has written to a file.
inline pid_t pid_in(const std::string& path) {
  eventually([&] {
    const auto text = read_file(path);
    return text && text->ends_with('\n');
  });
  const auto text = read_file(path);
  return text ? std::atoi(text->c_str()) : 0;
}

inline WorkKey attempt(std::uint32_t index) { return AttemptKey{{JobId(1), 0, index}, 1}; }

// The worst a caller can leave behind, the C library's own signals included.
inline void ignore_every_signal() {
  struct {
    void (*handler)(int);
    unsigned long flags, restorer, mask;
  } const ignore{SIG_IGN, 0, 0, 0};
  for (int signal = 1; signal < NSIG; ++signal)
    ::syscall(SYS_rt_sigaction, signal, &ignore, nullptr, sizeof ignore.mask);
}

class TestKeeper {
 public:
  enum class Groups { used, forbidden };
  explicit TestKeeper(Groups groups, const std::string& in = {}) : groups_(groups) {
    folder = in.empty() ? temporary_.path + "/node" : in;
    EXPECT_TRUE(make_folders(folder).has_value());
    start();
  }
  ~TestKeeper() {
    if (socket_) {
      send(QuitRequest{});
      wait();
    } else {
      kill();
    }
  }

  void start() {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      ::dup2(ready[1], STDOUT_FILENO);
      ignore_every_signal();
      if (groups_ == Groups::forbidden)
        ::setenv("SLIPWAY_NO_CGROUP", "1", 1);
      else
        ::unsetenv("SLIPWAY_NO_CGROUP");
      ::_exit(run_keeper({folder}));
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the keeper did not become ready";
    ::close(ready[0]);
    connect();
  }
  int wait() {
    int status = 0;
    if (pid > 0) ::waitpid(pid, &status, 0);
    pid = 0;
    socket_.reset();
    return status;
  }
  void kill() {
    if (pid > 0) ::kill(pid, SIGKILL);
    wait();
  }
  // As an agent that was killed.
  void disconnect() { socket_.reset(); }
  void connect() {
    auto socket = connect_keeper(folder);
    ASSERT_TRUE(socket.has_value()) << socket.error().what;
    socket_ = std::move(*socket);
    in_.clear();
    send(ListRequest{});
    const auto message = next();
    ASSERT_TRUE(message && std::holds_alternative<ProcessList>(*message));
    list = std::get<ProcessList>(*message);
  }

  void send(const ToKeeper& message) {
    std::string bytes;
    append_frame(bytes, message);
    send_raw(bytes);
  }
  void send_raw(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
      pollfd writable{socket_.get(), POLLOUT, 0};
      if (put < 0 && errno != EAGAIN) return;
      if (put < 0) ::poll(&writable, 1, 1000);
    }
  }
  // The next message; nullopt when the keeper closed, or said nothing for half a minute.
  std::optional<FromKeeper> next() {
    for (;;) {
      std::string_view rest = in_;
      const auto frame = take_frame(rest);
      if (frame && *frame) {
        auto message = parse_from_keeper(**frame);
        in_.erase(0, in_.size() - rest.size());
        return message ? std::optional(std::move(*message)) : std::nullopt;
      }
      pollfd readable{socket_.get(), POLLIN, 0};
      char buffer[4096];
      if (::poll(&readable, 1, 30'000) != 1) return std::nullopt;
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return std::nullopt;
      in_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  bool has_message() {  // or the connection is closed
    std::string_view rest = in_;
    const auto frame = take_frame(rest);
    pollfd readable{socket_.get(), POLLIN, 0};
    return (frame && *frame) || ::poll(&readable, 1, 0) == 1;
  }
  ProcessStarted started() {
    const auto message = next();
    if (message && std::holds_alternative<ProcessStarted>(*message))
      return std::get<ProcessStarted>(*message);
    ADD_FAILURE() << "no start was reported"
                  << (message && std::holds_alternative<ProcessEnded>(*message)
                          ? ": " + std::get<ProcessEnded>(*message).detail
                          : "");
    return {};
  }
  ProcessEnded ended() {
    const auto message = next();
    if (message && std::holds_alternative<ProcessEnded>(*message)) return std::get<ProcessEnded>(*message);
    ADD_FAILURE() << "no end was reported";
    return {};
  }

  StartRequest command(std::uint32_t index, std::vector<std::string> argv) const {
    ProcessSpec process;
    process.argv = std::move(argv);
    process.environment = {"PATH=/usr/bin:/bin", "HERE=" + folder};
    const std::string task = folder + "/task-" + std::to_string(index);
    process.folders = {task, task + "/wd"};
    process.stdout_file = task + "/stdout.txt";
    process.stderr_file = task + "/stderr.txt";
    process.working_folder = task + "/wd";
    process.resources.cores = 1000;
    return {attempt(index), 5s, false, {}, {process}};
  }
  StartRequest script(std::uint32_t index, const std::string& text) const {
    return command(index, {"/bin/sh", "-c", text});
  }

  std::string folder;
  pid_t pid = 0;
  ProcessList list;  // as of the last connect()

 private:
  TemporaryFolder temporary_;
  Groups groups_;
  Fd socket_;
  std::string in_;
};

}  // namespace slipway::keeper
