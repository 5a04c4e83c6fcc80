#pragma once
// Files below one folder of data, by paths that come from outside: nothing leads out of the folder, neither
// ".." nor any link. Everything here waits for disks: for the worker.
#include <cstdint>
#include <string>
#include <vector>

#include <functional>
#include "base/clock.h"

#include "base/file.h"
#include "base/result.h"

namespace slipway::api {

struct StoredFile {
  std::string name;
  std::string kind;  // file, folder, link, other
  std::uint64_t size = 0;
  TimePoint modified_at{};
};

class StoredFiles {
 public:
  // `check` is asked each time about where the folder is then, all links followed.
  using Check = std::function<Result<void>(const std::string& real)>;
  explicit StoredFiles(std::string folder, Check check = {})
      : folder_(std::move(folder)), check_(std::move(check)) {}

  bool is_exposed() const { return static_cast<bool>(check_); }  // a folder that is not the service's own

  struct Page {
    std::vector<StoredFile> files;  // by name
    bool more = false;
  };
  // At most `limit` files of a folder, those after the name `after`.
  Result<Page> list(const std::string& path, const std::string& after, std::size_t limit) const;
  struct Opened {
    Fd file;
    std::uint64_t size = 0;
  };
  Result<Opened> open(const std::string& path) const;
  Result<void> make_folder(const std::string& path) const;  // with those above it; one that is there stays
  // Puts the file `received`, which is used up, at `path`; without one, an empty file. Whoever looks sees the
  // old content or the new one, and after a crash there is one of them.
  Result<StoredFile> put(const std::string& path, const std::string& received) const;
  // A file, or a folder with all that is in it; a link goes without what it leads to.
  Result<void> remove(const std::string& path) const;

 private:
  Result<Fd> root() const;
  std::string folder_;
  Check check_;
};

}  // namespace slipway::api
