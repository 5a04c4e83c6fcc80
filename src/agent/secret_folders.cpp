#include "agent/secret_folders.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"

namespace slipway::agent {
namespace {

Result<void> give(const Fd& file, const std::string& name, const std::optional<RunAs>& owner) {
  if (!owner || ::geteuid() != 0) return {};
  if (::fchown(file.get(), owner->uid, owner->gid) != 0)
    return fail(system_error("cannot give " + name, errno));
  return {};
}

Result<void> write_private(const std::string& path, const std::string& content,
                           const std::optional<RunAs>& owner) {
  ::unlink(path.c_str());  // of another process of the attempt: the same
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail(system_error("cannot make " + path, errno));
  if (auto written = write_all(file.get(), content, path); !written) return written;
  return give(file, path, owner);
}

}  // namespace

std::string SecretFolders::note_of(const WorkKey& key) const { return notes_ + "/" + to_string(key); }

Result<void> SecretFolders::write(const WorkKey& key, const std::string& folder, const Files& files,
                                  const std::optional<RunAs>& owner) const {
  if (files.empty()) return {};
  if (auto made = make_folders(notes_, 0700); !made) return made;
  if (auto noted = write_file_durably(note_of(key), folder, 0600); !noted) return noted;
  if (auto made = make_folders(folder.substr(0, folder.rfind('/'))); !made) return made;
  if (auto made = make_folders(folder, 0700); !made) return made;
  for (const auto& [name, content] : files)
    if (auto written = write_private(folder + "/" + name, content, owner); !written) return written;
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return fail(system_error("cannot enter " + folder, errno));
  return give(opened, folder, owner);
}

void SecretFolders::remove(const WorkKey& key) const { remove_noted(note_of(key)); }

void SecretFolders::remove_others(const std::set<WorkKey>& live) const {
  std::set<std::string> kept;
  for (const WorkKey& key : live) kept.insert(to_string(key));
  std::error_code error;
  for (const auto& note : std::filesystem::directory_iterator(notes_, error))
    if (!kept.contains(note.path().filename().string())) remove_noted(note.path().string());
}

void SecretFolders::remove_noted(const std::string& note) const {
  const Result<std::string> folder = read_file(note);
  if (!folder) return;  // there is none
  std::error_code error;
  if (folder->starts_with('/')) std::filesystem::remove_all(*folder, error);
  if (error) return log::error("node.secrets_not_removed", {{"folder", *folder}, {"why", error.message()}});
  ::unlink(note.c_str());
}

}  // namespace slipway::agent
