#include "api/blobs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "wire/snapshot.h"

namespace slipway::api {
namespace fs = std::filesystem;

Result<void> BlobStore::prepare() {
  std::error_code ignored;
  fs::remove_all(spool_folder(), ignored);  // partial uploads of an earlier run
  return make_folders(spool_folder(), 0700);
}

std::string BlobStore::path(const std::string& hash) const {
  return fmt::format("{}/blobs/{}/{}", data_, hash.substr(0, 2), hash);
}

bool BlobStore::has(const std::string& hash) const { return ::access(path(hash).c_str(), R_OK) == 0; }

Result<void> BlobStore::adopt(const std::string& file, const std::string& hash) const {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open the content just received", errno));
  Sha256 sum;
  std::string buffer(1 << 20, '\0');
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("cannot read the content just received", errno));
    if (got == 0) break;
    sum.add(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
  }
  if (sum.finish() != hash)
    return fail(ErrorCode::invalid, fmt::format("the content sent does not have the SHA-256 {}", hash),
                "send it again; it changed or was damaged on the way");
  const std::string target = path(hash);
  const std::string folder = fs::path(target).parent_path().string();
  if (auto made = make_folders(folder, 0755); !made) return made;
  // Read-only for everybody: processes get copies, and none of them may change the original.
  if (::fchmod(fd.get(), 0444) != 0 || ::fsync(fd.get()) != 0 || ::rename(file.c_str(), target.c_str()) != 0)
    return fail(system_error("cannot store " + hash, errno));
  const Fd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return fail(system_error("cannot sync " + folder, errno));
  return {};
}

Result<void> BlobStore::check_source(const std::string& manifest) const {
  struct stat status {};
  if (::stat(path(manifest).c_str(), &status) != 0)
    return fail(ErrorCode::invalid, fmt::format("the snapshot {} is not stored here", manifest),
                "send the folder first; slipway job submit does it");
  if (static_cast<Bytes>(status.st_size) > manifest_size_max)
    return fail(ErrorCode::invalid, fmt::format("{} is no snapshot: it has {}, and a manifest {} at most",
                                                manifest, format_bytes(static_cast<Bytes>(status.st_size)),
                                                format_bytes(manifest_size_max)));
  auto text = read_file(path(manifest));
  if (!text) return fail(text.error());
  auto snapshot = wire::parse_snapshot(*text);
  if (!snapshot) return fail(snapshot.error());
  if (auto valid = validate(*snapshot); !valid) return valid;
  for (const SnapshotEntry& entry : snapshot->entries) {
    if (entry.kind != SnapshotKind::file) continue;
    if (::stat(path(entry.hash).c_str(), &status) != 0)
      return fail(ErrorCode::invalid,
                  fmt::format("the content of {} ({}) is not stored here", entry.path, entry.hash),
                  "send it first: PUT /v1/blobs/" + entry.hash);
    // What is laid out is bounded by what a manifest says, so that has to be true.
    if (static_cast<Bytes>(status.st_size) != entry.size)
      return fail(ErrorCode::invalid,
                  fmt::format("the content of {} has {} bytes, not the {} of its manifest", entry.path,
                              status.st_size, entry.size));
  }
  return {};
}

void BlobStore::remove_unused(const std::vector<std::string>& manifests) const {
  std::set<std::string> used(manifests.begin(), manifests.end());
  for (const std::string& manifest : manifests) {
    auto text = read_file(path(manifest));
    if (!text) continue;
    auto snapshot = wire::parse_snapshot(*text);
    if (!snapshot)
      return log::error("blobs.manifest", {{"manifest", manifest}, {"why", snapshot.error().what}});
    for (const SnapshotEntry& entry : snapshot->entries) used.insert(entry.hash);
  }
  std::error_code error;
  for (fs::recursive_directory_iterator at(data_ + "/blobs", error), end; at != end; at.increment(error)) {
    if (error) return log::error("blobs.walk", {{"why", error.message()}});
    const std::string name = at->path().filename().string();
    if (!is_sha256_hex(name) || used.contains(name)) continue;
    struct stat status {};
    if (::stat(at->path().c_str(), &status) == 0 && status.st_ctim.tv_sec + 3600 < ::time(nullptr))
      ::unlink(at->path().c_str());
  }
}

}  // namespace slipway::api
