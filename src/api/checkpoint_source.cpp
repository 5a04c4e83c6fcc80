#include "api/checkpoint_source.h"

#include <algorithm>
#include <optional>

namespace slipway::api {
namespace {

constexpr std::string_view folder = "checkpoint";
constexpr std::size_t looked_at = 1'000;  // of its files, to find when it changed

// The path below the folder; nothing where it is not in it.
std::optional<std::string> path_inside(std::string_view path) {
  if (path == folder) return "";
  if (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/')
    return std::string(path.substr(folder.size() + 1));
  return std::nullopt;
}

class WithCheckpoints final : public FileSource {
 public:
  WithCheckpoints(std::shared_ptr<FileSource> attempt, std::shared_ptr<FileSource> checkpoints)
      : attempt_(std::move(attempt)), checkpoints_(std::move(checkpoints)) {}

  void read(const std::string& path, std::uint64_t offset, std::size_t length, Bytes done) override {
    const auto inside = path_inside(path);
    of(inside).read(inside.value_or(path), offset, length, std::move(done));
  }
  void size(const std::string& path, std::function<void(Result<std::uint64_t>)> done) override {
    const auto inside = path_inside(path);
    of(inside).size(inside.value_or(path), std::move(done));
  }
  std::shared_ptr<void> watch(const std::string& path, std::uint64_t offset,
                              std::function<void()> changed) override {
    const auto inside = path_inside(path);
    return of(inside).watch(inside.value_or(path), offset, std::move(changed));
  }
  Result<Fd> open_here(const std::string& path) override {
    const auto inside = path_inside(path);
    return of(inside).open_here(inside.value_or(path));
  }
  void list(const std::string& path, const std::string& after, std::size_t limit, Page done) override {
    if (const auto inside = path_inside(path))
      return checkpoints_->list(*inside, after, limit, [done = std::move(done)](Result<FilePage> page) {
        if (page)
          for (FileItem& item : page->items) item.path = std::string(folder) + "/" + item.path;
        done(std::move(page));
      });
    // It is shown on the first page.
    if ((!path.empty() && path != ".") || !after.empty())
      return attempt_->list(path, after, limit, std::move(done));
    attempt_->list(
        path, after, limit, [checkpoints = checkpoints_, done = std::move(done)](Result<FilePage> page) {
          if (!page) return done(std::move(page));
          checkpoints->list(
              "", "", looked_at, [own = std::move(*page), done](Result<FilePage> saved) mutable {
                std::erase_if(own.items, [](const FileItem& item) { return item.path == folder; });
                if (saved && !saved->items.empty()) {
                  FileItem item{std::string(folder), "folder"};
                  for (const FileItem& one : saved->items)
                    item.modified_at = std::max(item.modified_at, one.modified_at);
                  own.items.insert(
                      std::upper_bound(own.items.begin(), own.items.end(), item,
                                       [](const FileItem& a, const FileItem& b) { return a.path < b.path; }),
                      std::move(item));
                }
                done(std::move(own));
              });
        });
  }

 private:
  FileSource& of(const std::optional<std::string>& inside) { return inside ? *checkpoints_ : *attempt_; }

  std::shared_ptr<FileSource> attempt_, checkpoints_;
};

}  // namespace

std::shared_ptr<FileSource> with_checkpoints(std::shared_ptr<FileSource> attempt,
                                             std::shared_ptr<FileSource> checkpoints) {
  return std::make_shared<WithCheckpoints>(std::move(attempt), std::move(checkpoints));
}

}  // namespace slipway::api
