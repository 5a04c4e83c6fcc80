#pragma once
// Real processes for tests: started, watched, killed, and always collected.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace slipway::train {

class Folder {  // temporary
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "slipway-e2e-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Looks again and again until it holds; the deadline only bounds a broken run.
inline bool eventually(const std::function<bool()>& holds,
                       std::chrono::seconds most = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + most;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class Process {
 public:
  Process(std::vector<std::string> arguments, std::vector<std::string> environment, std::string log)
      : log_(std::move(log)) {
    std::error_code absent;
    const auto before = std::filesystem::file_size(log_, absent);
    log_begins_ = absent ? 0 : before;
    std::vector<char*> argv, envp;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    for (char** entry = environ; *entry != nullptr; ++entry) envp.push_back(*entry);
    for (std::string& entry : environment) envp.push_back(entry.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), log_(std::move(other.log_)), log_begins_(other.log_begins_) {}
  Process& operator=(Process&& other) noexcept {
    end();
    pid_ = std::exchange(other.pid_, 0);
    log_ = std::move(other.log_);
    log_begins_ = other.log_begins_;
    return *this;
  }
  ~Process() { end(); }

  void signal(int number) const { ::kill(pid_, number); }
  // kill -9, and collected.
  void end() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // Exit code, or 128 + signal; -1 when it does not end within the time.
  int wait(std::chrono::seconds most = std::chrono::seconds(120)) {
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    pollfd ended{fd, POLLIN, 0};
    const int ready = ::poll(&ended, 1, static_cast<int>(most.count() * 1000));
    ::close(fd);
    if (ready <= 0) return -1;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Without what an earlier process wrote to the same log.
  std::string output() const { return content(log_).substr(log_begins_); }

 private:
  pid_t pid_ = 0;
  std::string log_;
  std::size_t log_begins_ = 0;
};

}  // namespace slipway::train
