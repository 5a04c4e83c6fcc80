#pragma once
// A folder for temporary files of one attempt on one node. Open MPI's daemons fail now and then when several
// make and remove folders of the same name under /tmp, as those of nodes on one machine and of other jobs do.
#include <string>
#include <utility>

#include "base/result.h"
#include "gang_exec/environment.h"

namespace slipway::gang_exec {

class ScratchFolder {
 public:
  // Below TMPDIR, or /tmp.
  static Result<ScratchFolder> make(const Environment& variables);
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();  // removes it with all that is in it

  const std::string& path() const { return path_; }
  // A program in it that may stand in the place of ssh: its path.
  Result<std::string> add_start_script(const std::string& name) const;
  // Leaves that to a helper, once this process has ended, whatever program it has become by then.
  Result<void> outlive_this_process();

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace slipway::gang_exec
