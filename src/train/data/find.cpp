#include "train/data/find.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "base/suggest.h"
#include "train/data/cifar.h"
#include "train/data/digits.h"
#include "train/data/idx.h"

namespace slipway::train {
namespace {

const std::vector<std::string> names = {"fashion-mnist", "mnist", "cifar10"};

bool exists(const std::string& path) {
  std::error_code ignored;  // a folder that cannot be looked into is a folder that is not there
  return std::filesystem::exists(path, ignored);
}

bool has_idx(const std::string& folder) {
  const std::string path = folder + "/train-images-idx3-ubyte";
  return exists(path) || exists(path + ".gz");
}
bool has_cifar(const std::string& folder) { return exists(folder + "/data_batch_1.bin"); }

bool holds(const std::string& folder, const std::string& name) {
  return name == "cifar10" ? has_cifar(folder) : has_idx(folder);
}

// What a folder of IDX files is called when the user did not say: the files are alike, only names differ.
std::string name_of(const std::string& folder) {
  return folder.find("fashion") != std::string::npos ? "fashion-mnist" : "mnist";
}

Result<DataPair> read(const std::string& folder, const std::string& name, const std::string& cache) {
  return name == "cifar10" ? read_cifar_folder(folder) : read_idx_folder(folder, name, cache);
}

Result<DataPair> read_named(const DataChoice& choice, const std::string& cache) {
  const std::string below = choice.folder + "/" + choice.dataset;
  if (!choice.dataset.empty()) {
    if (holds(below, choice.dataset)) return read(below, choice.dataset, cache);
    return read(choice.folder, choice.dataset, cache);
  }
  if (has_cifar(choice.folder)) return read(choice.folder, "cifar10", cache);
  if (has_idx(choice.folder)) return read(choice.folder, name_of(choice.folder), cache);
  for (const std::string& name : names)
    if (holds(choice.folder + "/" + name, name)) return read(choice.folder + "/" + name, name, cache);
  return fail(
      ErrorCode::not_found,
      fmt::format("{} holds no data set: neither train-images-idx3-ubyte[.gz] nor data_batch_1.bin is there",
                  choice.folder),
      "name the folder with the files, or use --data synthetic");
}

}  // namespace

DataPlaces data_places(const std::map<std::string, std::string>& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  DataPlaces places;
  places.home = value("SLIPWAY_DATA");
  if (!value("XDG_CACHE_HOME").empty())
    places.cache = value("XDG_CACHE_HOME") + "/slipway/data";
  else if (!value("HOME").empty())
    places.cache = value("HOME") + "/.cache/slipway/data";
  return places;
}

Result<DataPair> find_data(const DataChoice& choice, const DataPlaces& places) {
  if (choice.folder == "synthetic") return draw_digits(choice.seed);
  bool known = choice.dataset.empty();
  for (const std::string& name : names) known = known || name == choice.dataset;
  if (!known) {
    const std::string near = nearest(choice.dataset, names);
    return fail(
        ErrorCode::invalid, fmt::format("there is no data set {}", choice.dataset),
        near.empty() ? "--dataset takes mnist, fashion-mnist or cifar10" : "did you mean " + near + "?");
  }
  if (!choice.folder.empty()) return read_named(choice, places.cache);
  if (choice.dataset.empty() && places.home == "synthetic") return draw_digits(choice.seed);
  for (const std::string& root : {places.home, places.packages}) {
    if (root.empty()) continue;
    for (const std::string& name : names)
      if ((choice.dataset.empty() || choice.dataset == name) && holds(root + "/" + name, name))
        return read(root + "/" + name, name, places.cache);
  }
  if (choice.dataset.empty()) return draw_digits(choice.seed);
  return fail(ErrorCode::not_found,
              fmt::format("{} is neither below $SLIPWAY_DATA ({}) nor in {}", choice.dataset,
                          places.home.empty() ? "not set" : places.home, places.packages),
              choice.dataset == "fashion-mnist"
                  ? "apt-get install dataset-fashion-mnist, or --data FOLDER, or --data synthetic"
                  : "--data FOLDER names where it lies; --data synthetic needs no files");
}

}  // namespace slipway::train
