#pragma once
// Ranks and slots of a Horovod job, and its rendezvous. Pure, but for launch_elastic_horovod().
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gang_exec/environment.h"
#include "gang_exec/gang.h"

namespace slipway::gang_exec {

struct HorovodSlot {
  std::size_t node = 0;
  std::uint32_t rank = 0, size = 0;
  std::uint32_t local_rank = 0, local_size = 0;  // on its node
  std::uint32_t cross_rank = 0, cross_size = 0;  // among the nodes that have its local rank
  friend bool operator==(const HorovodSlot&, const HorovodSlot&) = default;
};
// Ranks fill each node before the next.
std::vector<HorovodSlot> horovod_slots(const std::vector<std::uint32_t>& processes_of_node);

// The variables of one rank; the store answers at the first node's entry. Interfaces that the user chose
// stay; those of another node are left to its start server, which knows them.
Environment gloo_variables(const Gang& gang, const HorovodSlot& slot, const Environment& own);
// The line that runs a command on another node, for its shell.
std::string gloo_line(const std::vector<std::string>& command, const Environment& own);

// The arguments of horovodrun for an elastic gang; `discover` prints a line `host:slots` for each.
std::vector<std::string> elastic_arguments(const Gang& gang, const ElasticNodes& nodes,
                                           const std::string& discover, const std::string& interface);
// Becomes horovodrun; returns only when it failed, after printing the reason.
int launch_elastic_horovod(const Gang& gang, const ElasticNodes& nodes,
                           const std::vector<std::string>& command, const Environment& variables);

// Horovod's rendezvous: values under /scope/key, absent until they are set. A rank that is done with a scope
// deletes its own number there; when all have, the scope is emptied, so that it can be used again.
class KeyValueStore {
 public:
  static constexpr std::size_t key_max = 1024;
  static constexpr std::size_t value_max = 1u << 20;
  static constexpr std::size_t total_max = 256u << 20;

  KeyValueStore(const Gang& gang, const std::vector<HorovodSlot>& slots);

  struct Answer {
    int status = 200;
    std::string body{};
  };
  Answer answer(std::string_view method, std::string_view path, std::string_view body);

 private:
  struct Scope {
    std::map<std::string, std::string, std::less<>> values;
    std::set<std::string, std::less<>> done;  // ranks
  };
  int put(std::string_view scope, std::string_view key, std::string_view value);
  void remove(std::string_view scope, std::string_view key);
  void forget(Scope& scope);

  std::map<std::string, std::size_t, std::less<>> ranks_of_;  // scope → number of ranks
  std::map<std::string, Scope, std::less<>> scopes_;
  std::size_t total_ = 0;  // bytes of keys and values
};

}  // namespace slipway::gang_exec
