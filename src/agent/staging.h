#pragma once
// Lays out the code of a job as a process's working folder.
//
// A process may do what it likes in its folder; the stored code must not change. So files are reflinked where
// the file system can (milliseconds, whatever their size) and copied elsewhere, never linked. A manifest
// comes from outside: it is checked, and no path of it is ever followed through a link.
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/blob_cache.h"
#include "base/file.h"
#include "base/result.h"
#include "domain/snapshot.h"

namespace slipway::agent {

// Hands over the content with this hash piece by piece; stops when `take` says false.
using FetchBlob =
    std::function<Result<void>(const std::string& hash, const std::function<bool(std::string_view)>& take)>;

// Contents by their SHA-256, at <folder>/ab/<hash>.
class Blobs {
 public:
  // Without `fetch` everything is there: the folder is the service's own. With it, what is missing is fetched
  // once, checked against its hash, and kept.
  Blobs(std::string folder, FetchBlob fetch) : folder_(std::move(folder)), fetch_(std::move(fetch)) {}
  Result<Fd> open(const std::string& hash);
  Result<Snapshot> manifest(const std::string& hash);

  // Removes fetched contents as trim_cache() says, but none that these manifests name. The folder of the
  // service is left alone.
  Trimmed trim(const std::set<std::string>& manifests, const CacheLimits& limits, TimePoint now);
  const std::string& folder() const { return folder_; }

 private:
  std::string path_of(const std::string& hash) const;
  Result<void> bring(const std::string& hash, const std::string& path);
  std::string folder_;
  FetchBlob fetch_;
};

// `folder` and its parents are made. What an earlier, interrupted try left there is replaced.
Result<void> lay_out(const Snapshot& snapshot, Blobs& blobs, const std::string& folder);

// Each is there whole, in its old or its new form, whenever somebody looks. Without any no folder is made.
Result<void> write_files(const std::string& folder,
                         const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace slipway::agent
