#pragma once
// The folder's side of a sync. Every path is opened below the folder: neither ".." nor a link leads out of
// it.
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "blob/plan.h"

namespace slipway::blob {

class Folder {  // may be used by several threads at once
 public:
  // Error `not_found` when there is none.
  static Result<Folder> open(const std::string& path);

  std::uint64_t identity() const;  // another folder at the same path has another
  // Regular files, also in folders below. Links and devices are put aside.
  Result<std::vector<LocalFile>> list(std::vector<Skipped>& not_files) const;
  Result<void> flush() const;  // what was written is on disk
  // What a sync that was killed left behind.
  void remove_partial_files() const;

  Result<Fd> open_file(const std::string& name) const;
  Result<LocalFile> look(const std::string& name) const;
  // Removes the file, and the folders above it that are empty then. Nothing when it is gone.
  Result<void> remove(const std::string& name) const;

  // A file that appears under its name when it is whole.
  class NewFile {
   public:
    NewFile(NewFile&&) = default;
    NewFile& operator=(NewFile&&) = delete;
    ~NewFile();  // without finish(): there was nothing
    int fd() const { return file_.get(); }
    Result<LocalFile> finish();

   private:
    friend class Folder;
    NewFile() = default;
    Fd parent_;
    Fd file_;
    std::string name_;     // below the folder
    std::string partial_;  // in the parent
    bool finished_ = false;
  };
  Result<NewFile> create(const std::string& name) const;

 private:
  explicit Folder(Fd root) : root_(std::move(root)) {}
  Result<Fd> make_parent(const std::string& name) const;
  template <class Visit>
  Result<void> walk(const Visit& visit) const;
  Fd root_;
};

}  // namespace slipway::blob
