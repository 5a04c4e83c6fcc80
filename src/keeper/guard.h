#pragma once
// A second, tiny process that watches the keeper while it runs work under a lease (domain/lease.h).
//
// A keeper that was stopped cannot end what runs when the lease does. The guard kills it then; the kernel
// kills its processes with it (PR_SET_PDEATHSIG), and the next keeper, which the guard becomes, ends the rest
// of their trees before it does anything else. The guard also replaces a keeper that was killed.
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"

namespace slipway::keeper {

class Guard {
 public:
  // `restart`: the program and arguments of the next keeper; empty: there is none.
  explicit Guard(std::vector<std::string> restart) : restart_(std::move(restart)) {}
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // The keeper is killed if it still has this deadline when it passes; boot_time(). The process is started
  // with the first deadline, and again should it have died. Moving a deadline costs one store to memory.
  void set_deadline(std::optional<Duration> deadline);
  void reaped(pid_t pid) {
    if (pid == pid_) pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  struct Shared;
  void start();
  [[noreturn]] void watch(int keeper);

  std::vector<std::string> restart_;
  Shared* shared_ = nullptr;
  Fd wake_;
  pid_t pid_ = 0;
};

}  // namespace slipway::keeper
