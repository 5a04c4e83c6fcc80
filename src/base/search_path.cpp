#include "base/search_path.h"

#include <algorithm>

namespace slipway {

std::vector<std::string> files_to_try(const std::string& command, std::string_view path) {
  if (command.find('/') != std::string::npos) return {command};
  std::vector<std::string> files;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string_view folder = path.substr(begin, end - begin);
    std::string& file = files.emplace_back(folder.empty() ? "." : folder);
    file.append("/").append(command);
    begin = end + 1;
  }
  return files;
}

}  // namespace slipway
