#include "domain/gang.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

RoleSpec role(std::string name, std::uint32_t count, Millicores cores = 1000) {
  return {std::move(name), count, std::string("true"), {.cores = cores}};
}

TaskSpec tensorflow(std::vector<RoleSpec> roles, std::string ends_with = {}) {
  TaskSpec task;
  task.toolkit = Toolkit::tensorflow;
  task.roles = std::move(roles);
  task.ends_with = std::move(ends_with);
  return task;
}

std::string names(const TaskSpec& task, bool (*which)(const TaskSpec&, const Member&)) {
  std::string list;
  const auto members = gang_of(task, 2);
  for (std::uint32_t rank = 0; rank < members.size(); ++rank)
    if (which(task, members[rank])) list += (list.empty() ? "" : " ") + member_name(members[rank], rank);
  return list;
}

TEST(Gang, WhoseEndDecides) {
  const std::vector<RoleSpec> all{role("ps", 1), role("worker", 2), role("chief", 1), role("evaluator", 1)};
  EXPECT_EQ(names(tensorflow(all), decides), "chief-0");
  EXPECT_EQ(names(tensorflow({role("ps", 1), role("worker", 2)}), decides), "worker-0");
  EXPECT_EQ(names(tensorflow(all, "worker"), decides), "worker-0 worker-1");
  EXPECT_EQ(names(tensorflow(all, "all"), decides), "chief-0 worker-0 worker-1");
  EXPECT_EQ(names(tensorflow(all), is_waited_for), "chief-0 worker-0 worker-1 evaluator-0");
  EXPECT_EQ(names(tensorflow(all), matters), "chief-0 worker-0 worker-1 ps-0");
  EXPECT_EQ(names(tensorflow(all, "evaluator"), matters), "chief-0 worker-0 worker-1 ps-0 evaluator-0");

  TaskSpec alike;
  alike.processes_per_node = 2;
  EXPECT_EQ(names(alike, decides), "0 1 2 3");
  alike.toolkit = Toolkit::mpi;
  EXPECT_EQ(names(alike, decides), "launcher");
}

TEST(Gang, EachGoesWhereLeastIsAskedFor) {
  const TaskSpec task = tensorflow({role("ps", 2, 500), role("worker", 3, 2000)});
  std::vector<std::uint32_t> nodes;
  for (const Member& member : gang_of(task, 2)) nodes.push_back(member.node);
  EXPECT_EQ(nodes, (std::vector<std::uint32_t>{0, 1, 0, 1, 1}));
  EXPECT_EQ(need_per_node(task, 2), (Resources{.cores = 4000}));
  EXPECT_EQ(need_per_node(task, 1), (Resources{.cores = 7000}));
}

TEST(Gang, ALargeOneIsDealtOutAtOnce) {
  const TaskSpec task = tensorflow({role("worker", 100'000, 1)});
  EXPECT_EQ(gang_of(task, 50'000).back().node, 49'999u);
}

TEST(Gang, ALauncherHasRoomForAllItStarts) {
  TaskSpec task;
  task.toolkit = Toolkit::mpi;
  task.processes_per_node = 4;
  const auto members = gang_of(task, 3);
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(members[2].resources.cores, 4000u);
  EXPECT_EQ(member_name(members[2], 2), "node-2");
}

}  // namespace
}  // namespace slipway
