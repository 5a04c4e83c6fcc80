#pragma once
// How much of the disk a folder takes, all that lies below it included: counted in bounded steps. Links are
// not followed; a file with several names counts once, a part for each.
#include <dirent.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace slipway {

class FolderSize {
 public:
  // A folder that is not there takes nothing.
  explicit FolderSize(const std::string& folder);
  // Looks at up to `entries_max` entries; true: something is left. What cannot be opened counts as itself
  // only.
  bool count_some(std::size_t entries_max);
  std::uint64_t bytes() const { return bytes_ / 512 * 512; }

 private:
  struct Close {
    void operator()(DIR* folder) const { ::closedir(folder); }
  };
  using Folder = std::unique_ptr<DIR, Close>;
  void enter(int parent, const char* name);
  void leave();

  // The way down from the folder. Of a way that is longer than `open_max` the upper folders are closed, and
  // opened again, at the entry where they were left, when all below was counted.
  struct Level {
    Folder folder;
    long at = 0;  // where it was left
  };
  static constexpr std::size_t open_max = 64;
  std::vector<Level> levels_;
  std::size_t open_from_ = 0;  // levels from here on are open
  std::uint64_t bytes_ = 0;
};

}  // namespace slipway
