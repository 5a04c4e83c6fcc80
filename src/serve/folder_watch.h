#pragma once
// Waits for changes in folders, for a wake-up from another thread, or for a time.
#include <string>

#include "base/clock.h"
#include "base/file.h"

namespace slipway::serve {

class FolderWatch {
 public:
  FolderWatch();
  // Watching what is watched already changes nothing. A folder that cannot be watched is left to polling.
  void add(const std::string& folder) const;
  void wake() const;  // thread-safe; not lost when nobody waits yet
  // True when woken or a folder changed, false after `timeout` (negative: never).
  bool wait(Duration timeout) const;

 private:
  Fd changes_, wakes_;
};

}  // namespace slipway::serve
