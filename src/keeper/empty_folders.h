#pragma once
// Folders of ended attempts in which nothing was written, handed to the next attempts of the same job.
//
// Folders and output files are most of what a short task costs the disk. A folder is handed on by renaming it
// to the path of the next attempt, so that a path never names the files of two attempts, and nothing has to
// be journaled: whoever is killed, at any point, leaves at worst an empty folder where the ended attempt had
// it. What no attempt has taken is removed when the node is idle.
//
// Only within a job: its folder is not deleted while it still starts attempts.
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "keeper/protocol.h"

namespace slipway::keeper {

// The folder of an attempt and what is made in it before its program runs.
struct AttemptFolder {
  std::string path;
  std::vector<std::string> folders;  // names in it
  std::vector<std::string> files;
};

// nullopt where other processes or other nodes may use the folder as well: only an attempt of a single
// process has it for itself.
std::optional<AttemptFolder> own_folder(const ProcessSpec& process);

class EmptyFolders {
 public:
  EmptyFolders();

  // Keeps the folder if it is as it was made. Its attempt has ended with its whole tree.
  void offer(AttemptFolder folder);
  // The path of a folder that has all that `next` needs in it; empty: there is none.
  std::string take(const AttemptFolder& next);

  bool is_empty() const { return kept_.empty(); }
  void remove_some();  // a few at a time, so that nobody waits long for it
  void remove_all();

  static constexpr std::size_t kept_max = 256;  // the oldest are let go of, and stay on the disk

 private:
  bool is_as_made(const AttemptFolder& folder) const;

  unsigned umask_ = 0;
  std::deque<AttemptFolder> kept_;  // the newest last: the file system has it in its caches
};

}  // namespace slipway::keeper
