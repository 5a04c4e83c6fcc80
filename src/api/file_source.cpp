#include "api/file_source.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/beneath.h"
#include "domain/layout.h"
#include "wire/files.h"

namespace slipway::api {
namespace {

// What an attempt of one process has, whether it lies on the disk or not.
bool is_own_folder(const std::string& path) {
  return path.empty() || path == "." || path == "outputs" || path == stream_names("", false).wd;
}
bool is_stream(const std::string& path) {
  const StreamNames names = stream_names("", false);
  return path == names.out || path == names.err;
}

bool is_same_file(int one, int other) {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

class Here final : public FileSource {
 public:
  Here(std::string folder, net::FileWatcher& watcher) : folder_(std::move(folder)), watcher_(watcher) {}

  Result<Fd> open(const std::string& path, int flags) const {
    const Fd root(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root) return fail(ErrorCode::not_found, fmt::format("there is no file '{}' yet", path));
    return open_beneath(root.get(), path, flags);
  }

  Result<Fd> open_here(const std::string& path) override {
    auto fd = open(path, O_RDONLY | O_NONBLOCK);
    if (!fd) return fd;
    struct stat status {};
    if (::fstat(fd->get(), &status) != 0) return fail(system_error("cannot read '" + path + "'", errno));
    if (S_ISDIR(status.st_mode))
      return fail(ErrorCode::invalid, fmt::format("'{}' is a folder", path),
                  "list it with slipway files list");
    if (!S_ISREG(status.st_mode))
      return fail(ErrorCode::invalid, fmt::format("'{}' is not a plain file", path));
    return fd;
  }

  void read(const std::string& path, std::uint64_t offset, std::size_t length, Bytes done) override {
    auto fd = open_here(path);
    if (!fd) return done(fail(fd.error()));
    std::string bytes(length, '\0');
    const ssize_t got = ::pread(fd->get(), bytes.data(), length, static_cast<off_t>(offset));
    if (got < 0) return done(fail(system_error("cannot read '" + path + "'", errno)));
    bytes.resize(static_cast<std::size_t>(got));
    // The folder of an attempt that has written nothing is handed to another one, by a rename: what was read
    // is this attempt's only if its path still leads to the same file.
    if (got > 0)
      if (auto again = open_here(path); !again || !is_same_file(fd->get(), again->get()))
        return done(fail(ErrorCode::not_found, fmt::format("there is no file '{}'", path)));
    done(std::move(bytes));
  }

  void size(const std::string& path, std::function<void(Result<std::uint64_t>)> done) override {
    auto fd = open_here(path);
    if (!fd && fd.error().code == ErrorCode::not_found && is_stream(path)) return done(0);
    if (!fd) return done(fail(fd.error()));
    struct stat status {};
    ::fstat(fd->get(), &status);
    done(static_cast<std::uint64_t>(status.st_size));
  }

  void list(const std::string& path, std::function<void(Result<std::vector<FileItem>>)> done) override {
    auto fd = open(path, O_RDONLY | O_DIRECTORY);
    if (!fd) {
      if (auto plain = open_here(path); plain)
        return done(fail(ErrorCode::invalid, fmt::format("'{}' is a file, not a folder", path),
                         "read it with slipway files get"));
      if (fd.error().code == ErrorCode::not_found && is_own_folder(path))
        return done(std::vector<FileItem>());
      return done(fail(fd.error()));
    }
    std::vector<FileItem> items;
    DIR* folder = ::fdopendir(fd->release());
    while (const dirent* entry = ::readdir(folder)) {
      const std::string name = entry->d_name;
      struct stat status {};
      if (name == "." || name == ".." ||
          ::fstatat(::dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      const char* kind = S_ISREG(status.st_mode)   ? "file"
                         : S_ISDIR(status.st_mode) ? "folder"
                         : S_ISLNK(status.st_mode) ? "link"
                                                   : "other";
      items.push_back({path.empty() || path == "." ? name : path + "/" + name, kind,
                       S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0,
                       TimePoint(Duration(std::int64_t{status.st_mtim.tv_sec} * 1'000'000 +
                                          status.st_mtim.tv_nsec / 1000))});
    }
    ::closedir(folder);
    std::sort(items.begin(), items.end(),
              [](const FileItem& a, const FileItem& b) { return a.path < b.path; });
    done(std::move(items));
  }

  std::shared_ptr<void> watch(const std::string& path, std::uint64_t,
                              std::function<void()> changed) override {
    if (!open_here(path)) return nullptr;
    return watcher_.watch(folder_ + "/" + path, std::move(changed));
  }

 private:
  std::string folder_;
  net::FileWatcher& watcher_;
};

class OnNode final : public FileSource, public std::enable_shared_from_this<OnNode> {
 public:
  OnNode(NodeSessions& sessions, std::string workspace, std::string node, std::string folder)
      : sessions_(sessions),
        workspace_(std::move(workspace)),
        node_(std::move(node)),
        folder_(std::move(folder)) {}

  Result<Fd> open_here(const std::string&) override { return Fd(); }

  void read(const std::string& path, std::uint64_t offset, std::size_t length, Bytes done) override {
    ask_bytes(path, offset, length, false, std::move(done));
  }

  void size(const std::string& path, std::function<void(Result<std::uint64_t>)> done) override {
    const std::size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    list(parent, [path, done = std::move(done)](Result<std::vector<FileItem>> items) {
      if (!items) return done(fail(items.error()));
      for (const FileItem& item : *items)
        if (item.path == path) return done(item.size);
      if (is_stream(path)) return done(0);
      done(fail(ErrorCode::not_found, fmt::format("there is no file '{}'", path)));
    });
  }

  void list(const std::string& path, std::function<void(Result<std::vector<FileItem>>)> done) override {
    sessions_.ask(workspace_, node_, wire::format_list_question(full(path)),
                  [path, done = std::move(done)](Result<std::string> reply) {
                    if (!reply) return done(fail(reply.error()));
                    auto listed = wire::parse_file_list(*reply);
                    if (!listed && listed.error().code == ErrorCode::not_found && is_own_folder(path))
                      return done(std::vector<FileItem>());
                    if (!listed) return done(fail(listed.error()));
                    std::vector<FileItem> items;
                    for (wire::ListedFile& file : *listed)
                      items.push_back({path.empty() ? file.name : path + "/" + file.name, file.kind,
                                       file.size, file.modified_at});
                    done(std::move(items));
                  });
  }

  // Each question that finds nothing new waits at the node until there is something.
  std::shared_ptr<void> watch(const std::string& path, std::uint64_t offset,
                              std::function<void()> changed) override {
    auto alive = std::make_shared<bool>(true);
    ask_bytes(path, offset, 1, true,
              [weak = std::weak_ptr<bool>(alive), changed = std::move(changed)](Result<std::string>) {
                if (weak.lock()) changed();
              });
    return alive;
  }

 private:
  std::string full(const std::string& path) const { return path.empty() ? folder_ : folder_ + "/" + path; }

  void ask_bytes(const std::string& path, std::uint64_t offset, std::size_t length, bool wait, Bytes done) {
    sessions_.ask(workspace_, node_, wire::format_read_question(full(path), offset, length, wait),
                  [done = std::move(done)](Result<std::string> reply) {
                    if (!reply) return done(fail(reply.error()));
                    done(wire::parse_file_bytes(*reply));
                  });
  }

  NodeSessions& sessions_;
  std::string workspace_, node_, folder_;
};

}  // namespace

std::shared_ptr<FileSource> files_here(const std::string& folder, net::FileWatcher& watcher) {
  return std::make_shared<Here>(folder, watcher);
}
std::shared_ptr<FileSource> files_on_node(NodeSessions& sessions, std::string workspace, std::string node,
                                          std::string folder) {
  return std::make_shared<OnNode>(sessions, std::move(workspace), std::move(node), std::move(folder));
}

}  // namespace slipway::api
