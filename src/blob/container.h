#pragma once
// One container of Azure Blob Storage, or of what is compatible with it (Azurite): list, download, upload,
// delete.
//
// Every request is signed with the account's key, or carries the SAS of the container's address. What fails
// temporarily (no connection, 429, 5xx) is tried four times within about five seconds. Content is checked
// both ways by its MD5 where the store knows it. Errors name the container and never hold a key or a SAS.
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "blob/xml.h"

namespace slipway::blob {

constexpr std::uint64_t single_put_max = 64ull << 20;  // larger files are sent in blocks
constexpr std::uint64_t block_size = 8ull << 20;       // and more for files over 390 GiB

class BlobContainer {  // not thread-safe: each thread takes another()
 public:
  // https://lab.blob.core.windows.net/data, http://127.0.0.1:10000/devstoreaccount1/data; `key` is base64 and
  // may be empty when the address ends with a SAS (?sv=…&sig=…).
  static Result<BlobContainer> open(const std::string& url, const std::string& key);
  BlobContainer(BlobContainer&&) noexcept;
  BlobContainer& operator=(BlobContainer&&) noexcept;
  ~BlobContainer();
  BlobContainer another() const;  // the same, with a connection of its own

  const std::string& name() const;  // its address without secrets

  // Every blob, in the store's order. Error `not_found` when there is no container.
  Result<std::vector<BlobInfo>> list();
  Result<void> create();  // does nothing when it is there
  // Into an open file, from its beginning. The listed size says how long it may take; the answer is what was
  // written.
  Result<BlobInfo> download(const BlobInfo& listed, int file);
  // All of an open file, as a block blob.
  Result<BlobInfo> upload(const std::string& blob, int file);
  // Only while it has this ETag; false when it is another by now, or gone.
  Result<bool> remove(const std::string& blob, const std::string& etag);

 private:
  struct Impl;
  explicit BlobContainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Of an open file, from its beginning, as base64.
Result<std::string> md5_of_file(int file);

}  // namespace slipway::blob
