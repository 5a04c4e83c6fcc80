#include "container/docker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "base/file.h"
#include "container/driver.h"

namespace slipway::container {
namespace {

// A background process of sh has no input of its own, hence the descriptor 3.
constexpr const char* ends_with_input =
    "exec 3<&0; (cat <&3 >/dev/null; kill -KILL -1) & exec \"$@\" 3<&- </dev/null";

bool is_passed_on(const std::string& name) {  // as for podman: an image has its own of the others
  if (name == "PATH" || name == "HOME" || name == "TMPDIR" || name == "LD_LIBRARY_PATH") return false;
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

void add_accelerators(std::vector<std::string>& words, const ImageRun& run) {
  const auto is_nvidia = [](const std::string& device) { return device.starts_with("/dev/nvidia"); };
  // NVIDIA's runtime brings the devices and the driver's libraries; CUDA_VISIBLE_DEVICES chooses.
  if (std::any_of(run.devices.begin(), run.devices.end(), is_nvidia)) words.emplace_back("--gpus=all");
  for (const std::string& device : run.devices)
    if (!is_nvidia(device)) words.push_back("--device=" + device);
}

}  // namespace

std::vector<std::string> docker_command(const std::string& program, const ImageRun& run,
                                        const DockerFacts& facts) {
  std::vector<std::string> words{program,
                                 "run",
                                 "--rm",
                                 "--interactive",
                                 "--init",
                                 "--network=host",
                                 "--volume=/dev/shm:/dev/shm",
                                 "--log-driver=none",
                                 "--security-opt=no-new-privileges"};
  words.push_back(fmt::format("--user={}:{}", facts.uid, facts.gid));  // files belong to the caller
  if (facts.uid != 0) words.emplace_back("--env=HOME=/tmp");           // a user the image does not know
  words.push_back(fmt::format("--ulimit=nofile={0}:{0}", facts.files_max));
  for (const Share& share : run.shares)
    words.push_back(fmt::format("--volume={0}:{0}{1}", share.path, share.read_only ? ":ro" : ""));
  for (const auto& [name, value] : run.environment)  // by name: values stay out of the list of processes
    if (is_passed_on(name)) words.push_back("--env=" + name);
  add_accelerators(words, run);
  words.push_back("--workdir=" + run.working_folder);
  words.emplace_back("--entrypoint=/bin/sh");
  words.push_back(run.image);
  words.insert(words.end(), {"-c", ends_with_input, "sh"});
  words.insert(words.end(), run.command.begin(), run.command.end());
  return words;
}

bool has_docker(const Environment& environment) {
  if (!find_program("docker", environment)) return false;
  const auto host = environment.find("DOCKER_HOST");
  if (host != environment.end() && !host->second.empty()) return true;
  return ::access("/var/run/docker.sock", W_OK) == 0;
}

Result<void> tie_input_to_lifetime() {
  int ends[2];
  if (::pipe(ends) != 0) return fail(system_error("cannot make a pipe", errno));
  if (::dup2(ends[0], STDIN_FILENO) < 0) return fail(system_error("cannot use a pipe as input", errno));
  ::close(ends[0]);
  return {};
}

}  // namespace slipway::container
