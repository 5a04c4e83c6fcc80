#pragma once
// The files of an attempt wherever they lie: in the service's own data folder, or on a node that is asked for
// them. All paths are resolved under the attempt's folder; nothing leads out of it.
//
// An attempt that wrote nothing has no folder on the disk: its own folders list as empty, its streams have
// the size 0.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/node_sessions.h"
#include "base/file.h"
#include "net/tail.h"

namespace slipway::api {

struct FileItem {
  std::string path;
  std::string kind;  // file, folder, link, other
  std::uint64_t size = 0;
  TimePoint modified_at{};
};

class FileSource {
 public:
  virtual ~FileSource() = default;
  using Bytes = std::function<void(Result<std::string>)>;
  // Up to `length` bytes from `offset`; fewer, or none, at the end.
  virtual void read(const std::string& path, std::uint64_t offset, std::size_t length, Bytes done) = 0;
  virtual void size(const std::string& path, std::function<void(Result<std::uint64_t>)> done) = 0;
  virtual void list(const std::string& path, std::function<void(Result<std::vector<FileItem>>)> done) = 0;
  // Calls `changed` each time the file may have grown past what was read, until the handle is dropped.
  // nullptr when it does not exist yet.
  virtual std::shared_ptr<void> watch(const std::string& path, std::uint64_t offset,
                                      std::function<void()> changed) = 0;
  // The file itself, where it lies here; an empty Fd elsewhere.
  virtual Result<Fd> open_here(const std::string& path) = 0;
};

std::shared_ptr<FileSource> files_here(const std::string& folder, net::FileWatcher& watcher);
std::shared_ptr<FileSource> files_on_node(NodeSessions& sessions, std::string workspace, std::string node,
                                          std::string folder);

}  // namespace slipway::api
