#include "api/file_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/beneath.h"
#include "base/list_folder.h"
#include "domain/layout.h"
#include "domain/output_times.h"
#include "wire/files.h"

namespace slipway::api {
namespace {

bool is_top(const std::string& path) { return path.empty() || path == "."; }
bool is_in(const std::vector<std::string>& names, const std::string& path) {
  return std::find(names.begin(), names.end(), path) != names.end();
}
bool is_own_folder(const OwnFiles& own, const std::string& path) {
  return is_top(path) || is_in(own.folders, path);
}

// Sorted by path. `path`: whose entries they are. What is not on the disk is added where one page holds all.
FilePage with_own(FilePage page, const OwnFiles& own, const std::string& path, const std::string& after) {
  std::vector<FileItem>& items = page.items;
  if (is_top(path) && own.made_at && after.empty() && !page.next) {
    const auto add = [&](const std::string& name, const char* kind) {
      if (std::none_of(items.begin(), items.end(), [&](const FileItem& item) { return item.path == name; }))
        items.push_back({name, kind, 0, *own.made_at});
    };
    for (const std::string& name : own.folders) add(name, "folder");
    for (const std::string& name : own.streams) add(name, "file");
  }
  std::sort(items.begin(), items.end(), [](const FileItem& a, const FileItem& b) { return a.path < b.path; });
  return page;
}

bool is_same_file(int one, int other) {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Result<FilePage> items_of(Result<FolderPage> page, const OwnFiles& own, const std::string& folder,
                          const std::string& after) {
  if (!page) return fail(page.error());
  FilePage result;
  result.next = std::move(page->next);
  result.items.reserve(page->entries.size());
  for (FolderEntry& entry : page->entries)
    if (!is_output_times_file(entry.name) && !is_secret_path(entry.name))
      result.items.push_back(
          {folder.empty() || folder == "." ? std::move(entry.name) : folder + "/" + entry.name,
           std::string(entry.kind), entry.size, entry.modified_at});
  return with_own(std::move(result), own, folder, after);
}

class Here final : public FileSource {
 public:
  Here(std::string folder, OwnFiles own, net::Loop& loop, net::FileWatcher& watcher, Worker& worker)
      : folder_(std::move(folder)), own_(std::move(own)), loop_(loop), watcher_(watcher), worker_(worker) {}

  Result<Fd> open(const std::string& path, int flags) const {
    if (is_secret_path(path)) return fail(ErrorCode::not_found, fmt::format("there is no file '{}'", path));
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
    struct stat status {};
    if (::fstat(fd->get(), &status) != 0)
      return done(fail(system_error("cannot read '" + path + "'", errno)));
    const auto file_size = static_cast<std::uint64_t>(status.st_size);
    // Followers of a log ask for a large piece and find a line: only what is there is made room for.
    std::string bytes(offset < file_size ? std::min<std::uint64_t>(length, file_size - offset) : 0, '\0');
    const ssize_t got = ::pread(fd->get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
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
    if (!fd && fd.error().code == ErrorCode::not_found && is_in(own_.streams, path)) return done(0);
    if (!fd) return done(fail(fd.error()));
    struct stat status {};
    ::fstat(fd->get(), &status);
    done(static_cast<std::uint64_t>(status.st_size));
  }

  void list(const std::string& path, const std::string& after, std::size_t limit, Page done) override {
    auto fd = open(path, O_RDONLY | O_DIRECTORY);
    if (!fd) {
      if (auto plain = open_here(path); plain)
        return done(fail(ErrorCode::invalid, fmt::format("'{}' is a file, not a folder", path),
                         "read it with slipway files get"));
      if (fd.error().code == ErrorCode::not_found && is_own_folder(own_, path))
        return done(with_own(FilePage(), own_, path, after));
      return done(fail(fd.error()));
    }
    auto folder = std::make_shared<Fd>(std::move(*fd));
    auto shared = std::make_shared<Page>(std::move(done));
    const bool queued = worker_.post([&loop = loop_, own = own_, folder, path, after, limit, shared] {
      auto page = std::make_shared<Result<FilePage>>(
          items_of(list_folder(std::move(*folder), after, limit), own, path, after));
      loop.post([shared, page] { (*shared)(std::move(*page)); });
    });
    if (!queued) (*shared)(fail(ErrorCode::unavailable, "too much waits for the disk", "try again shortly"));
  }

  std::shared_ptr<void> watch(const std::string& path, std::uint64_t,
                              std::function<void()> changed) override {
    if (!open_here(path)) return nullptr;
    return watcher_.watch(folder_ + "/" + path, std::move(changed));
  }

 private:
  std::string folder_;
  OwnFiles own_;
  net::Loop& loop_;
  net::FileWatcher& watcher_;
  Worker& worker_;
};

class OnNode final : public FileSource, public std::enable_shared_from_this<OnNode> {
 public:
  OnNode(NodeSessions& sessions, std::string workspace, std::string node, std::string folder, OwnFiles own)
      : sessions_(sessions),
        workspace_(std::move(workspace)),
        node_(std::move(node)),
        folder_(std::move(folder)),
        own_(std::move(own)) {}

  Result<Fd> open_here(const std::string&) override { return Fd(); }

  void read(const std::string& path, std::uint64_t offset, std::size_t length, Bytes done) override {
    ask_bytes(path, offset, length, false, std::move(done));
  }

  void size(const std::string& path, std::function<void(Result<std::uint64_t>)> done) override {
    const bool is_stream = is_in(own_.streams, path);
    sessions_.ask(workspace_, node_, wire::format_size_question(folder_, path),
                  [is_stream, done = std::move(done)](Result<std::string> reply) {
                    if (!reply) return done(fail(reply.error()));
                    auto size = wire::parse_file_size(*reply);
                    if (!size && size.error().code == ErrorCode::not_found && is_stream) return done(0);
                    done(size);
                  });
  }

  void list(const std::string& path, const std::string& after, std::size_t limit, Page done) override {
    sessions_.ask(workspace_, node_, wire::format_list_question(folder_, path, after, limit),
                  [path, own = own_, after, done = std::move(done)](Result<std::string> reply) {
                    if (!reply) return done(fail(reply.error()));
                    auto listed = wire::parse_file_list(*reply);
                    if (!listed && listed.error().code == ErrorCode::not_found && is_own_folder(own, path))
                      return done(with_own(FilePage(), own, path, after));
                    done(items_of(std::move(listed), own, path, after));
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
  void ask_bytes(const std::string& path, std::uint64_t offset, std::size_t length, bool wait, Bytes done) {
    sessions_.ask(workspace_, node_, wire::format_read_question(folder_, path, offset, length, wait),
                  [done = std::move(done)](Result<std::string> reply) {
                    if (!reply) return done(fail(reply.error()));
                    done(wire::parse_file_bytes(*reply));
                  });
  }

  NodeSessions& sessions_;
  std::string workspace_, node_, folder_;
  OwnFiles own_;
};

}  // namespace

OwnFiles files_of_one_process() {
  const StreamNames names = stream_names("", false);
  return {.folders = {"outputs", names.wd}, .streams = {names.out, names.err}, .made_at = std::nullopt};
}

std::shared_ptr<FileSource> files_here(const std::string& folder, OwnFiles own, net::Loop& loop,
                                       net::FileWatcher& watcher, Worker& worker) {
  return std::make_shared<Here>(folder, std::move(own), loop, watcher, worker);
}
std::shared_ptr<FileSource> files_on_node(NodeSessions& sessions, std::string workspace, std::string node,
                                          std::string folder, OwnFiles own) {
  return std::make_shared<OnNode>(sessions, std::move(workspace), std::move(node), std::move(folder),
                                  std::move(own));
}

}  // namespace slipway::api
