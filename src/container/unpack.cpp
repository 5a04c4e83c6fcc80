#include "container/unpack.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/quantity.h"
#include "base/random.h"
#include "base/sha256.h"
#include "container/execute.h"
#include "container/root.h"

namespace slipway::container {
namespace {

constexpr std::size_t messages_max = 64 * 1024;

// tar says at each of its checkpoints how far it is.
constexpr Bytes record_size = 10 * 1024;
constexpr Bytes checkpoint_records = 1'000;
constexpr std::string_view checkpoint_word = "slipway-checkpoint ";

Result<Fd> lock(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return fail(system_error("cannot open " + path, errno));
  while (::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR) return fail(system_error("cannot lock " + path, errno));
  return fd;
}

std::vector<std::string> tar_command(const std::string& tarball, const std::string& folder) {
  std::vector<std::string> words{
      "tar", "--extract", "--file", tarball, "--directory", folder, "--force-local", "--same-permissions",
      "--delay-directory-restore", "--anchored", "--exclude=dev/*", "--exclude=./dev/*",
      // Each entry is said before it is unpacked, in columns that names cannot forge.
      "--verbose", "--verbose", "--full-time", "--quoting-style=escape", "--numeric-owner",
      fmt::format("--checkpoint={}", checkpoint_records),
      fmt::format("--checkpoint-action=echo={}%u", checkpoint_word)};
  if (::geteuid() == 0)
    words.emplace_back("--same-owner");
  else
    words.emplace_back("--no-same-owner");
  return words;
}

// What tar says of an entry: "-rw-r--r-- 0/0 5 2026-01-02 03:04:05 etc/hostname".
struct Entry {
  char kind = '-';
  std::string_view size;  // of a device its numbers
  std::string_view name;
};

std::optional<Entry> entry_of(std::string_view line) {
  constexpr std::size_t mode_size = 10;
  if (line.size() < mode_size ||
      line.substr(0, mode_size).find_first_not_of("-dlhcbpsrwxStTCDMVN") != line.npos)
    return std::nullopt;
  std::array<std::string_view, 5> columns;  // mode, owner, size, date, time
  for (std::string_view& column : columns) {
    const std::size_t end = std::min(line.find(' '), line.size());
    column = line.substr(0, end);
    line.remove_prefix(end);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  }
  Entry entry{columns[0].front(), columns[2], line};
  for (const auto& [kind, arrow] : {std::pair('l', " -> "), std::pair('h', " link to ")})
    if (entry.kind == kind) entry.name = entry.name.substr(0, entry.name.find(arrow));
  return entry;
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// What tar writes: messages, within bounds, how much it has unpacked, and what. The first thing that is not
// allowed is the problem.
class Progress {
 public:
  Progress(Bytes bytes_max, const UnpackLimits& limits) : bytes_max_(bytes_max), limits_(limits) {}
  void add(std::string_view bytes) {
    partial_ += bytes;
    std::size_t begin = 0;
    for (std::size_t end; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1)
      take(std::string_view(partial_).substr(begin, end - begin));
    partial_.erase(0, begin);
    if (partial_.size() > messages_max) take(std::exchange(partial_, {}));
  }
  const std::string& problem() const { return problem_; }
  std::string messages() const { return messages_ + partial_; }

 private:
  void take(std::string_view line) {
    if (const std::size_t word = line.find(checkpoint_word); word != std::string_view::npos) {
      if (number_in(line.substr(word + checkpoint_word.size())) * record_size > bytes_max_)
        stop(fmt::format("holds more than {}", format_bytes(bytes_max_)));
    } else if (const auto entry = entry_of(line)) {
      check(*entry);
    } else if (messages_.size() < messages_max) {
      messages_.append(line).append("\n");
    }
  }
  void check(const Entry& entry) {
    const std::string name(entry.name.substr(0, 200));
    if (++files_ > limits_.files_max) stop(fmt::format("holds more than {} files", limits_.files_max));
    if (name.starts_with('/')) stop(fmt::format("names {}, which is no path in it", name));
    // Of a device its numbers stand there, which say nothing; it is left out or of no use (unpack.h).
    const Bytes size = number_in(entry.size);
    if (entry.kind == '-' && size > limits_.file_max)
      stop(fmt::format("holds {} of {}; a file has {} at most", name, format_bytes(size),
                       format_bytes(limits_.file_max)));
    const auto slashes = static_cast<std::uint64_t>(std::count(entry.name.begin(), entry.name.end(), '/'));
    if (slashes > limits_.depth_max)
      stop(fmt::format("holds {}, which is more than {} folders deep", name, limits_.depth_max));
  }
  void stop(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
  }
  const Bytes bytes_max_;
  const UnpackLimits limits_;
  std::uint64_t files_ = 0;
  std::string problem_, partial_, messages_;
};

void follow(int fd, Progress& progress, pid_t tar) {
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    progress.add({buffer, static_cast<std::size_t>(got)});
    if (!progress.problem().empty()) ::kill(tar, SIGKILL);
  }
}

// The first line that is a reason to give up. Devices cannot be made by ordinary users and are not needed.
std::string first_complaint(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find(": Cannot mknod: Operation not permitted") != std::string::npos ||
        line.find("Exiting with failure status due to previous errors") != std::string::npos)
      continue;
    if (!line.empty()) return line;
  }
  return {};
}

struct Ended {
  int status = 0;
  std::string messages;
};

Result<Ended> run_tar(const std::vector<std::string>& command, Environment environment, Progress& progress) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe", errno));
  Fd reader(ends[0]), writer(ends[1]);
  environment["LC_ALL"] = std::string("C");  // its messages are parsed
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(system_error("cannot start tar", errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG,
            SIGKILL);  // not base/subprocess.h: tar must not outlive a start that was killed
    if (::getppid() != parent) ::_exit(127);
    ::dup2(writer.get(), STDOUT_FILENO);
    ::dup2(writer.get(), STDERR_FILENO);
    const Error error = execute(command, environment, "on this node");
    std::fprintf(stderr, "%s\n", error.what.c_str());
    ::_exit(127);
  }
  writer.reset();
  Ended ended;
  follow(reader.get(), progress, pid);
  ended.messages = progress.messages();
  while (::waitpid(pid, &ended.status, 0) < 0)
    if (errno != EINTR) return fail(system_error("cannot wait for tar", errno));
  return ended;
}

Result<void> unpack_into(const std::string& folder, const std::string& tarball,
                         const Environment& environment, const UnpackLimits& limits) {
  struct stat packed {};
  if (::stat(tarball.c_str(), &packed) != 0) return fail(system_error("cannot open " + tarball, errno));
  Progress progress(static_cast<Bytes>(packed.st_size) * limits.growth + limits.free, limits);
  const Result<Ended> ended = run_tar(tar_command(tarball, folder), environment, progress);
  if (!ended) return fail(ended.error());
  if (!progress.problem().empty())
    return fail(ErrorCode::too_large,
                fmt::format("{} ({}) {}", tarball, format_bytes(static_cast<Bytes>(packed.st_size)),
                            progress.problem()),
                "if it is meant to, unpack it yourself and name the folder, or raise the limit "
                "(SLIPWAY_UNPACK_GROWTH, _FILE_MAX, _FILES_MAX, _DEPTH_MAX)");
  const std::string complaint = first_complaint(ended->messages);
  const bool only_devices = WIFEXITED(ended->status) && WEXITSTATUS(ended->status) == 2 &&
                            complaint.empty() && !ended->messages.empty();
  if (ended->status == 0 || only_devices) return {};
  Error error{
      ErrorCode::internal,
      fmt::format("cannot unpack {}: {}", tarball, complaint.empty() ? "tar was killed" : complaint),
      "check the file with tar -tf; it has to be .tar, .tar.gz, .tar.xz or .tar.zst, and the node needs "
      "the program for its compression"};
  if (complaint.find("No space left") != std::string::npos || complaint.find("quota") != std::string::npos)
    error.hint = fmt::format("free space in {}, or set SLIPWAY_NODE_CACHE to a folder on a larger disk",
                             std::filesystem::path(folder).parent_path().string());
  return fail(error);
}

// So that the folder is not there after a power cut while some of its files are not.
Result<void> sync_folder(const std::string& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::syncfs(fd.get()) != 0) return fail(system_error("cannot sync " + folder, errno));
  return {};
}

void remove_leftovers(const std::string& cache, const std::string& prefix) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (std::filesystem::directory_iterator entry(cache, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename().string().starts_with(prefix)) left.push_back(entry->path());
  for (const auto& path : left) std::filesystem::remove_all(path, error);
}

Result<void> unpack_to(const std::string& place, const std::string& tarball, const Environment& environment,
                       const UnpackLimits& limits) {
  const std::string partial = fmt::format("{}.partial-{}", place, random_hex(4));
  if (auto made = make_folders(partial, 0700); !made) return made;
  Result<void> done = unpack_into(partial, tarball, environment, limits);
  if (done) done = check_rootfs(partial, tarball);
  if (done) done = sync_folder(partial);
  if (done && ::rename(partial.c_str(), place.c_str()) != 0)
    done = fail(system_error("cannot rename " + partial, errno));
  std::error_code ignored;
  if (!done) std::filesystem::remove_all(partial, ignored);
  return done;
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

std::string cache_folder(const Environment& environment, const std::string& tarball) {
  const auto folder = [&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() && found->second.starts_with('/') ? found->second : std::string();
  };
  if (const std::string node = folder("SLIPWAY_NODE_CACHE"); !node.empty()) return node + "/rootfs";
  if (const std::string cache = folder("XDG_CACHE_HOME"); !cache.empty()) return cache + "/slipway/rootfs";
  if (const std::string home = folder("HOME"); !home.empty()) return home + "/.cache/slipway/rootfs";
  return std::filesystem::path(tarball).parent_path().string() + "/.slipway-rootfs";
}

Result<UnpackLimits> unpack_limits(const Environment& environment) {
  UnpackLimits limits;
  for (const auto& [name, limit] : {std::pair("SLIPWAY_UNPACK_GROWTH", &limits.growth),
                                    std::pair("SLIPWAY_UNPACK_FILE_MAX", &limits.file_max),
                                    std::pair("SLIPWAY_UNPACK_FILES_MAX", &limits.files_max),
                                    std::pair("SLIPWAY_UNPACK_DEPTH_MAX", &limits.depth_max)}) {
    const auto given = environment.find(name);
    if (given == environment.end()) continue;
    const auto value = parse_bytes(given->second);
    if (!value)
      return fail(ErrorCode::invalid, fmt::format("{} '{}' is no number", name, given->second),
                  fmt::format("write it like {}=200", name));
    *limit = *value;
  }
  return limits;
}

Result<std::string> unpacked(const std::string& tarball, const Environment& environment,
                             const UnpackLimits& limits) {
  struct stat status {};
  if (::stat(tarball.c_str(), &status) != 0) return fail(system_error("cannot open " + tarball, errno));
  // One folder a user, closed to others: a tarball may hold programs that run as their owner.
  const std::string cache = fmt::format("{}-{}", cache_folder(environment, tarball), ::geteuid());
  if (auto made = make_folders(cache, 0700); !made) return fail(made.error());
  const std::string identity =
      fmt::format("{}\n{}\n{}.{:09}", tarball, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  const std::string name = fmt::format("{}-{}", std::filesystem::path(tarball).stem().stem().string(),
                                       sha256_hex(identity).substr(0, 16));
  const std::string place = cache + "/" + name;
  if (is_folder(place)) return place;
  const Result<Fd> held = lock(place + ".lock");
  if (!held) return fail(held.error());
  if (is_folder(place)) return place;
  remove_leftovers(cache, name + ".partial-");
  std::fprintf(stderr, "slipway: unpacking %s (%s), once on this node\n", tarball.c_str(),
               format_bytes(static_cast<Bytes>(status.st_size)).c_str());
  if (auto done = unpack_to(place, tarball, environment, limits); !done) return fail(done.error());
  return place;
}

}  // namespace slipway::container
