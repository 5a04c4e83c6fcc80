// .slipwayignore: the first line is a path, the rest the patterns it is held against.
#include "cli/client/ignore.h"

#include <optional>

#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;  // time grows with the product of path and patterns, as promised
  const std::string_view bytes = fuzz::text(data, size);
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string_view path = bytes.substr(0, end);
  const std::string patterns(bytes.substr(std::min(end + 1, bytes.size())));
  using Kind = cli::IgnoreFile::Kind;
  const cli::IgnoreFile file(patterns);
  const std::optional<bool> of_file = file.ignores(path, Kind::file);
  (void)file.ignores(path, Kind::folder);
  // A later pattern wins: one that matches everything, put last, decides. Only after a whole line, since what
  // is added would otherwise end the last one (and take a '\r' off it).
  if (!patterns.empty() && patterns.back() != '\n') return 0;
  SLIPWAY_CHECK(cli::IgnoreFile(patterns + "*\n").ignores(path, Kind::file) == true);
  SLIPWAY_CHECK(cli::IgnoreFile(patterns + "# a comment\n").ignores(path, Kind::file) == of_file);
  return 0;
}
