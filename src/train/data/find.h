#pragma once
// Finds the data a run trains on, and reports which it found.
#include <map>
#include <string>

#include "train/data/dataset.h"

namespace slipway::train {

struct DataChoice {
  std::string folder;   // --data: a folder, "synthetic", or empty to search
  std::string dataset;  // --dataset: mnist, fashion-mnist, cifar10, or empty for any
  std::uint64_t seed = 1;
};

// Where searching looks, in order.
struct DataPlaces {
  std::string home;  // $SLIPWAY_DATA: a folder with mnist/, fashion-mnist/, cifar10/ below it, or "synthetic"
  std::string packages = "/usr/share/datasets";  // where Debian's dataset packages put them
  std::string cache;                             // where unpacked copies are kept; may be empty
};
DataPlaces data_places(const std::map<std::string, std::string>& environment);

// A named folder must hold what was asked for. With no folder: the asked data set in the places, else any of
// them (fashion-mnist, mnist, cifar10), else the drawn digits; an asked data set that is nowhere is an error.
Result<DataPair> find_data(const DataChoice& choice, const DataPlaces& places);

}  // namespace slipway::train
