#include "agent/staging.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/random.h"
#include "base/sha256.h"
#include "wire/snapshot.h"

namespace slipway::agent {
namespace {

constexpr std::size_t copy_size = 1 << 20;

// What copy_file_range says where it cannot: other file systems, old kernels, odd ones.
bool must_copy_by_hand(int error) {
  return error == EXDEV || error == ENOSYS || error == EINVAL || error == EOPNOTSUPP || error == EPERM;
}

Result<Bytes> copy_by_hand(int from, int to, const std::string& name) {
  const auto buffer = std::make_unique_for_overwrite<char[]>(copy_size);
  for (Bytes total = 0;;) {
    const ssize_t got = ::read(from, buffer.get(), copy_size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("cannot read the stored content of " + name, errno));
    if (got == 0) return total;
    if (auto put = write_all(to, {buffer.get(), static_cast<std::size_t>(got)}, name); !put)
      return fail(put.error());
    total += static_cast<Bytes>(got);
  }
}

// From the beginning of one to the beginning of the other; how many bytes.
Result<Bytes> copy_content(int from, int to, const std::string& name) {
  if (::ioctl(to, FICLONE, from) == 0) {
    struct stat status {};
    if (::fstat(to, &status) != 0) return fail(system_error("cannot look at " + name, errno));
    return static_cast<Bytes>(status.st_size);
  }
  for (Bytes total = 0;;) {
    const ssize_t put = ::copy_file_range(from, nullptr, to, nullptr, 1u << 30, 0);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && total == 0 && must_copy_by_hand(errno)) return copy_by_hand(from, to, name);
    if (put < 0) return fail(system_error("cannot copy " + name, errno));
    if (put == 0) return total;
    total += static_cast<Bytes>(put);
  }
}

// Not an interruption: the next try would find the same.
Error not_stored(const std::string& hash) {
  return {ErrorCode::invalid, fmt::format("the content {} of its source is not stored at the service", hash),
          "submit the job again from its folder: slipway job submit sends what is missing"};
}

class Layout {  // the folder being filled
 public:
  Layout(Fd root, Blobs& blobs) : root_(std::move(root)), blobs_(blobs) {}

  Result<void> add(const SnapshotEntry& entry) {
    // Entered, not only made: what lies there already may be a link.
    if (entry.kind == SnapshotKind::folder) return enter(entry.path);
    const std::size_t slash = entry.path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : entry.path.substr(0, slash);
    const std::string name = entry.path.substr(slash + 1);  // npos + 1 is 0
    if (auto entered = enter(parent); !entered) return entered;
    return entry.kind == SnapshotKind::link ? make_link(entry, name) : make_file(entry, name);
  }

 private:
  int folder() const { return parent_ ? parent_.get() : root_.get(); }

  // Opens the folder step by step, never through a link; the last one stays open, since entries are sorted.
  Result<void> enter(const std::string& path) {
    if (path == parent_path_) return {};
    Fd at;
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const std::string part = path.substr(begin, end - begin);
      const int from = at ? at.get() : root_.get();
      if (auto made = make_folder(from, part, path); !made) return made;
      Fd next(::openat(from, part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next) return fail(system_error("cannot enter folder " + path, errno));
      at = std::move(next);
      begin = end + 1;
    }
    parent_ = std::move(at);
    parent_path_ = path;
    return {};
  }

  static Result<void> make_folder(int in, const std::string& name, const std::string& path) {
    if (::mkdirat(in, name.c_str(), 0755) == 0 || errno == EEXIST) return {};
    return fail(system_error("cannot make folder " + path, errno));
  }

  Result<void> make_link(const SnapshotEntry& entry, const std::string& name) {
    for (int again = 0; again < 2; ++again) {
      if (::symlinkat(entry.target.c_str(), folder(), name.c_str()) == 0) return {};
      if (errno != EEXIST || ::unlinkat(folder(), name.c_str(), 0) != 0) break;
    }
    return fail(system_error("cannot make the link " + entry.path, errno));
  }

  Result<void> make_file(const SnapshotEntry& entry, const std::string& name) {
    const Result<Fd> content = blobs_.open(entry.hash);
    if (!content) return fail(content.error());
    struct stat status {};
    if (::fstat(content->get(), &status) != 0)
      return fail(system_error("cannot look at " + entry.path, errno));
    if (static_cast<Bytes>(status.st_size) != entry.size)
      return fail(ErrorCode::internal, fmt::format("the stored content of {} has {} bytes instead of {}",
                                                   entry.path, status.st_size, entry.size));
    constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const mode_t mode = entry.executable ? 0755 : 0644;
    Fd file(::openat(folder(), name.c_str(), flags, mode));
    if (!file && errno == EEXIST && ::unlinkat(folder(), name.c_str(), 0) == 0)
      file = Fd(::openat(folder(), name.c_str(), flags, mode));
    if (!file) return fail(system_error("cannot create " + entry.path, errno));
    const Result<Bytes> copied = copy_content(content->get(), file.get(), entry.path);
    if (!copied) return fail(copied.error());
    if (*copied == entry.size) return {};
    return fail(ErrorCode::internal, fmt::format("the stored content of {} has {} bytes instead of {}",
                                                 entry.path, *copied, entry.size));
  }

  Fd root_;
  Blobs& blobs_;
  Fd parent_;
  std::string parent_path_;
};

}  // namespace

std::string Blobs::path_of(const std::string& hash) const {
  return fmt::format("{}/{}/{}", folder_, hash.substr(0, 2), hash);
}

Result<Fd> Blobs::open(const std::string& hash) {
  if (!is_sha256_hex(hash)) return fail(ErrorCode::invalid, "'" + hash + "' is not the name of any content");
  const std::string path = path_of(hash);
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT && fetch_) {
    const auto brought = bring(hash, path);
    if (!brought && brought.error().code == ErrorCode::not_found) return fail(not_stored(hash));
    if (!brought) return fail(brought.error());
    fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (!fd && errno == ENOENT) return fail(not_stored(hash));
  if (!fd) return fail(system_error("cannot open the stored content " + path, errno));
  if (fetch_) mark_used(fd.get());
  return fd;
}

// Beside its final path, checked, then renamed: what has the name has the content. Not synced: after a power
// cut it is fetched again if it is missing, and size and manifest show whether it was cut short.
Result<void> Blobs::bring(const std::string& hash, const std::string& path) {
  if (auto made = make_folders(path.substr(0, path.rfind('/'))); !made) return made;
  const std::string beside = fmt::format("{}.{}.new", path, random_hex(4));
  Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!file) return fail(system_error("cannot create " + beside, errno));
  Sha256 sum;
  Result<void> written;
  Result<void> fetched = fetch_(hash, [&](std::string_view piece) {
    sum.add(piece);
    written = write_all(file.get(), piece, beside);
    return written.has_value();
  });
  if (!written) fetched = written;
  if (fetched && sum.finish() != hash)
    fetched = fail(ErrorCode::internal, "what was fetched as " + hash + " has another content");
  if (fetched && ::rename(beside.c_str(), path.c_str()) != 0)
    fetched = fail(system_error("cannot rename " + beside, errno));
  if (!fetched) ::unlink(beside.c_str());
  return fetched;
}

Result<Snapshot> Blobs::manifest(const std::string& hash) {
  const Result<Fd> fd = open(hash);
  if (!fd) return fail(fd.error());
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return fail(system_error("cannot look at manifest " + hash, errno));
  if (static_cast<Bytes>(status.st_size) > manifest_size_max)
    return fail(ErrorCode::invalid, fmt::format("{} is no manifest: it has {}", hash,
                                                format_bytes(static_cast<Bytes>(status.st_size))));
  const Result<std::string> text = read_file(fmt::format("/proc/self/fd/{}", fd->get()));
  if (!text) return fail(text.error());
  if (sha256_hex(*text) != hash)
    return fail(ErrorCode::internal, "the stored manifest " + hash + " has another content");
  Result<Snapshot> snapshot = wire::parse_snapshot(*text);
  if (!snapshot) return snapshot;
  if (auto valid = validate(*snapshot); !valid) return fail(valid.error());
  return snapshot;
}

Trimmed Blobs::trim(const std::set<std::string>& manifests, const CacheLimits& limits, TimePoint now) {
  if (!fetch_) return {};
  std::set<std::string> in_use = manifests;
  for (const std::string& hash : manifests) {
    const Result<std::string> text = read_file(path_of(hash));
    if (!text) continue;  // not fetched yet
    if (const Result<Snapshot> snapshot = wire::parse_snapshot(*text))
      for (const SnapshotEntry& entry : snapshot->entries) in_use.insert(entry.hash);
  }
  return trim_cache(folder_, in_use, limits, now);
}

Result<void> lay_out(const Snapshot& snapshot, Blobs& blobs, const std::string& folder) {
  if (auto made = make_folders(folder); !made) return made;
  Fd root(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root) return fail(system_error("cannot enter " + folder, errno));
  Layout layout(std::move(root), blobs);
  for (const SnapshotEntry& entry : snapshot.entries)
    if (auto added = layout.add(entry); !added) return added;
  return {};
}

Result<void> write_files(const std::string& folder,
                         const std::vector<std::pair<std::string, std::string>>& files) {
  if (files.empty()) return {};
  if (auto made = make_folders(folder); !made) return made;
  for (const auto& [name, content] : files)
    if (auto written = write_file_durably(folder + "/" + name, content); !written) return written;
  return {};
}

}  // namespace slipway::agent
