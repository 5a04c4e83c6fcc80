#pragma once
// Answers the service's reads of files on a node that does not share its storage.
//
// Over the agent's connection, in binary messages. A request is an 8-byte number and JSON:
//   {"op": "read", "folder": "workspaces/…/train.1", "path": "stdout.txt", "offset": 0, "length": 262144,
//    "wait": true}
//   {"op": "list", "folder": "workspaces/…/train.1", "path": "outputs", "after": "", "limit": 1000}
//   {"op": "size", "folder": "workspaces/…/train.1", "path": "stdout.txt"}
// A reply is the same number, a byte that says what follows (0 data, 1 JSON, 2 an error as JSON), and that.
// A read at the end of a file with "wait" is answered when the file grows, or with no data after 10 seconds.
// A list is {"entries": [{"name", "kind": "file|folder|link|other", "size", "modified"}], "next": "…"}, a
// page of base/list_folder.h; a size is {"size"}; an error is {"code", "what"}. Data is at most 256 KiB: the
// service asks again from where it ended.
// The folder, an attempt's, is resolved under the data folder and the path under that folder, links included.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "net/loop.h"
#include "net/tail.h"

namespace slipway::agent {

class FileServer {
 public:
  using Reply = std::function<void(std::string message)>;
  struct Location {
    std::string folder;  // under the data folder
    std::string path;    // under that
  };
  // Replies go to `reply`, those to reads that wait later.
  FileServer(net::Loop& loop, std::string data, Reply reply);

  void handle(std::string_view message);
  void forget_all();  // the connection is gone, and nobody waits for answers

  static constexpr std::size_t length_max = 256 << 10;
  static constexpr std::size_t entries_max = 10'000;
  static constexpr std::size_t waiting_max = 1'024;

 private:
  struct Waiting {
    Location location;  // read anew each time: a file that stayed empty may be another attempt's by then
    std::uint64_t offset = 0;
    std::size_t length = 0;
    std::shared_ptr<net::FileWatcher::Handle> watch;
    std::shared_ptr<net::Loop::Timer> timer;
  };
  void answer(std::uint64_t number, std::string_view request);
  Result<std::string> read(const Location& location, std::uint64_t offset, std::size_t length) const;
  void wait_for_more(std::uint64_t number, const Location& location, std::uint64_t offset,
                     std::size_t length);
  std::shared_ptr<net::FileWatcher::Handle> watch(const Location& location, std::function<void()> changed);
  void look_again(std::uint64_t number, bool is_last);
  void send_data(std::uint64_t number, std::string data);
  void send_error(std::uint64_t number, const Error& error);

  net::Loop& loop_;
  std::string data_;
  Reply reply_;
  net::FileWatcher watcher_;
  std::map<std::uint64_t, Waiting> waiting_;
};

}  // namespace slipway::agent
