#pragma once
// Deletes folders of jobs that the service deleted, on a node with storage of its own. On a thread of its
// own, in bounded steps: one that ends meanwhile loses a step, and the service asks again.
#include <functional>
#include <string>

#include "agent/worker.h"
#include "net/loop.h"

namespace slipway::agent {

class FolderRemover {
 public:
  // `removed` is called on the loop's thread once nothing is left of a folder.
  FolderRemover(net::Loop& loop, std::function<void(const std::string& folder)> removed)
      : loop_(loop), removed_(std::move(removed)), worker_(waiting_max) {}

  // `folder` is that of a job, under the folder `data`. What cannot be deleted is logged, and asked for again
  // in the next session.
  void remove(const std::string& data, const std::string& folder);

  static constexpr std::size_t waiting_max = 10'000;

 private:
  net::Loop& loop_;
  std::function<void(const std::string&)> removed_;
  Worker worker_;
};

}  // namespace slipway::agent
