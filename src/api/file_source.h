#pragma once
// The files of an attempt wherever they lie: in the service's own data folder, or on a node that is asked for
// them. All paths are resolved under the attempt's folder; nothing leads out of it.
//
// What an attempt did not write to is not on the disk when it has ended (keeper/empty_folders.h): its folders
// list as empty, its streams have the size 0, and all of them are listed as if they were there.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/node_sessions.h"
#include "api/worker.h"
#include "base/file.h"
#include "net/tail.h"

namespace slipway::api {

struct FileItem {
  std::string path;
  std::string kind;  // file, folder, link, other
  std::uint64_t size = 0;
  TimePoint modified_at{};
};

// What was made for the processes of an attempt before they ran.
struct OwnFiles {
  std::vector<std::string> folders;
  std::vector<std::string> streams;
  std::optional<TimePoint>
      made_at;  // listed with this time where they are not on the disk; nullopt: not listed
};

OwnFiles files_of_one_process();  // not listed

struct FilePage {
  std::vector<FileItem> items;
  std::optional<std::string> next;  // what follows is asked for with it; nothing: that was all
};

class FileSource {
 public:
  virtual ~FileSource() = default;
  using Bytes = std::function<void(Result<std::string>)>;
  // Up to `length` bytes from `offset`; fewer, or none, at the end.
  virtual void read(const std::string& path, std::uint64_t offset, std::size_t length, Bytes done) = 0;
  virtual void size(const std::string& path, std::function<void(Result<std::uint64_t>)> done) = 0;
  // A page of a folder (base/list_folder.h), read beside the network's thread.
  using Page = std::function<void(Result<FilePage>)>;
  virtual void list(const std::string& path, const std::string& after, std::size_t limit, Page done) = 0;
  // Calls `changed` each time the file may have grown past what was read, until the handle is dropped.
  // nullptr when it does not exist yet.
  virtual std::shared_ptr<void> watch(const std::string& path, std::uint64_t offset,
                                      std::function<void()> changed) = 0;
  // The file itself, where it lies here; an empty Fd elsewhere.
  virtual Result<Fd> open_here(const std::string& path) = 0;
};

std::shared_ptr<FileSource> files_here(const std::string& folder, OwnFiles own, net::Loop& loop,
                                       net::FileWatcher& watcher, Worker& worker);
std::shared_ptr<FileSource> files_on_node(NodeSessions& sessions, std::string workspace, std::string node,
                                          std::string folder, OwnFiles own);

}  // namespace slipway::api
