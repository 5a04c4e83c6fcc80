#include "node/footprint.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace slipway::node {
namespace {

int release_segments(dl_phdr_info* info, std::size_t, void*) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    // Writable ones hold data and relocated pointers (also those made read-only later): these must stay.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (info->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const std::uintptr_t end = (info->dlpi_addr + segment.p_vaddr + segment.p_memsz + page - 1) & ~(page - 1);
    ::madvise(reinterpret_cast<void*>(begin), end - begin,
              MADV_DONTNEED);  // only advice: a failure costs nothing
  }
  return 0;
}

}  // namespace

void release_unused_memory() {
  ::malloc_trim(0);
  ::dl_iterate_phdr(release_segments, nullptr);
}

}  // namespace slipway::node
