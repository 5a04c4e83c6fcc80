// A task as the store keeps it: read again at every placement, perhaps from a damaged database.
#include "target.h"
#include "wire/job_file.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto task = wire::parse_task_spec(fuzz::text(data, size));
  fuzz::check_explained(task);
  if (task) fuzz::check_round_trip(*task, wire::format_task_spec, wire::parse_task_spec);
  return 0;
}
