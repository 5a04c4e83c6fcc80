// JAX: where the coordinator listens, and who is who.
#include "launch/toolkits.h"

namespace slipway::launch {
namespace {

void add_jax_environment(const Gang& gang, std::uint32_t rank, Environment& environment, Words& words) {
  const std::string coordinator = gang.endpoint(0, 0);
  words.emplace_back("coordinator", coordinator);
  environment["JAX_COORDINATOR_ADDRESS"] = coordinator;
  environment["JAX_COORDINATOR_BIND_ADDRESS"] = coordinator;
  environment["JAX_NUM_PROCESSES"] = std::to_string(gang.members.size());
  environment["JAX_PROCESS_ID"] = std::to_string(rank);
}

}  // namespace

const Row jax{one_port_on_the_first, the_first_listens, add_jax_environment, as_it_is, no_files};

}  // namespace slipway::launch
