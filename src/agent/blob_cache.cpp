#include "agent/blob_cache.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "base/sha256.h"

namespace slipway::agent {
namespace {

namespace fs = std::filesystem;

constexpr Bytes size_usual = 10ull << 30;

struct Content {
  std::string path;
  std::string hash;  // empty: the remains of a fetch
  Bytes size = 0;
  TimePoint used_at{};
};

std::vector<Content> contents_of(const std::string& folder) {
  std::vector<Content> contents;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool is_content = is_sha256_hex(name);
    struct stat status {};
    if ((!is_content && !name.ends_with(".new")) || ::lstat(at->path().c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    contents.push_back({at->path().string(), is_content ? name : "", static_cast<Bytes>(status.st_size),
                        TimePoint(Duration(std::int64_t{status.st_mtim.tv_sec} * 1'000'000 +
                                           status.st_mtim.tv_nsec / 1'000))});
  }
  if (error && error != std::errc::no_such_file_or_directory)
    log::error("cache.walk", {{"folder", folder}, {"why", error.message()}});
  return contents;
}

}  // namespace

CacheLimits default_cache_limits(const std::string& folder) {
  CacheLimits limits{size_usual, 1h};
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) == 0)
    limits.size_max = std::min<Bytes>(limits.size_max, Bytes{disk.f_blocks} * disk.f_frsize / 10);
  return limits;
}

void mark_used(int file) { ::futimens(file, nullptr); }

Trimmed trim_cache(const std::string& folder, const std::set<std::string>& in_use, const CacheLimits& limits,
                   TimePoint now) {
  std::vector<Content> contents = contents_of(folder);
  std::sort(contents.begin(), contents.end(),
            [](const Content& a, const Content& b) { return a.used_at < b.used_at; });
  Trimmed trimmed;
  for (const Content& content : contents) trimmed.left += content.size;
  for (const Content& content : contents) {
    if (content.used_at + limits.spare_for > now) break;  // those after it were used later
    const bool may_go =
        content.hash.empty() || (trimmed.left > limits.size_max && !in_use.contains(content.hash));
    if (!may_go || ::unlink(content.path.c_str()) != 0) continue;
    ++trimmed.removed;
    trimmed.freed += content.size;
    trimmed.left -= content.size;
  }
  return trimmed;
}

}  // namespace slipway::agent
