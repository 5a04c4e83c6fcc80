#include "container/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "container/plan.h"

namespace slipway::container {
namespace {

// An image has its own; the machine's would lead to programs and folders it does not have.
bool belongs_to_image(const std::string& name) {
  return name == "PATH" || name == "HOME" || name == "TMPDIR" || name == "LD_LIBRARY_PATH";
}

bool is_plain(const std::string& name) {  // podman takes others for patterns
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

std::string bind_option(const Share& share) {
  return fmt::format("{0}:{0}{1}", share.path, share.read_only ? ":ro" : "");
}

void add_devices(std::vector<std::string>& words, const ImageRun& run, const PodmanFacts& facts) {
  for (const std::string& device : run.devices)
    if (!facts.has_gpu_spec || !device.starts_with("/dev/nvidia")) words.push_back("--device=" + device);
  if (facts.has_gpu_spec) {
    words.emplace_back("--device=nvidia.com/gpu=all");  // CUDA_VISIBLE_DEVICES chooses among them
    return;
  }
  for (const std::string& file : run.driver_libraries)
    words.push_back(fmt::format("--volume={}:{}/{}:ro", file, driver_folder,
                                std::filesystem::path(file).filename().string()));
  if (!run.driver_libraries.empty()) words.push_back(fmt::format("--env=LD_LIBRARY_PATH={}", driver_folder));
}

}  // namespace

std::vector<std::string> podman_command(const std::string& program, const ImageRun& run,
                                        const PodmanFacts& facts) {
  std::vector<std::string> words{
      program, "run", "--rm", "--quiet", "--network=host", "--security-opt=label=disable",
      "--security-opt=no-new-privileges",
      // Kept by the node already. Not passthrough: a SIGTERM right after the start would end podman alone.
      "--log-driver=none"};
  // Ranks of one node exchange through it. Not --ipc=host: that fails where /dev/mqueue is not mounted.
  words.emplace_back("--volume=/dev/shm:/dev/shm");
  // All of it stays in the cgroup we are in: its limits hold, and killing the cgroup ends all.
  words.emplace_back(facts.has_crun ? "--cgroups=disabled" : "--cgroups=no-conmon");
  // Process 1 of a container takes no signal it has no handler for; so it should not be the command.
  if (facts.has_init) words.emplace_back("--init");
  words.emplace_back(facts.maps_users ? "--userns=keep-id" : "--user=0:0");
  // podman's own defaults are above what an ordinary user may set.
  words.push_back(fmt::format("--ulimit=nofile={0}:{0}", facts.files_max));
  words.push_back(fmt::format("--ulimit=nproc={0}:{0}", facts.processes_max));
  for (const Share& share : run.shares) words.push_back("--volume=" + bind_option(share));
  for (const auto& [name, value] : run.environment)  // by name: values stay out of the list of processes
    if (is_plain(name) && !belongs_to_image(name)) words.push_back("--env=" + name);
  add_devices(words, run, facts);
  words.push_back("--workdir=" + run.working_folder);
  words.emplace_back("--entrypoint=");  // the image's own would get our command as arguments
  words.push_back(run.image);
  words.insert(words.end(), run.command.begin(), run.command.end());
  return words;
}

std::vector<std::string> apptainer_command(const std::string& program, const ImageRun& run) {
  std::vector<std::string> words{program,          "--silent",      "exec", "--no-home", "--writable-tmpfs",
                                 "--no-mount=tmp", "--scratch=/tmp"};
  if (std::any_of(run.devices.begin(), run.devices.end(),
                  [](const std::string& device) { return device.starts_with("/dev/nvidia"); }))
    words.emplace_back("--nv");
  for (const Share& share : run.shares) words.push_back("--bind=" + bind_option(share));
  words.push_back("--pwd=" + run.working_folder);
  // A name without a scheme is a registry's, unless it is a file: image.sif, or an unpacked folder.
  const bool has_scheme =
      run.image.find(":/") != std::string::npos || run.image.find("-archive:") != std::string::npos;
  const bool is_file =
      run.image.starts_with('/') || run.image.starts_with('.') || run.image.ends_with(".sif");
  words.push_back(has_scheme || is_file ? run.image : "docker://" + run.image);
  words.insert(words.end(), run.command.begin(), run.command.end());
  return words;
}

}  // namespace slipway::container
