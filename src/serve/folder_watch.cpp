#include "serve/folder_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace slipway::serve {

FolderWatch::FolderWatch()
    : changes_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)), wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SLIPWAY_CHECK(static_cast<bool>(wakes_));
}

void FolderWatch::add(const std::string& folder) const {
  if (changes_)
    ::inotify_add_watch(changes_.get(), folder.c_str(),
                        IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_ONLYDIR);
}

void FolderWatch::wake() const {
  const std::uint64_t one = 1;
  // Only a counter at its limit refuses it, and then the waiter is woken anyway.
  [[maybe_unused]] const ssize_t put = ::write(wakes_.get(), &one, sizeof one);
}

bool FolderWatch::wait(Duration timeout) const {
  pollfd fds[2] = {{wakes_.get(), POLLIN, 0}, {changes_.get(), POLLIN, 0}};
  const bool forever = timeout.count() < 0;
  // Rounded up: a time that has not quite come would be waited for in a spin.
  const auto milliseconds = std::min<std::int64_t>((timeout.count() + 999) / 1000, 3'600'000);
  if (::poll(fds, changes_ ? 2 : 1, forever ? -1 : static_cast<int>(milliseconds)) <= 0) return false;
  char discarded[4096];
  for (const pollfd& fd : fds)
    while (fd.fd >= 0 && ::read(fd.fd, discarded, sizeof discarded) > 0) {
    }
  return true;
}

}  // namespace slipway::serve
