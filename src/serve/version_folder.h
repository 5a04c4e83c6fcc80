#pragma once
// Version folders on disk: base_path/<number>/, each with one model file.
//
// A folder counts as a version when a model file lies in it, and is served when that file passes its checks:
// a model.slipway carries checksums over all of it, so one that is still being written is refused, and tried
// again as soon as it changes. Until then nobody notices.
#include <map>
#include <string>

#include "serve/failure.h"
#include "serve/model.h"

namespace slipway::serve {

// What changes when a file is written anew or replaced; empty: there is none.
using FileStamp = std::string;

struct VersionFolder {
  std::string path;
  FileStamp stamp;
};

struct BaseFolder {
  bool exists = false;
  std::map<std::int64_t, VersionFolder> versions;  // complete enough to try
  std::vector<std::string> incomplete;             // numbered folders without a model file
};

BaseFolder list_versions(const std::string& base_path);
// Of whatever format the folder holds; a format that this server cannot run says so.
Answer<std::shared_ptr<const Model>> load_version(const std::string& folder);

}  // namespace slipway::serve
