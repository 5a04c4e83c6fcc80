#pragma once
// Code that travels with jobs: contents stored once by their SHA-256, under <data>/blobs/ab/<hash>, never
// changed.
#include <string>
#include <vector>

#include "base/result.h"
#include "domain/snapshot.h"

namespace slipway::api {

class BlobStore {
 public:
  explicit BlobStore(std::string data) : data_(std::move(data)) {}
  Result<void> prepare();

  std::string spool_folder() const { return data_ + "/blobs/incoming"; }
  std::string path(const std::string& hash) const;
  bool has(const std::string& hash) const;
  // Checks that the file's content has that hash, syncs it and moves it into place. Slow: for the worker.
  Result<void> adopt(const std::string& file, const std::string& hash) const;
  // The manifest is there, well formed, and everything it names is stored.
  Result<void> check_source(const std::string& manifest) const;
  // Removes what none of these manifests needs and nobody sent within the last hour. Slow: for the worker.
  void remove_unused(const std::vector<std::string>& manifests) const;

 private:
  std::string data_;
};

}  // namespace slipway::api
