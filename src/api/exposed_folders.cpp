#include "api/exposed_folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/file.h"

namespace slipway::api {
namespace {

namespace fs = std::filesystem;

// What is not there yet stays as it is written.
Result<fs::path> real_path(const std::string& path) {
  std::error_code error;
  fs::path real = fs::weakly_canonical(path, error);
  if (error) return fail(system_error("cannot find out where " + path + " is", error.value()));
  if (!real.has_filename() && real.has_relative_path()) real = real.parent_path();  // a slash at its end
  return real;
}

bool is_within(const fs::path& inner, const fs::path& outer) {
  const auto [end, ignored] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return end == outer.end();
}

}  // namespace

Result<void> ExposedFolders::check(const std::string& folder) const {
  if (roots_.empty())
    return fail(ErrorCode::denied,
                fmt::format("{} cannot be a datastore: this service exposes no folders", folder),
                "start it with slipway up --datastore-root FOLDER, which datastores may then lie in");
  const auto real = real_path(folder);
  if (!real) return fail(real.error());
  const auto data = real_path(data_);
  if (!data) return fail(data.error());
  if (is_within(*real, *data) || is_within(*data, *real))
    return fail(ErrorCode::denied,
                fmt::format("{} cannot be a datastore: the service's data folder, with its tokens and keys, "
                            "would be a part of it",
                            folder),
                "name another folder");
  for (const std::string& root : roots_)
    if (const auto top = real_path(root); top && is_within(*real, *top)) return {};
  return fail(
      ErrorCode::denied,
      fmt::format("{} cannot be a datastore: it lies outside of {}", real->string(), fmt::join(roots_, ", ")),
      "name a folder in there, or start the service with another --datastore-root as well");
}

}  // namespace slipway::api
