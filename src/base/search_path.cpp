#include "base/search_path.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

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

std::string find_program(const std::string& command) {
  const char* path = std::getenv("PATH");
  for (const std::string& file : files_to_try(command, path == nullptr ? default_search_path : path))
    if (::access(file.c_str(), X_OK) == 0) return file;
  return {};
}

}  // namespace slipway
