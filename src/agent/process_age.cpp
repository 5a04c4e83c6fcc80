#include "agent/process_age.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/file.h"

namespace slipway::agent {

std::optional<Duration> process_age(std::int64_t pid) {
  const Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  unsigned long long start = 0;  // the 22nd field, in ticks since the machine started
  if (name_end == std::string::npos ||
      std::sscanf(stat->c_str() + name_end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &start) != 1)
    return std::nullopt;
  const auto ticks = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  const Duration started(static_cast<Duration::rep>(start * 1'000'000 / ticks));
  return std::max(Duration(0), boot_time() - started);
}

}  // namespace slipway::agent
