#pragma once
// Files reached with the rights of a user by a process that has more.
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace slipway::container {

// While it lives, this thread opens and makes files as the user would. Only root can; others stay who they
// are.
class UserAccess {
 public:
  UserAccess(uid_t uid, gid_t gid);
  ~UserAccess();
  UserAccess(UserAccess&& other) noexcept
      : groups_(std::move(other.groups_)), is_changed_(std::exchange(other.is_changed_, false)) {}
  UserAccess& operator=(UserAccess&&) = delete;

 private:
  std::vector<gid_t> groups_;
  bool is_changed_ = false;
};

// The groups that processes of this user have.
std::vector<gid_t> groups_of(uid_t uid, gid_t gid);

// For whom something is mounted, and the data folder of the node.
struct MountAccess {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string data;
};
// A folder to mount, opened (O_PATH) so that the user gets nothing by the mount that they could not reach
// themselves. A relative source is one that the service chose, below the data folder: no link on the way is
// followed. Any other is refused where it is a part of the data folder, or holds it.
Result<Fd> open_source(const std::string& source, const MountAccess& access);

// Lets the user through this folder, and nobody who was not let through before: an entry in its access
// control list.
Result<void> let_through(const std::string& folder, uid_t uid);
// Closes it to all but its owner and those who were let through.
Result<void> close_folder(const std::string& folder);

}  // namespace slipway::container
