#pragma once
// What of the machine's accelerators a container needs: device files, and the libraries that must be of the
// same version as the kernel's driver and so cannot come with a root file system or image.
#include <string>
#include <vector>

namespace slipway::container {

std::vector<std::string> plain_devices();        // /dev/null and its like
std::vector<std::string> accelerator_devices();  // /dev/nvidia0, /dev/nvidiactl, /dev/infiniband …
std::vector<std::string> driver_libraries();     // libcuda.so.1 …; none without such a device

bool is_accelerator(const std::string& device_name);   // nvidia0, infiniband, dri, kfd
bool is_driver_library(const std::string& file_name);  // libcuda.so.1, libnvidia-ml.so.1

}  // namespace slipway::container
