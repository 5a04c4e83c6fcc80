#include "base/resident.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstring>

namespace slipway {

void release_startup_pages() {
  std::FILE* maps = std::fopen("/proc/self/smaps", "re");
  if (!maps) return;
  char line[512];
  unsigned long begin = 0, end = 0;
  bool candidate = false;
  while (std::fgets(line, sizeof line, maps)) {
    unsigned long from = 0, to = 0, anonymous = 0;
    char rights[8] = {}, path[256] = {};
    if (std::sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &from, &to, rights, path) >= 3) {
      begin = from;
      end = to;
      candidate = std::strchr(rights, 'w') == nullptr && path[0] == '/';
    } else if (candidate && std::sscanf(line, "Anonymous: %lu kB", &anonymous) == 1 && anonymous == 0) {
      // Nothing in it was ever written (relocated pages were), so the file still has all of it.
      ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
  }
  std::fclose(maps);
}

}  // namespace slipway
