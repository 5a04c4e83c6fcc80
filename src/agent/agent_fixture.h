#pragma once
// A service that sends what a test gives it, and real agents that connect to it.
#include <spawn.h>
#include <sys/wait.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "keeper/keeper_fixture.h"
#include "net/loop.h"
#include "net/server.h"
#include "wire/protocol.h"

namespace slipway::agent {

using keeper::attempt;
using keeper::eventually;
using keeper::is_alive;
using keeper::pid_in;
using keeper::TemporaryFolder;

class FakeService {
 public:
  FakeService() {
    auto server = net::Server::listen(
        loop, {}, [](const net::Request&) { return net::BodyPolicy{}; },
        [this](std::shared_ptr<net::Exchange> exchange) { answer(*exchange); });
    EXPECT_TRUE(server.has_value());
    server_ = std::move(*server);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  // Runs the loop until the condition holds; false after half a minute.
  bool wait(const std::function<bool()>& condition) {
    bool late = false;
    const auto deadline = loop.after(30s, [&] {
      late = true;
      loop.stop();
    });
    while (!condition() && !late) loop.run();
    return !late;
  }

  // Runs the loop until the process has ended.
  bool wait_for_end(pid_t pid) {
    return wait([&] {
      if (!is_alive(pid)) return true;
      look_again_ = loop.after(2ms, [this] { loop.stop(); });
      return false;
    });
  }

  // Waits for a Hello and welcomes it.
  Hello welcome() {
    EXPECT_TRUE(wait([&] { return !hellos.empty(); }));
    if (hellos.empty()) return {};
    const Hello hello = hellos.front();
    hellos.erase(hellos.begin());
    number_ = 0;
    socket->send_text(wire::format(ToAgent(Welcome{NodeId(1)})));
    return hello;
  }
  void order(Orders orders) {
    orders.number = ++number_;
    socket->send_text(wire::format(ToAgent(std::move(orders))));
  }
  ProcessStarted started() {
    EXPECT_TRUE(wait([&] { return !starts.empty(); }));
    return starts.empty() ? ProcessStarted{} : take(starts);
  }
  ProcessEnded ended() {
    EXPECT_TRUE(wait([&] { return !ends.empty(); }));
    return ends.empty() ? ProcessEnded{} : take(ends);
  }
  // Sends a file request and waits for the reply: its kind, and the rest.
  std::pair<int, std::string> ask_file(const std::string& json) {
    send_file_request(json);
    return file_reply();
  }
  void send_file_request(const std::string& json) {
    std::string message(8, '\0');
    message[0] = static_cast<char>(++file_number_);
    socket->send_binary(message + json);
  }
  std::pair<int, std::string> file_reply() {
    EXPECT_TRUE(wait([&] { return !file_replies.empty(); }));
    if (file_replies.empty()) return {-1, ""};
    const std::string reply = take(file_replies);
    EXPECT_EQ(reply[0], static_cast<char>(file_number_));
    return {reply[8], reply.substr(9)};
  }

  net::Loop loop;
  std::shared_ptr<net::WebSocket> socket;
  std::vector<Hello> hellos;
  std::vector<ProcessStarted> starts;
  std::vector<ProcessEnded> ends;
  std::vector<std::string> file_replies;
  std::map<std::string, std::string> pages;  // what GET answers
  bool refuses_token = false;

 private:
  template <class T>
  static T take(std::vector<T>& from) {
    T first = from.front();
    from.erase(from.begin());
    return first;
  }

  void answer(net::Exchange& exchange) {
    const auto token = exchange.request().header("Authorization");
    if (refuses_token || token != "Bearer secret") return exchange.send({401, {}, "wrong token"});
    if (exchange.request().path == "/v1/nodes/connect") {
      auto text = [this](std::string message) { receive(message); };
      auto binary = [this](std::string message) {
        file_replies.push_back(std::move(message));
        loop.stop();
      };
      socket = exchange.accept_websocket({text, binary, [](const std::string&) {}});
      return;
    }
    const auto page = pages.find(exchange.request().path);
    if (page == pages.end()) return exchange.send({404, {}, "not here"});
    exchange.send({200, {}, page->second});
  }

  void receive(const std::string& text) {
    auto message = wire::parse_from_agent(text);
    ASSERT_TRUE(message.has_value()) << text;
    if (auto* hello = std::get_if<Hello>(&*message)) hellos.push_back(*hello);
    if (auto* report = std::get_if<Report>(&*message)) {
      starts.insert(starts.end(), report->started.begin(), report->started.end());
      ends.insert(ends.end(), report->ended.begin(), report->ended.end());
      order({});  // a heartbeat back
    }
    loop.stop();
  }

  std::unique_ptr<net::Server> server_;
  std::shared_ptr<net::Loop::Timer> look_again_;
  std::uint64_t number_ = 0;
  unsigned char file_number_ = 0;
};

class TestAgent {  // the real program
 public:
  TestAgent(std::string folder, std::vector<std::string> options)
      : folder_(std::move(folder)), options_(std::move(options)) {
    start();
  }
  ~TestAgent() {
    kill();
    if (FileLock::holder(folder_ + "/agent.lock") != 0) return;  // another agent's keeper
    if (const int keeper = FileLock::holder(folder_ + "/keeper.lock"); keeper > 0) {
      std::string quit;
      keeper::append_frame(quit, keeper::ToKeeper(keeper::QuitRequest{}));
      EXPECT_TRUE(eventually([&] {  // it may not listen yet
        const auto socket = keeper::connect_keeper(folder_);
        return !is_alive(keeper) || (socket && write_all(socket->get(), quit, "keeper"));
      }));
      EXPECT_TRUE(eventually([&] { return !is_alive(keeper); }));
    }
  }
  void start() {
    const std::string tool =
        (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "slipway_node_tool").string();
    std::vector<std::string> words{tool, "node", "run", "--folder", folder_};
    words.insert(words.end(), options_.begin(), options_.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ + ".stderr").c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0644);
    ASSERT_EQ(::posix_spawn(&pid, tool.c_str(), &actions, nullptr, argv.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  int wait() {
    int status = -1;
    if (pid > 0) ::waitpid(pid, &status, 0);
    pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void kill(int signal = SIGKILL) {
    if (pid > 0) ::kill(pid, signal);
    wait();
  }
  std::string error_output() const { return read_file(folder_ + ".stderr").value_or(""); }
  int keeper() const { return FileLock::holder(folder_ + "/keeper.lock"); }
  // It holds its lock until the kernel has taken it apart, a little after its connection was closed.
  bool keeper_ends() const {
    return eventually([&] { return keeper() == 0; });
  }

  pid_t pid = 0;

 private:
  std::string folder_;
  std::vector<std::string> options_;
};

}  // namespace slipway::agent
