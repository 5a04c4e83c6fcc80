// The keeper's journal after a crash. Each input is read as it is and once more with its checksums made
// right: guessing them would stop all mutation at the first record.
#include "keeper/journal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "target.h"

using namespace slipway;

namespace {

std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t hash = 2166136261u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::string with_right_checksums(std::string bytes) {
  for (std::size_t at = 0; at + 8 <= bytes.size();) {
    std::uint32_t size = 0;
    std::memcpy(&size, bytes.data() + at, sizeof size);
    if (size > bytes.size() - at - 8) break;
    const std::uint32_t sum = checksum(std::string_view(bytes).substr(at + 8, size));
    std::memcpy(bytes.data() + at + 4, &sum, sizeof sum);
    at += 8 + size;
  }
  return bytes;
}

class Folder {  // in memory where there is such a file system: thousands of files are written
 public:
  Folder() {
    const bool in_memory = std::filesystem::is_directory("/dev/shm");
    path_ = (in_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/fuzz_XXXXXX";
    SLIPWAY_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<std::optional<keeper::JournalContent>> read(std::string_view bytes) {
  static const int file = ::memfd_create("journal", MFD_CLOEXEC);
  SLIPWAY_CHECK(::ftruncate(file, 0) == 0);
  SLIPWAY_CHECK(::pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return keeper::read_journal("/proc/self/fd/" + std::to_string(file));
}

void check(std::string_view bytes) {
  auto content = read(bytes);
  SLIPWAY_CHECK(content.has_value());  // whatever is in it: a damaged journal is a short one
  if (!*content) return;
  static const Folder folder;
  const std::string path = folder.path() + "/journal";
  SLIPWAY_CHECK(keeper::Journal::create(path, **content).has_value());
  const auto again = keeper::read_journal(path);
  SLIPWAY_CHECK(again && *again);
  SLIPWAY_CHECK((*again)->header == (*content)->header);
  // A keeper never starts the same process twice, so one that is open has not ended; records that say
  // otherwise are settled by the second reading.
  std::erase_if((*content)->open, [&](const keeper::Intent& intent) {
    return std::any_of((*content)->ended.begin(), (*content)->ended.end(), [&](const ProcessEnded& end) {
      return end.key == intent.key && end.rank == intent.rank;
    });
  });
  SLIPWAY_CHECK((*again)->open == (*content)->open);
  SLIPWAY_CHECK((*again)->ended == (*content)->ended);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(fuzz::text(data, size));
  check(with_right_checksums(std::string(fuzz::text(data, size))));
  return 0;
}
