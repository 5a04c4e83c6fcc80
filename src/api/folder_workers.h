#pragma once
// A thread for each datastore whose files are asked for: a mount that hangs holds up nobody else.
//
// What takes longer than `patience` is answered without waiting for it, and until it comes back the datastore
// is refused at once. A thread that has nothing to do ends after a minute.
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "net/loop.h"

namespace slipway::api {

class FolderWorkers {
 public:
  FolderWorkers(net::Loop& loop, Duration patience = 30s);
  ~FolderWorkers();  // threads that hang are left behind

  // Both on the loop's thread, and one of them exactly once: `done` is what `work` gave, which runs on the
  // datastore's thread; or `refused` says why it was not waited for. False: too much waits for it already.
  using Done = std::function<void()>;
  bool post(const std::string& datastore, std::function<Done()> work,
            std::function<void(std::string why)> refused);

 private:
  struct Job;
  struct Folder;
  static void run(const std::shared_ptr<Folder>& folder);
  net::Loop& loop_;
  const Duration patience_;
  std::map<std::string, std::shared_ptr<Folder>> folders_;  // by datastore; those that ended are replaced
};

}  // namespace slipway::api
