#pragma once
// An agent's connection to its keeper, which it starts when there is none.
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "keeper/protocol.h"
#include "net/loop.h"

namespace slipway::agent {

class KeeperLink {
 public:
  struct Options {
    std::string folder;                // of the node
    std::vector<std::string> command;  // starts a keeper
  };
  struct Callbacks {
    std::function<void(keeper::FromKeeper)> message;
    std::function<void()> caught_up;  // after the messages of one read
    std::function<void()> lost;       // the keeper is gone; the link has begun to bring up a new one
  };
  KeeperLink(net::Loop& loop, Options options, Callbacks callbacks);

  // Connects, or starts a keeper and connects when it is ready; tries again, more and more slowly, until it
  // works. The list is asked for first.
  void open();
  // In order, with the next flush(). What is sent while there is no keeper is dropped: its list will show it.
  void send(const keeper::ToKeeper& message);
  void flush();
  bool is_open() const { return static_cast<bool>(socket_); }
  // From now on a keeper that goes is not replaced. (One that is just starting ends when it finds that nobody
  // reads its "ready".)
  void let_go();

 private:
  void start_keeper();
  void read_startup();
  void retry(const std::string& why);
  void use(Fd socket);
  void on_ready();
  bool read_all();
  void kill_stuck();
  void lose();

  net::Loop& loop_;
  Options options_;
  Callbacks callbacks_;
  bool letting_go_ = false;

  pid_t keeper_ = 0;  // when we started it
  Fd starting_;       // its standard output, until it is ready
  std::shared_ptr<net::Loop::Watch> starting_watch_;
  std::string startup_output_;
  Duration wait_{0};
  std::shared_ptr<net::Loop::Timer> retry_timer_;
  std::shared_ptr<net::Loop::Timer> list_timer_;  // until the list has come

  // The loop reports when something can be read; an epoll of our own, itself readable when the socket has
  // work for us, reports writing too.
  Fd socket_;
  Fd epoll_;
  std::shared_ptr<net::Loop::Watch> watch_;
  std::string in_;
  std::string out_;
  bool is_writing_ = false;  // the socket is watched for writing
};

}  // namespace slipway::agent
