#pragma once
// Who is in a gang: the processes of a task on a number of nodes, by rank. Known nowhere else.
//
// Without roles, ranks are counted over the nodes. With roles, chief and workers come first and then the
// others as written, and each goes to the node that has the least to do so far. What a launcher starts by
// itself (mpirun, torchrun) is not a member: one member a node stands for it, with the capacity of all of
// them.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "domain/job.h"

namespace slipway {

struct Member {
  std::string role;         // "" where the task has none
  std::uint32_t index = 0;  // within the role
  std::uint32_t node = 0;   // its index among the attempt's nodes
  std::uint32_t local = 0;  // among the members of that node
  Resources resources;
  friend bool operator==(const Member&, const Member&) = default;
};

std::vector<Member> gang_of(const TaskSpec& task, std::uint32_t nodes);
inline std::vector<Member> gang_of(const TaskSpec& task) { return gang_of(task, task.nodes); }

// Whether its processes have names even while it is the only one: others may come.
bool is_named(const TaskSpec& task, std::size_t members);
// worker-1, launcher, or plainly 3 for rank 3 where there are no roles.
std::string member_name(const Member& member, std::uint32_t rank);

// One node's part, such that every node can hold any node's part.
Resources need_per_node(const TaskSpec& task, std::uint32_t nodes);

// Whether one process a node starts the others there: mpirun's daemons, torchrun.
bool has_launcher(const TaskSpec& task);
// Whether that one is on the first node, for all of them: it is the launcher, the others serve it.
bool has_one_launcher(Toolkit toolkit);
// Whether the task may name roles at all.
bool takes_roles(Toolkit toolkit);
// Whether the end of this member decides how the attempt ended: when all that decide have ended well, it has.
bool decides(const TaskSpec& task, const Member& member);
// Whether it is left to end by itself for a while once the others decided; else it is stopped at once.
bool is_waited_for(const TaskSpec& task, const Member& member);
// Whether its failure is the attempt's. An evaluator only looks on.
bool matters(const TaskSpec& task, const Member& member);

}  // namespace slipway
