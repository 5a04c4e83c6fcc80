// What `slipway events --export` wrote, as `slipway sim replay` reads it.
#include "wire/recording.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto recording = wire::parse_recording(fuzz::text(data, size), "events.jsonl");
  fuzz::check_explained(recording);
  if (!recording) return 0;
  for (const RecordedJob& job : recording->jobs)
    for (const RecordedAttempt& attempt : job.attempts)
      SLIPWAY_CHECK(attempt.group < job.spec.tasks.size() &&
                    attempt.index < job.spec.tasks[attempt.group].tasks());
  return 0;
}
