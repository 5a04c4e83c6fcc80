#include "container/execute.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/search_path.h"

namespace slipway::container {
namespace {

bool is_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

Error explain(const std::string& command, const std::vector<std::string>& tried, const std::string& where,
              const std::string& last, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    const auto present = std::find_if(tried.begin(), tried.end(), is_file);
    if (present != tried.end())
      return {ErrorCode::not_found,
              fmt::format("cannot start {} {}: the file is there, the interpreter or "
                          "loader that it names is not",
                          *present, where),
              "add that program or library to the root file system"};
    return {ErrorCode::not_found,
            fmt::format("there is no command {} {}: tried {}", command, where, fmt::join(tried, ", ")),
            "give its path inside, or set PATH in the task's environment"};
  }
  Error failure{ErrorCode::denied, fmt::format("cannot start {} {}: {}", last, where, std::strerror(error)),
                ""};
  if (error == EACCES) failure.hint = "it has to be an executable file: chmod +x";
  if (error == ENOEXEC)
    failure.hint = "it is no program for this machine; a script needs a first line such as #!/bin/sh";
  return failure;
}

}  // namespace

Error execute(const std::vector<std::string>& command, const Environment& environment,
              const std::string& where) {
  const auto path = environment.find("PATH");
  const std::vector<std::string> tried = files_to_try(
      command.front(), path == environment.end() ? default_search_path : std::string_view(path->second));
  int error = ENOENT;
  std::string last = command.front();
  for (const std::string& file : tried) {  // as execvp: a forbidden file is remembered, a missing one is not
    const int failed = slipway::execute(file, command, environment);
    if (failed == ENOENT || failed == ENOTDIR) continue;
    error = failed;
    last = file;
    if (error != EACCES) break;
  }
  return explain(command.front(), tried, where, last, error);
}

}  // namespace slipway::container
