#include "serve/version_folder.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <memory>

#include "serve/native_model.h"
#include "serve/versions.h"

namespace slipway::serve {
namespace {

// The file that makes a folder a model of that format.
constexpr const char* model_files[] = {native_file, "saved_model.pb", "saved_model.pbtxt", "model.onnx",
                                       "model.pt"};

FileStamp stamp_of(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return {};
  return fmt::format("{}:{}:{}.{:09}", about.st_ino, about.st_size, about.st_mtim.tv_sec,
                     about.st_mtim.tv_nsec);
}

std::string find_model_file(const std::string& folder) {
  for (const char* name : model_files)
    if (!stamp_of(folder + "/" + name).empty()) return name;
  return {};
}

}  // namespace

BaseFolder list_versions(const std::string& base_path) {
  BaseFolder base;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(base_path.c_str()), ::closedir);
  if (!folder) return base;
  base.exists = true;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(folder.get())) names.emplace_back(entry->d_name);
  for (const auto& [number, name] : parse_version_names(names)) {
    const std::string path = base_path + "/" + name;
    const std::string file = find_model_file(path);
    if (file.empty())
      base.incomplete.push_back(path);
    else
      base.versions[number] = {path, stamp_of(path + "/" + file)};
  }
  return base;
}

Answer<std::shared_ptr<const Model>> load_version(const std::string& folder) {
  const std::string file = find_model_file(folder);
  if (file == native_file) return load_native_model(folder + "/" + native_file);
  if (file.empty()) return refuse(Code::not_found, fmt::format("{} holds no model any more", folder));
  return refuse(
      Code::unimplemented,
      fmt::format("{}/{} cannot be served: this server runs model.slipway, as slipway-train stores it; "
                  "for other formats use a server of theirs",
                  folder, file));
}

}  // namespace slipway::serve
