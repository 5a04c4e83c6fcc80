#pragma once
// Which cores a process or a node is held to, where its share cannot be set in a cgroup.
//
// Each holder gets the cores that the fewest others have, so that two share one only when all are taken. Who
// was granted less than a core is held to none: pinned, it would compete for one core with others that need
// all of it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace slipway {

using CoreList = std::vector<int>;  // numbers of the kernel

// Those this process may use, ascending; empty where they are not known.
CoreList usable_cores();

// In a node's folder: those that the local provisioner chose for it.
inline constexpr std::string_view cores_file = "cores";

// "0,2,3"; what is no number is left out.
std::string format_cores(const CoreList& cores);
CoreList parse_cores(std::string_view text);

class CorePool {
 public:
  // In the order in which free ones are taken.
  explicit CorePool(CoreList cores);

  // For who was granted this much; empty: held to none.
  CoreList take(std::uint32_t millicores);
  void hold(const CoreList& taken);  // likewise, of an earlier process; those that are unknown do not count
  void give_back(const CoreList& taken);

 private:
  struct Core {
    int number;
    std::size_t holders = 0;
    std::size_t first_of = 0;  // holders that begin with it
  };
  Core* find(int number);

  std::vector<Core> cores_;
};

}  // namespace slipway
