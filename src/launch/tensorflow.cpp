// TensorFlow: TF_CONFIG for strategies, host lists for between-graph scripts.
#include <fmt/format.h>

#include "launch/toolkits.h"

namespace slipway::launch {
namespace {

// An evaluator looks on from outside.
bool is_in_cluster(const Member& member) { return member.role != "evaluator"; }

// The ports of a node go to its members in order; evaluators, who need none, are the last.
std::string endpoint_of(const Gang& gang, std::uint32_t rank) {
  return gang.endpoint(gang.members[rank].node, gang.members[rank].local);
}

std::vector<std::uint16_t> listens(const Gang& gang, std::uint32_t rank) {
  if (!is_in_cluster(gang.members[rank])) return {};
  return {gang.port(gang.members[rank].node, gang.members[rank].local)};
}

std::string hosts_of(const Gang& gang, std::string_view role, std::string_view quote = "") {
  std::string list;
  for (std::uint32_t rank = 0; rank < gang.members.size(); ++rank)
    if (gang.members[rank].role == role)
      list += fmt::format("{}{}{}{}", list.empty() ? "" : ",", quote, endpoint_of(gang, rank), quote);
  return list;
}

// A cluster of one is a chief alone: TensorFlow then works as if there were no cluster. Where roles are
// placed as written, scripts count on their names as well.
bool is_alone(const Gang& gang) { return gang.members.size() == 1 && !gang.task.in_blocks; }

std::string tf_config(const Gang& gang, std::uint32_t rank) {
  const Member& self = gang.members[rank];
  std::string cluster;
  for (const std::string_view role : {"chief", "master", "ps", "worker"})
    if (const std::string hosts = hosts_of(gang, role, "\""); !hosts.empty())
      cluster +=
          fmt::format("{}\"{}\":[{}]", cluster.empty() ? "" : ",", is_alone(gang) ? "chief" : role, hosts);
  return fmt::format(R"({{"cluster":{{{}}},"task":{{"type":"{}","index":{}}},"environment":"cloud"}})",
                     cluster, is_alone(gang) ? "chief" : self.role, self.index);
}

std::uint32_t ports(const Gang& gang, std::uint32_t node) {
  std::uint32_t count = 0;
  for (const Member& member : gang.members) count += member.node == node && is_in_cluster(member);
  return count;
}

void add_tensorflow_environment(const Gang& gang, std::uint32_t rank, Environment& environment,
                                Words& words) {
  environment["TF_CONFIG"] = tf_config(gang, rank);
  // On one visible core TensorFlow makes one thread for operations, and a parameter server strategy waits for
  // itself in it.
  if (gang.members[rank].resources.cores < 2000) environment.emplace("TF_NUM_INTEROP_THREADS", "2");
  words.emplace_back("ps_hosts", hosts_of(gang, "ps"));
  words.emplace_back("worker_hosts", hosts_of(gang, "worker"));
  words.emplace_back("chief_hosts", hosts_of(gang, "chief"));
}

}  // namespace

const Row tensorflow{ports, listens, add_tensorflow_environment, as_it_is, no_files};

}  // namespace slipway::launch
