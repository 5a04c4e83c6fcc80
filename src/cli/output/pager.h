#pragma once
// Long output on a terminal goes through a pager, as git's does.
#include <string>

#include "base/subprocess.h"

namespace slipway::cli {

// SLIPWAY_PAGER, else PAGER, else less where it is installed; empty: none is wanted or there.
std::string pager_command();

// While it exists, what is written to standard output goes to the pager; its destructor waits until the user
// has left it. A pager that is left early is no error: the rest is not read by anybody.
class Pager {
 public:
  explicit Pager(const std::string& command);
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;
  ~Pager();
  bool is_open() const { return process_.pid() > 0; }

 private:
  Subprocess process_;
  Fd stdout_before_;
};

}  // namespace slipway::cli
