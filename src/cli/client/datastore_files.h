#pragma once
// Files of datastores: sent, fetched, listed, one by one or by folders.
#include <functional>
#include <string>

#include "cli/client/service.h"

namespace slipway::cli {

struct StoredFile {
  std::string path;  // from the datastore's folder
  bool is_folder = false;
  std::uint64_t size = 0;
  std::string modified_at;
};

class DatastoreFiles {
 public:
  DatastoreFiles(Service& service, std::string name) : service_(service), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Outcome<void> make_folder(const std::string& path);
  Outcome<void> remove(const std::string& path);
  // One folder, in the service's order, until `each` gives false.
  Outcome<void> list(const std::string& folder, const std::function<bool(const StoredFile&)>& each);
  // Every file below a folder, however deep.
  Outcome<void> walk(const std::string& folder, const std::function<Outcome<void>(const StoredFile&)>& each);
  Outcome<void> send(const std::string& file, const std::string& path);
  Outcome<void> fetch(const std::string& path, const std::string& file);

  // Decides about one file by its path below the folder; may be empty, which takes all.
  using Choice = std::function<bool(const std::string& below)>;
  struct Moved {
    std::vector<std::string> paths;
    std::uint64_t bytes = 0;
  };
  Outcome<Moved> send_folder(const std::string& folder, const std::string& to, const Choice& choice);
  Outcome<Moved> fetch_folder(const std::string& from, const std::string& folder, const Choice& choice);

 private:
  std::string target(const char* what, const std::string& path) const;
  Service& service_;
  std::string name_;
};

// a/b from a and b, without doubling a slash.
std::string joined_path(const std::string& folder, const std::string& name);
std::string last_part(const std::string& path);

}  // namespace slipway::cli
