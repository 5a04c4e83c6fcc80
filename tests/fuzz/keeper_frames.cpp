// The stream between an agent and its keeper, both directions over the same bytes.
#include "keeper/protocol.h"

#include "target.h"

using namespace slipway;

namespace {

template <class Message, class Parse>
void check_frame(std::string_view frame, const Parse& parse) {
  const Result<Message> message = parse(frame);
  fuzz::check_explained(message);
  if (!message) return;
  std::string written;
  keeper::append_frame(written, *message);
  std::string_view rest = written;
  const auto taken = keeper::take_frame(rest);
  SLIPWAY_CHECK(taken && *taken && rest.empty());
  const Result<Message> again = parse(**taken);
  SLIPWAY_CHECK(again && *again == *message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes = fuzz::text(data, size);
  for (;;) {
    const std::size_t before = bytes.size();
    const auto frame = keeper::take_frame(bytes);
    fuzz::check_explained(frame);
    if (!frame || !*frame) return 0;
    SLIPWAY_CHECK(bytes.size() < before);
    check_frame<keeper::ToKeeper>(**frame, keeper::parse_to_keeper);
    check_frame<keeper::FromKeeper>(**frame, keeper::parse_from_keeper);
  }
}
