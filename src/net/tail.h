#pragma once
// Reports when a file grows, by inotify: several followers of one file share one watch, and nothing is
// polled.
#include <functional>
#include <memory>
#include <string>

#include "net/loop.h"

namespace slipway::net {

class FileWatcher {
 public:
  explicit FileWatcher(Loop& loop);
  ~FileWatcher();

  // Calls `changed` on the loop's thread after the file was written to, moved or deleted, at least once after
  // each change, until the handle is destroyed. The file must exist. nullptr when the machine has no watches
  // left: then ask again later.
  class Handle;
  std::shared_ptr<Handle> watch(const std::string& path, std::function<void()> changed);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slipway::net
