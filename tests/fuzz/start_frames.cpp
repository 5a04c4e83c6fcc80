// The stream between the nodes of an attempt, the request in it, and the list of its nodes.
#include "gang_exec/frames.h"
#include "gang_exec/gang.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text(data, size);
  fuzz::check_explained(gang_exec::parse_start_hosts(bytes));
  gang_exec::FrameReader reader(gang_exec::data_max);
  reader.add(bytes);
  for (;;) {
    const std::size_t before = reader.buffered();
    const auto frame = reader.next();
    fuzz::check_explained(frame);
    if (!frame || !*frame) return 0;
    SLIPWAY_CHECK(reader.buffered() < before);
    fuzz::check_explained(gang_exec::parse_end((*frame)->payload));
    const auto request = gang_exec::parse_request((*frame)->payload);
    fuzz::check_explained(request);
    if (!request) continue;
    const auto again = gang_exec::parse_request(gang_exec::format_request(*request));
    SLIPWAY_CHECK(again && again->argv == request->argv && again->variables == request->variables);
  }
}
