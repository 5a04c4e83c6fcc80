// A line of an audit log, and what is kept of a value in one.
#include "target.h"
#include "wire/audit.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text(data, size);
  wire::AuditChain chain;
  fuzz::check_explained(chain.follow(text));
  fuzz::check_explained(chain.resume(text));
  // Whatever a request holds, the line that is written about it follows the one before, and is one line.
  wire::AuditEntry entry;
  entry.user = entry.path = std::string(text);
  entry.after = wire::audited(text);
  wire::AuditChain writer, reader;
  for (int i = 0; i < 2; ++i) {
    const std::string line = writer.append(entry);
    SLIPWAY_CHECK(line.find('\n') == line.size() - 1);
    SLIPWAY_CHECK(reader.follow(std::string_view(line).substr(0, line.size() - 1)).has_value());
  }
  return 0;
}
