#include "agent/machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <thread>

#include "base/file.h"

namespace slipway::agent {
namespace {

constexpr std::size_t last_lines_max = 20;
constexpr std::size_t last_bytes_max = 4096;

std::uint32_t usable_cores() {
  // Grows until the kernel accepts it: machines have more cores than a cpu_set_t has bits.
  for (int cores = CPU_SETSIZE; cores <= 1 << 20; cores *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cores),
                                                               [](cpu_set_t* one) { CPU_FREE(one); });
    const std::size_t size = CPU_ALLOC_SIZE(cores);
    if (set && ::sched_getaffinity(0, size, set.get()) == 0)
      return static_cast<std::uint32_t>(CPU_COUNT_S(size, set.get()));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

Bytes total_memory() {
  const Result<std::string> info = read_file("/proc/meminfo");
  const std::size_t at = info ? info->find("MemTotal:") : std::string::npos;
  return at == std::string::npos ? 0 : std::strtoull(info->c_str() + at + 9, nullptr, 10) * 1024;
}

// Names in a folder that `counts`; nullopt where there is no such folder.
std::optional<std::uint32_t> count_entries(const char* folder, bool (*counts)(std::string_view name)) {
  std::error_code error;
  std::uint32_t count = 0;
  std::filesystem::directory_iterator entry(folder, error);
  if (error) return std::nullopt;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    count += counts(entry->path().filename().string());
  return count;
}

bool is_gpu_device(std::string_view name) {  // nvidia0; not nvidiactl
  constexpr std::string_view prefix = "nvidia";
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

}  // namespace

std::uint32_t detect_gpus() {
  constexpr unsigned long tested_max = 1024;
  if (const char* tested = std::getenv("SLIPWAY_TEST_GPUS"))
    return static_cast<std::uint32_t>(std::min(std::strtoul(tested, nullptr, 10), tested_max));
  // A container is given some of the device files; a card that failed keeps its file, but the driver drops
  // it.
  const std::uint32_t files = count_entries("/dev", is_gpu_device).value_or(0);
  const auto cards = count_entries("/proc/driver/nvidia/gpus", [](std::string_view) { return true; });
  return std::min(files, cards.value_or(files));
}

Resources detect_resources() {
  return {.cores = usable_cores() * 1000, .memory = total_memory(), .gpus = detect_gpus()};
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string boot_id() {
  const Result<std::string> id = read_file("/proc/sys/kernel/random/boot_id");
  return id ? id->substr(0, id->find('\n')) : "";
}

std::string address_towards(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) return "127.0.0.1";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    // Connecting a datagram socket chooses the route, and so our address, without sending anything.
    const Fd socket(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char text[NI_MAXHOST];
    if (socket && ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0)
      return text;
  }
  return "127.0.0.1";
}

// As a terminal shows them: of a line that was written over, what was written last.
static std::string without_overwritten(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (!shown.empty()) shown += '\n';
    shown += line.substr(line.rfind('\r') + 1);  // npos + 1 is 0
  }
  return shown;
}

std::string last_lines_of(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return "";
  const off_t begin = std::max<off_t>(0, status.st_size - static_cast<off_t>(last_bytes_max));
  std::string text(static_cast<std::size_t>(status.st_size - begin), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), begin);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t at = text.size();
  for (std::size_t lines = 0; lines < last_lines_max && at != std::string::npos && at > 0; ++lines)
    at = text.rfind('\n', at - 1);
  if (at != std::string::npos && at > 0) text.erase(0, at + 1);
  return without_overwritten(text);
}

std::optional<TimePoint> newest_change(const std::string& folder) {
  constexpr int entries_max = 10'000;  // of a checkpoint folder: more are not looked at
  std::optional<TimePoint> newest;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error);
  for (int looked = 0; !error && entry != std::filesystem::end(entry) && looked < entries_max; ++looked) {
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      const TimePoint changed{Duration(status.st_mtim.tv_sec * 1'000'000 + status.st_mtim.tv_nsec / 1'000)};
      newest = std::max(newest.value_or(changed), changed);
    }
    entry.increment(error);
  }
  return newest;
}

}  // namespace slipway::agent
