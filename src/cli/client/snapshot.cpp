#include "cli/client/snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/sha256.h"
#include "cli/client/ignore.h"
#include "wire/utf8.h"

namespace slipway::cli {
namespace {

constexpr const char* ignore_file_name = ".slipwayignore";
constexpr std::size_t largest_named = 5;

tl::unexpected<Error> refused(std::string what, std::string hint) {
  return fail(ErrorCode::invalid, std::move(what), std::move(hint));
}

std::string link_hint() {
  return fmt::format("copy what it points to, or leave it out with a line in {}", ignore_file_name);
}

struct Rules {         // the ignore files from the root down to one folder
  std::string folder;  // relative, empty for the root
  IgnoreFile file;
  std::shared_ptr<const Rules> above;
};

bool is_ignored(const Rules* rules, const std::string& path, IgnoreFile::Kind kind) {
  for (; rules != nullptr; rules = rules->above.get()) {
    const std::size_t skip = rules->folder.empty() ? 0 : rules->folder.size() + 1;
    if (const std::optional<bool> said = rules->file.ignores(std::string_view(path).substr(skip), kind))
      return *said;
  }
  return false;
}

class Walk {
 public:
  explicit Walk(std::string root) : root_(std::move(root)) {}

  Result<Snapshot> run() {
    std::error_code error;
    resolved_root_ = std::filesystem::canonical(root_, error).string();
    if (error) return refused(fmt::format("cannot use the source folder {}: {}", root_, error.message()), "");
    folders_.push_back({"", nullptr});
    while (!folders_.empty()) {
      const Folder folder = std::move(folders_.back());
      folders_.pop_back();
      if (auto walked = enter(folder); !walked) return fail(walked.error());
    }
    std::sort(snapshot_.entries.begin(), snapshot_.entries.end(),
              [](const SnapshotEntry& a, const SnapshotEntry& b) { return a.path < b.path; });
    if (auto inside = check_links(snapshot_); !inside) return refused(inside.error().what, link_hint());
    return std::move(snapshot_);
  }

 private:
  struct Folder {
    std::string path;
    std::shared_ptr<const Rules> rules;
  };

  std::string absolute(const std::string& path) const { return path.empty() ? root_ : root_ + "/" + path; }

  Result<void> enter(const Folder& folder) {
    const std::string where = absolute(folder.path);
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(where.c_str()), ::closedir);
    if (!stream) return fail(system_error("cannot open " + where, errno));
    std::shared_ptr<const Rules> rules = folder.rules;
    if (const Result<std::string> text = read_file(where + "/" + ignore_file_name))
      rules = std::make_shared<Rules>(Rules{folder.path, IgnoreFile(*text), rules});
    else if (text.error().code != ErrorCode::not_found)
      return fail(text.error());
    for (;;) {
      errno = 0;
      const dirent* item = ::readdir(stream.get());
      if (item == nullptr && errno != 0) return fail(system_error("cannot read " + where, errno));
      if (item == nullptr) return {};
      const std::string name = item->d_name;
      if (name == "." || name == ".." || name == ".git") continue;
      const std::string path = folder.path.empty() ? name : folder.path + "/" + name;
      if (auto added = add(path, rules); !added) return added;
    }
  }

  Result<void> add(const std::string& path, const std::shared_ptr<const Rules>& rules) {
    struct stat about {};
    if (::lstat(absolute(path).c_str(), &about) != 0)
      return fail(system_error("cannot look at " + absolute(path), errno));
    const bool is_folder = S_ISDIR(about.st_mode);
    if (is_ignored(rules.get(), path, is_folder ? IgnoreFile::Kind::folder : IgnoreFile::Kind::file))
      return {};
    if (!wire::is_utf8(path))
      return refused(fmt::format("the name of '{}' is not UTF-8", wire::to_utf8(path)),
                     fmt::format("rename it, or leave it out with a line in {}", ignore_file_name));
    SnapshotEntry entry{.path = path, .hash = {}, .target = {}};
    if (is_folder) {
      entry.kind = SnapshotKind::folder;
      folders_.push_back({path, rules});
    } else if (S_ISREG(about.st_mode)) {
      entry.size = static_cast<Bytes>(about.st_size);
      entry.executable = (about.st_mode & S_IXUSR) != 0;
    } else if (S_ISLNK(about.st_mode)) {
      entry.kind = SnapshotKind::link;
      if (auto target = link_target(path); target)
        entry.target = std::move(*target);
      else
        return fail(target.error());
    } else {
      return refused(fmt::format("'{}' is a socket, a pipe or a device, which cannot be sent", path),
                     fmt::format("remove it, or leave it out with a line in {}", ignore_file_name));
    }
    snapshot_.entries.push_back(std::move(entry));
    return {};
  }

  Result<std::string> link_target(const std::string& path) const {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(absolute(path), error).string();
    if (error) return refused(fmt::format("cannot read the link '{}': {}", path, error.message()), "");
    // check_links knows what the snapshot has; here a link that is left out of it may lead out, too.
    const std::filesystem::path meant = std::filesystem::path(absolute(path)).parent_path() / target;
    const std::string resolved = std::filesystem::weakly_canonical(meant, error).string();
    if (!error && resolved != resolved_root_ && !resolved.starts_with(resolved_root_ + "/"))
      return refused(fmt::format("the link '{}' leads out of the folder, to '{}'", path, target),
                     link_hint());
    return target;
  }

  std::string root_;
  std::string resolved_root_;
  std::vector<Folder> folders_;
  Snapshot snapshot_;
};

Result<void> check_size(const Snapshot& snapshot, const std::string& folder, Bytes size_max) {
  Bytes total = 0;
  std::vector<const SnapshotEntry*> files;
  for (const SnapshotEntry& entry : snapshot.entries) {
    total += entry.size;
    if (entry.kind == SnapshotKind::file) files.push_back(&entry);
  }
  if (total <= size_max) return {};
  const std::size_t named = std::min(largest_named, files.size());
  std::partial_sort(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(named), files.end(),
                    [](const SnapshotEntry* a, const SnapshotEntry* b) { return a->size > b->size; });
  std::string largest = "the largest files are";
  for (std::size_t i = 0; i < named; ++i)
    largest += fmt::format("\n{:>10}  {}", format_bytes(files[i]->size), files[i]->path);
  const std::string what =
      folder.empty() ? "the files have" : fmt::format("the source folder {} has", folder);
  return fail(
      ErrorCode::too_large,
      fmt::format("{} {}, the limit is {}\n{}", what, format_bytes(total), format_bytes(size_max), largest),
      folder.empty() ? "keep data where the nodes can read it, and pass its path to the command"
                     : fmt::format("leave data out with lines in {}/{}", folder, ignore_file_name));
}

Result<std::string> hash_file(const std::string& path, Bytes size) {
  const auto changed = [&path] {
    return fail(ErrorCode::conflict, fmt::format("{} changed while it was read", path),
                "submit again when nothing writes to the source folder");
  };
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return fail(system_error("cannot open " + path, errno));
  struct stat before {
  }, after{};
  if (::fstat(fd.get(), &before) != 0) return fail(system_error("cannot look at " + path, errno));
  Sha256 hash;
  Bytes seen = 0;
  const auto buffer = std::make_unique<std::array<char, 256 * 1024>>();
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer->data(), buffer->size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("cannot read " + path, errno));
    if (got == 0) break;
    hash.add({buffer->data(), static_cast<std::size_t>(got)});
    seen += static_cast<Bytes>(got);
    if (seen > size) return changed();
  }
  if (::fstat(fd.get(), &after) != 0) return fail(system_error("cannot look at " + path, errno));
  const bool same_time =
      before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec;
  if (seen != size || !same_time) return changed();
  return hash.finish();
}

}  // namespace

namespace {

Result<SnapshotEntry> single_file(const std::string& name, const std::string& from, Bytes size_max) {
  struct stat about {};
  if (::stat(from.c_str(), &about) != 0)
    return refused(fmt::format("file {} (for {}) cannot be sent: {}", from, name, std::strerror(errno)),
                   "a relative path is looked for beside the job file");
  if (!S_ISREG(about.st_mode))
    return refused(fmt::format("{} (for {}) is not a file", from, name), "send folders with source:");
  if (static_cast<Bytes>(about.st_size) > size_max)
    return fail(ErrorCode::too_large,
                fmt::format("file {} has {}, the limit is {}", from,
                            format_bytes(static_cast<Bytes>(about.st_size)), format_bytes(size_max)),
                "keep data where the nodes can read it, and pass its path to the command");
  SnapshotEntry entry{.path = name, .hash = {}, .target = {}};
  entry.size = static_cast<Bytes>(about.st_size);
  entry.executable = (about.st_mode & S_IXUSR) != 0;
  std::error_code error;
  const std::string resolved = std::filesystem::canonical(from, error).string();
  Result<std::string> hash = hash_file(error ? from : resolved, entry.size);
  if (!hash) return fail(hash.error());
  entry.hash = std::move(*hash);
  return entry;
}

void add_parents(Snapshot& snapshot, const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    const auto same = [&](const SnapshotEntry& entry) { return entry.path == parent; };
    if (std::any_of(snapshot.entries.begin(), snapshot.entries.end(), same)) continue;
    SnapshotEntry entry{.path = parent, .hash = {}, .target = {}};
    entry.kind = SnapshotKind::folder;
    snapshot.entries.push_back(std::move(entry));
  }
}

}  // namespace

Result<Code> gather_code(const std::string& folder,
                         const std::vector<std::pair<std::string, std::string>>& files,
                         const SnapshotLimits& limits) {
  Code code;
  if (!folder.empty()) {
    Result<Snapshot> taken = take_snapshot(folder, limits);
    if (!taken) return fail(taken.error());
    code.snapshot = std::move(*taken);
    for (const SnapshotEntry& entry : code.snapshot.entries)
      if (entry.kind == SnapshotKind::file) code.where[entry.path] = folder + "/" + entry.path;
  }
  for (const auto& [name, from] : files) {
    Result<SnapshotEntry> entry = single_file(name, from, limits.size_max);
    if (!entry) return fail(entry.error());
    std::erase_if(code.snapshot.entries, [&](const SnapshotEntry& one) { return one.path == entry->path; });
    add_parents(code.snapshot, name);
    code.snapshot.entries.push_back(std::move(*entry));
    code.where[name] = from;
  }
  std::sort(code.snapshot.entries.begin(), code.snapshot.entries.end(),
            [](const SnapshotEntry& a, const SnapshotEntry& b) { return a.path < b.path; });
  if (auto valid = validate(code.snapshot); !valid) return fail(valid.error());
  if (auto fits = check_size(code.snapshot, folder, limits.size_max); !fits) return fail(fits.error());
  return code;
}

Result<Snapshot> take_snapshot(const std::string& folder, const SnapshotLimits& limits) {
  Result<Snapshot> snapshot = Walk(folder).run();
  if (!snapshot) return snapshot;
  if (auto fits = check_size(*snapshot, folder, limits.size_max); !fits) return fail(fits.error());
  for (SnapshotEntry& entry : snapshot->entries) {
    if (entry.kind != SnapshotKind::file) continue;
    Result<std::string> hash = hash_file(folder + "/" + entry.path, entry.size);
    if (!hash) return fail(hash.error());
    entry.hash = std::move(*hash);
  }
  return snapshot;
}

}  // namespace slipway::cli
