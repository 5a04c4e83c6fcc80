#pragma once
// Lists a folder of any size page by page. A page costs what it shows: a folder is never read as a whole.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"

namespace slipway {

struct FolderEntry {
  std::string name;
  std::string_view kind;   // file, folder, link, other
  std::uint64_t size = 0;  // of a file
  TimePoint modified_at{};
};

struct FolderPage {
  std::vector<FolderEntry> entries;  // by name
  std::optional<std::string> next;   // pass it as `after` for what follows; nothing: that was all
};

// In a folder of more entries only those of one page are by name, and pages follow as the file system has
// them. One that grows past it between two pages begins anew.
constexpr std::size_t listed_by_name_max = 10'000;

// `after`: `next` of the page before, or empty. What is removed meanwhile is left out.
Result<FolderPage> list_folder(Fd folder, const std::string& after, std::size_t limit);

}  // namespace slipway
