// What the service asks an agent about files: a number, then JSON. Whatever is asked, nothing is read that
// lies outside of the folder that is named.
#include <stdlib.h>

#include <string>

#include "agent/file_server.h"
#include "base/file.h"
#include "target.h"

using namespace slipway;

namespace {

std::string make_data() {
  char pattern[] = "/tmp/slipway-fuzz-XXXXXX";
  const std::string data = ::mkdtemp(pattern);
  SLIPWAY_CHECK(make_folders(data + "/jobs/a.1").has_value());
  SLIPWAY_CHECK(write_file(data + "/jobs/a.1/stdout.txt", "of the attempt").has_value());
  SLIPWAY_CHECK(write_file(data + "/outside", "OUTSIDE").has_value());
  return data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string folder = make_data();
  static net::Loop loop;
  std::string reply;
  agent::FileServer server(loop, folder, [&](std::string message) { reply = std::move(message); });
  server.handle(fuzz::text(data, size));
  SLIPWAY_CHECK(reply.find("OUTSIDE") == std::string::npos);
  return 0;
}
