#include "base/list_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>

namespace slipway {
namespace {

// What a page ends with: a name, or a place in the folder as the file system has it.
constexpr std::string_view by_name = "name:", by_place = "place:";

using Open = std::unique_ptr<DIR, int (*)(DIR*)>;

struct Name {
  std::string text;
  long after = 0;  // where the next one is
};

// The next names, `max` at most.
std::vector<Name> read_names(const Open& folder, std::size_t max) {
  std::vector<Name> names;
  while (names.size() < max) {
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.push_back({std::string(name), static_cast<long>(entry->d_off)});
  }
  return names;
}

std::string_view kind_of(const struct stat& status) {
  return S_ISREG(status.st_mode)   ? "file"
         : S_ISDIR(status.st_mode) ? "folder"
         : S_ISLNK(status.st_mode) ? "link"
                                   : "other";
}

FolderPage page_of(const Open& folder, const std::vector<Name>& names, std::size_t first, std::size_t count) {
  FolderPage page;
  for (std::size_t i = first; i < first + count; ++i) {
    struct stat status {};
    if (::fstatat(::dirfd(folder.get()), names[i].text.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    page.entries.push_back({names[i].text, kind_of(status),
                            S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0,
                            TimePoint(Duration(std::int64_t{status.st_mtim.tv_sec} * 1'000'000 +
                                               status.st_mtim.tv_nsec / 1000))});
  }
  return page;
}

void sort(std::vector<Name>& names) {
  std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.text < b.text; });
}

FolderPage page_by_name(const Open& folder, std::vector<Name> names, std::string_view after,
                        std::size_t limit) {
  sort(names);
  const auto first =
      std::partition_point(names.begin(), names.end(), [&](const Name& name) { return name.text <= after; });
  const std::size_t left = static_cast<std::size_t>(names.end() - first), count = std::min(left, limit);
  const auto at = static_cast<std::size_t>(first - names.begin());
  FolderPage page = page_of(folder, names, at, count);
  if (left > count) page.next = std::string(by_name) + names[at + count - 1].text;
  return page;
}

FolderPage page_by_place(const Open& folder, long place, std::size_t limit) {
  if (place != 0)
    ::seekdir(folder.get(), place);
  else
    ::rewinddir(folder.get());
  std::vector<Name> names = read_names(folder, limit + 1);
  const bool has_more = names.size() > limit;
  if (has_more) names.pop_back();
  const long next = names.empty() ? 0 : names.back().after;
  sort(names);
  FolderPage page = page_of(folder, names, 0, names.size());
  if (has_more) page.next = std::string(by_place) + std::to_string(next);
  return page;
}

}  // namespace

Result<FolderPage> list_folder(Fd fd, const std::string& after, std::size_t limit) {
  const Open folder(::fdopendir(fd.get()), ::closedir);
  if (!folder) return fail(system_error("cannot list the folder", errno));
  fd.release();  // now closed by closedir
  if (after.starts_with(by_place)) {
    long place = 0;
    const char* end = after.data() + after.size();
    const auto [stop, error] = std::from_chars(after.data() + by_place.size(), end, place);
    if (error == std::errc{} && stop == end && place > 0) return page_by_place(folder, place, limit);
  }
  if (!after.empty() && !after.starts_with(by_name))
    return fail(ErrorCode::invalid, "'" + after.substr(0, 50) + "' is not where a page of a list ends",
                "pass what `next` of the page before says");
  std::vector<Name> names = read_names(folder, listed_by_name_max + 1);
  if (names.size() > listed_by_name_max) return page_by_place(folder, 0, limit);
  return page_by_name(folder, std::move(names),
                      after.empty() ? std::string_view() : std::string_view(after).substr(by_name.size()),
                      limit);
}

}  // namespace slipway
