#pragma once
// A change of credentials may clear the signal that ends a process with its parent, on which the keeper
// counts: it is put back.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace slipway::container {

class ParentDeath {
 public:
  ParentDeath() : parent_(::getppid()) { ::prctl(PR_GET_PDEATHSIG, &signal_); }
  void restore() const {
    if (signal_ == 0) return;
    ::prctl(PR_SET_PDEATHSIG, signal_);
    if (::getppid() != parent_) ::raise(signal_);
  }

 private:
  pid_t parent_;
  int signal_ = 0;
};

}  // namespace slipway::container
