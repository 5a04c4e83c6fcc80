#include "container/execute.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

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

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
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

Environment current_environment() {
  Environment environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (const std::size_t equals = text.find('='); equals != std::string::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> files_to_try(const std::string& command, const Environment& environment) {
  const auto found = environment.find("PATH");
  return slipway::files_to_try(
      command, found != environment.end() ? std::string_view(found->second) : default_search_path);
}

std::string find_program(const std::string& command, const Environment& environment) {
  for (const std::string& file : files_to_try(command, environment))
    if (is_file(file) && ::access(file.c_str(), X_OK) == 0) return file;
  return {};
}

Error execute(const std::vector<std::string>& command, const Environment& environment,
              const std::string& where) {
  std::vector<std::string> variables;
  variables.reserve(environment.size());
  for (const auto& [name, value] : environment) variables.push_back(fmt::format("{}={}", name, value));
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> settings = pointers(variables);
  const std::vector<std::string> tried = files_to_try(command.front(), environment);
  int error = ENOENT;
  std::string last = command.front();
  for (const std::string& file : tried) {  // as execvp: a forbidden file is remembered, a missing one is not
    ::execve(file.c_str(), arguments.data(), settings.data());
    if (errno == ENOENT || errno == ENOTDIR) continue;
    error = errno;
    last = file;
    if (error != EACCES) break;
  }
  return explain(command.front(), tried, where, last, error);
}

}  // namespace slipway::container
