#include "container/shares.h"

#include <algorithm>
#include <filesystem>

namespace slipway::container {
namespace {

std::string clean(const std::string& path) {
  std::string cleaned = std::filesystem::path(path).lexically_normal().string();
  while (cleaned.size() > 1 && cleaned.back() == '/') cleaned.pop_back();
  return cleaned;
}

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

Share parse(const std::string& text) {
  if (text.ends_with(":ro")) return {text.substr(0, text.size() - 3), true};
  return {text, false};
}

}  // namespace

bool is_within(const std::string& path, const std::string& folder) {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::vector<Share> shares(const std::string& working_folder, const Environment& environment,
                          const std::vector<std::string>& more) {
  std::vector<Share> wanted{{working_folder}};
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  for (const char* name : {"SLIPWAY_OUTPUTS", "SLIPWAY_SHARED", "SLIPWAY_CHECKPOINT_DIR"})
    wanted.push_back({value(name)});
  // A node calls it <attempt>/outputs; beside it lie the output so far and the other processes' folders.
  if (const std::string outputs = clean(value("SLIPWAY_OUTPUTS")); outputs.ends_with("/outputs"))
    wanted.push_back({folder_of(outputs)});
  wanted.push_back({folder_of(value("SLIPWAY_HOSTFILE"))});
  for (const std::string& text : more) wanted.push_back(parse(text));

  for (Share& share : wanted) share.path = clean(share.path);
  std::erase_if(wanted, [](const Share& share) { return !share.path.starts_with('/') || share.path == "/"; });
  // Parents first, and of two for one path the one that can be written to.
  std::sort(wanted.begin(), wanted.end(), [](const Share& a, const Share& b) {
    return a.path != b.path ? a.path < b.path : a.read_only < b.read_only;
  });
  std::vector<Share> kept;
  for (const Share& share : wanted) {
    const auto covers = [&](const Share& other) {
      return is_within(share.path, other.path) &&
             (other.path == share.path || other.read_only == share.read_only);
    };
    // The nearest one above decides: read-only in writable in read-only has to stay three.
    const auto above = std::find_if(kept.rbegin(), kept.rend(),
                                    [&](const Share& other) { return is_within(share.path, other.path); });
    if (above == kept.rend() || !covers(*above)) kept.push_back(share);
  }
  return kept;
}

}  // namespace slipway::container
