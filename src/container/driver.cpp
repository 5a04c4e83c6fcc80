#include "container/driver.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace slipway::container {
namespace {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

bool is_accelerator(const std::string& device_name) {
  return device_name.starts_with("nvidia") || device_name == "infiniband" || device_name == "dri" ||
         device_name == "kfd";
}

bool is_driver_library(const std::string& file_name) {
  for (const char* family : {"libcuda.so.", "libcudadebugger.so.", "libnvidia-ml.so.", "libnvidia-nvvm.so.",
                             "libnvidia-ptxjitcompiler.so.", "libnvidia-gpucomp.so.", "libnvidia-opencl.so."})
    if (file_name.starts_with(family)) return true;
  return false;
}

std::vector<std::string> plain_devices() {
  return {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};
}

std::vector<std::string> accelerator_devices() {
  std::vector<std::string> devices;
  for (const std::string& name : names_in("/dev"))
    if (is_accelerator(name)) devices.push_back("/dev/" + name);
  return devices;
}

std::vector<std::string> driver_libraries() {
  std::error_code error;
  if (!std::filesystem::exists("/dev/nvidiactl", error)) return {};
  std::vector<std::string> libraries;
  std::set<std::string> seen;  // the first folder that has a name decides, as for the loader
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                             "/usr/local/nvidia/lib64", "/usr/lib"})
    for (const std::string& name : names_in(folder))
      if (is_driver_library(name) && seen.insert(name).second)
        libraries.push_back(std::string(folder) + "/" + name);
  return libraries;
}

}  // namespace slipway::container
