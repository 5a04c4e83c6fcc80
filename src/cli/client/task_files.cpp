#include "cli/client/task_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file.h"

namespace slipway::cli {
namespace fs = std::filesystem;
namespace {

timespec as_timespec(TimePoint time) {
  const std::int64_t micros = time.time_since_epoch().count();
  return {micros / 1'000'000, micros % 1'000'000 * 1'000};
}

bool is_there(const std::string& path, const TaskFile& file) {
  struct stat status {};
  const timespec time = as_timespec(file.modified_at);
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<std::uint64_t>(status.st_size) == file.size && status.st_mtim.tv_sec == time.tv_sec &&
         status.st_mtim.tv_nsec / 1'000 == time.tv_nsec / 1'000;
}

std::vector<std::string> names_of(const std::string& path) {
  std::vector<std::string> names;
  for (const fs::path& name : fs::path(path))
    if (!name.empty() && name != "." && name != "/") names.push_back(name.string());
  return names;
}

Outcome<void> make_parent(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return refuse("cannot make the folder of " + path, error.message(), "");
  return {};
}

}  // namespace

bool is_file_pattern(std::string_view path) { return path.find_first_of("*?[") != std::string_view::npos; }

std::string TaskFiles::target(const std::string& what, const std::string& path) const {
  std::vector<std::string> parts{"jobs", job_, "tasks", task_, "files"};
  if (!what.empty()) parts.push_back(what);
  return with_query(resource(parts),
                    {{"path", path}, {"attempt", attempt_ ? std::to_string(*attempt_) : std::string()}});
}

// `names` from `depth` on are still to be matched; where none are left, everything below is meant.
Outcome<void> TaskFiles::visit(const std::string& folder, const std::vector<std::string>& names,
                               std::size_t depth, bool recursive, std::vector<TaskFile>& found) {
  std::vector<std::string> folders;
  const bool takes_all = depth >= names.size();
  const bool is_last = depth + 1 == names.size();
  const Outcome<void> listed = service_.pages(list_target(folder), [&](const std::vector<Value>& items) {
    for (const Value& item : items) {
      const std::string path = item.text_at("path");
      const std::string name = path.substr(path.rfind('/') + 1);
      if (name == "." || name == "..") continue;
      if (!takes_all && ::fnmatch(names[depth].c_str(), name.c_str(), 0) != 0) continue;
      const std::string kind = item.text_at("kind");
      if (kind == "file" && (takes_all || is_last))
        found.push_back({path, item.count_at("size"), item.time_at("modified_at").value_or(TimePoint{})});
      if (kind == "folder" && (!(takes_all || is_last) || recursive)) folders.push_back(path);
    }
    return true;
  });
  if (!listed) return listed;
  for (const std::string& below : folders)
    if (Outcome<void> done = visit(below, names, takes_all ? depth : depth + 1, recursive, found); !done)
      return done;
  return {};
}

Outcome<std::vector<TaskFile>> TaskFiles::find(const std::string& pattern, bool recursive) {
  const std::vector<std::string> names = names_of(pattern);
  // The folders before the first pattern are not listed.
  std::string folder;
  std::size_t depth = 0;
  for (; depth < names.size() && !is_file_pattern(names[depth]); ++depth)
    folder += (folder.empty() ? "" : "/") + names[depth];
  std::vector<TaskFile> found;
  if (const Outcome<void> done = visit(folder, names, depth, recursive, found); !done) return give_up(done);
  return found;
}

Outcome<void> TaskFiles::copy(const std::string& path, int fd, const std::string& name) {
  Result<void> written;
  net::Client::Options options;
  options.on_piece = [&](std::string_view piece) {
    return (written = write_all(fd, piece, name)).has_value();
  };
  const Outcome<net::Response> answer = service_.request("GET", content_target(path), options);
  if (!written) return give_up(written);
  if (!answer) return give_up(answer);
  return {};
}

Outcome<void> TaskFiles::fetch(const TaskFile& file, const std::string& to,
                               const std::function<void(std::uint64_t)>& progress) {
  if (is_there(to, file)) {
    progress(file.size);
    return {};
  }
  if (const Outcome<void> made = make_parent(to); !made) return made;
  // By its name, what is there is the beginning of this very file.
  const std::string beside =
      fmt::format("{}.{}-{}.part", to, file.size, file.modified_at.time_since_epoch().count());
  Fd part(::open(beside.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!part) return give_up(to_failure(system_error("cannot create " + beside, errno)));
  struct stat status {};
  const std::uint64_t have =
      ::fstat(part.get(), &status) == 0 ? std::min(file.size, static_cast<std::uint64_t>(status.st_size)) : 0;
  progress(have);
  if (have < file.size) {
    Result<void> written;
    net::Client::Options options;
    // Of one that grows, as much as was listed.
    options.headers = {{"Range", fmt::format("bytes={}-{}", have, file.size - 1)}};
    options.on_piece = [&](std::string_view piece) {
      progress(piece.size());
      return (written = write_all(part.get(), piece, beside)).has_value();
    };
    const Outcome<net::Response> answer = service_.request("GET", content_target(file.path), options);
    if (!written) return give_up(written);
    if (!answer) return give_up(answer);
  }
  const timespec times[2] = {as_timespec(file.modified_at), as_timespec(file.modified_at)};
  if (::fstat(part.get(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) != file.size ||
      ::futimens(part.get(), times) != 0 || ::rename(beside.c_str(), to.c_str()) != 0) {
    ::unlink(beside.c_str());
    return refuse(fmt::format("{} was not fetched whole", file.path), "it changed meanwhile",
                  "fetch it again; what is whole is not fetched a second time");
  }
  return {};
}

}  // namespace slipway::cli
