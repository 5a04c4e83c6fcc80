#pragma once
// Folders of ended attempts in which nothing was written, handed to the next attempts of any job: the whole
// folder of an attempt of one process; of a gang's process its working folder and its output files.
//
// Folders and output files are most of what a short task costs the disk. A folder is handed on by renaming it
// to the path of the next attempt, so that a path never names the files of two attempts. One that no attempt
// takes in the turn in which it was offered is moved to a folder of the keeper's own, before anybody learns
// of the end: its job may be deleted from then on.
//
// Nothing is journaled: whoever is killed, at any point, leaves at worst an empty one at the path of an
// attempt that has ended, or one in the keeper's folder, which the next keeper empties.
#include <sys/types.h>

#include <cstddef>
#include <ctime>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "keeper/protocol.h"

namespace slipway::keeper {

// Of a folder or file below an attempt's folder, when nothing had been done to it.
struct ChangeStamp {
  ino_t inode = 0;
  timespec changed{};
};

// A folder and what is made in it before the program of an attempt runs, or one of its files.
struct AttemptFolder {
  std::string path;
  bool is_file = false;
  std::vector<std::string> folders{};  // names in it
  std::vector<std::string> files{};
  // Of `folders` and `files`. Empty: not known, or too young for a change to show in its time.
  std::vector<ChangeStamp> stamps{};
};

// nullopt where other processes or other nodes may use the folder as well: only an attempt of a single
// process has it for itself.
std::optional<AttemptFolder> own_folder(const ProcessSpec& process);
// Of a process of a gang: its working folder and its output files. Others may look into them until the
// attempt has ended on this node.
std::vector<AttemptFolder> own_pieces(const ProcessSpec& process);

class EmptyFolders {
 public:
  // `keep_in`: on the file system of the attempts, and nobody else's. What is in it is removed.
  explicit EmptyFolders(std::string keep_in);

  // Keeps the folder if it is as it was made. Its attempt has ended with its whole tree.
  void offer(AttemptFolder folder);
  // Moves a folder that has all of `next` in it to the path of `next`. False: there is none, or something is
  // at that path.
  bool take(AttemptFolder& next);
  // No folder stays at the path of an attempt that has ended. Call it before the end is reported.
  void put_away();

  bool has_surplus() const { return kept_.size() > kept_idle; }
  void remove_some();  // of the surplus, a few at a time, so that nobody waits long for it
  void remove_all();

  static constexpr std::size_t kept_max = 256;
  static constexpr std::size_t kept_idle = 64;  // for a node's next tasks, however long that takes

 private:
  struct Kept {
    AttemptFolder folder;
    std::string attempt;  // its path when it was offered
  };
  bool is_as_made(AttemptFolder& folder) const;
  bool move_to(Kept& kept, AttemptFolder& next);
  void drop_oldest();

  std::string keep_in_;
  unsigned umask_ = 0;
  uid_t user_ = 0;
  std::uint64_t last_number_ = 0;
  std::deque<Kept> kept_;     // the newest last: the file system has it in its caches
  std::size_t in_place_ = 0;  // how many of the last ones are still at the path of their attempt
};

}  // namespace slipway::keeper
