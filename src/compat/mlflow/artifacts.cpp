#include "compat/mlflow/artifacts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/file.h"
#include "track/limits.h"

namespace slipway::mlflow {
namespace {

constexpr std::size_t page_files = 1'000;
constexpr std::size_t listed_files_max = 100'000;

}  // namespace

Artifacts::Artifacts(const std::string& data, const std::string& workspace)
    : folder_(data + "/artifacts/" + workspace), files_(folder_) {}

Result<void> Artifacts::put(const std::string& path, const std::string& received) const {
  auto safe = track::safe_artifact_path(path);
  if (!safe) return fail(safe.error());
  if (safe->empty()) return fail(ErrorCode::invalid, "an artifact needs a path", "put it behind /artifacts/");
  if (auto made = make_folders(folder_, 0700); !made) return made;
  return files_.put(*safe, received).map([](const api::StoredFile&) {});
}

Result<api::StoredFiles::Opened> Artifacts::open(const std::string& path) const {
  auto safe = track::safe_artifact_path(path);
  if (!safe) return fail(safe.error());
  auto opened = files_.open(*safe);
  if (opened || opened.error().code != ErrorCode::not_found) return opened;
  return fail(ErrorCode::not_found, fmt::format("there is no artifact '{}'", safe->substr(0, 300)));
}

Result<void> Artifacts::remove(const std::string& path) const {
  auto safe = track::safe_artifact_path(path);
  if (!safe) return fail(safe.error());
  if (safe->find('/') == std::string::npos)
    return fail(ErrorCode::invalid, fmt::format("'{}' is not an artifact of a run", safe->substr(0, 300)),
                "name one: EXPERIMENT/RUN/artifacts/PATH");
  auto gone = files_.remove(*safe);
  if (gone || gone.error().code != ErrorCode::not_found) return gone;
  return {};  // a repeated request
}

Result<Artifacts::Listed> Artifacts::list(const std::string& path) const {
  auto safe = track::safe_artifact_path(path);
  if (!safe) return fail(safe.error());
  Listed listed{{}, *safe};
  struct stat about {};
  if (::stat(folder_.c_str(), &about) != 0) return listed;  // nothing was ever put there
  std::string after;
  while (listed.files.size() < listed_files_max) {
    auto page = files_.list(*safe, after, page_files);
    // A file, or nothing at all, is a folder without files to MLflow's clients.
    if (!page && (page.error().code == ErrorCode::not_found || page.error().code == ErrorCode::invalid))
      return listed;
    if (!page) return fail(page.error());
    for (api::StoredFile& file : page->files) listed.files.push_back(std::move(file));
    if (!page->more || listed.files.empty()) return listed;
    after = listed.files.back().name;
  }
  return listed;
}

Result<std::string> path_of_uri(const std::string& uri) {
  constexpr std::string_view scheme = "mlflow-artifacts:/";
  if (uri.starts_with(scheme)) {
    const std::size_t begin = uri.find_first_not_of('/', scheme.size());
    return begin == std::string::npos ? std::string() : uri.substr(begin);
  }
  return fail(ErrorCode::invalid, fmt::format("the artifacts lie at {}, not here", uri.substr(0, 300)),
              "ask there for them");
}

}  // namespace slipway::mlflow
