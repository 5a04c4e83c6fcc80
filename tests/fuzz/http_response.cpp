// Responses as the command line and agents get them, from whatever answers at the address.
#include "http_message.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 16 * 1024) return 0;  // one byte at a time would take long and find nothing more
  fuzz::Message<false> message;
  fuzz::check_cuts_do_not_matter(message, fuzz::text(data, size));
  return 0;
}
