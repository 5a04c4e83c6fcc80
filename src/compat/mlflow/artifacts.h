#pragma once
// Artifacts as files of the data folder: artifacts/<workspace>/<experiment>/<run>/artifacts/…. Everything
// here waits for disks: for a worker.
#include <string>
#include <vector>

#include "api/stored_files.h"
#include "base/result.h"

namespace slipway::mlflow {

class Artifacts {
 public:
  // `workspace`: whose they are.
  Artifacts(const std::string& data, const std::string& workspace);

  // Paths as they were sent; error `invalid` for one that could lead out.
  Result<void> put(const std::string& path, const std::string& received) const;
  Result<api::StoredFiles::Opened> open(const std::string& path) const;
  Result<void> remove(const std::string& path) const;
  struct Listed {
    std::vector<api::StoredFile> files;  // none where there is no such folder
    std::string path;                    // of the folder, clean
  };
  Result<Listed> list(const std::string& path) const;

 private:
  std::string folder_;
  api::StoredFiles files_;
};

// Where an artifact URI of ours leads: what is behind mlflow-artifacts:/. Error `invalid` for another one.
Result<std::string> path_of_uri(const std::string& uri);

}  // namespace slipway::mlflow
