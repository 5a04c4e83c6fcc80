#pragma once
// Folders of this machine that datastores may be over: those beneath the roots that the service was started
// with (--datastore-root), and never the service's own data folder, which holds its tokens and keys.
#include <string>
#include <vector>

#include "base/result.h"

namespace slipway::api {

class ExposedFolders {
 public:
  ExposedFolders(std::vector<std::string> roots, std::string data)
      : roots_(std::move(roots)), data_(std::move(data)) {}

  // All links are followed first. May wait for the disk.
  Result<void> check(const std::string& folder) const;

 private:
  std::vector<std::string> roots_;
  std::string data_;
};

}  // namespace slipway::api
