#pragma once
// Which processes belong to a tree, found without cgroups.
//
// Every process of a keeper carries two marks that its descendants inherit: the environment variable
// SLIPWAY_KEEPER, and a tag in the limit RLIMIT_RTTIME. The tag survives what daemons do (double fork, a
// session of their own, an emptied environment, another user) and cannot be raised by an ordinary process;
// its value is so large (over 140,000 years of real-time scheduling) that the limit itself never bites. What
// carries neither mark is found by descent from something that does.
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/work_key.h"

namespace slipway::keeper {

// One instance of a keeper. The first half of its id is that of the node's folder, which all keepers of the
// folder have in turn: so what one of them left is found whatever became of the files it wrote.
struct KeeperIdentity {
  std::string id;  // 16 hexadecimal digits
  std::string_view folder_id() const { return std::string_view(id).substr(0, 8); }
  // The tag of the `serial`th process it starts.
  std::uint64_t tag(std::uint32_t serial) const;
  bool owns(std::uint64_t tag) const;
  std::string marker(const WorkKey& key, std::uint32_t rank) const;  // SLIPWAY_KEEPER=<id>.<key>.<rank>
};

struct FoundProcess {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // with the pid, names a process for good
};

// A tree whose first process is `root`. Zombies do not count.
struct TreeQuery {
  pid_t root = 0;  // 0 once it was reaped: its number may name another process by now
  std::uint64_t tag = 0;
  std::string marker;
};
std::vector<FoundProcess> find_tree(const KeeperIdentity& keeper, const TreeQuery& query);

// A new identity for a keeper of this folder.
Result<KeeperIdentity> identify(const std::string& folder);

// Everything that the keepers of its folder left; they are dead.
std::vector<FoundProcess> find_all(const KeeperIdentity& keeper);

// Sends the signal unless the process is gone; never to another one that got its pid.
void send_signal(const FoundProcess& process, int signal);

// The caller's children, from one small file; nullopt where the kernel does not have it.
std::optional<std::vector<pid_t>> own_children();

}  // namespace slipway::keeper
